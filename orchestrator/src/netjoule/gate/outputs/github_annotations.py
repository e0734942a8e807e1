# SPDX-License-Identifier: Apache-2.0
"""Annotations of GitHub Actions: workflow commands on stdout, of which GitHub shows ten of a kind per step.

A pass says nothing. A regression is one error and a warning for each cell that costs more, the worst first.
"""

from __future__ import annotations

from collections.abc import Iterator

from netjoule.core.safe_text import escaped
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Verdict

MOST = 10


def text(verdict: Verdict) -> str:
    """Lines ``::error title=...::message``."""
    return "".join(f"{line}\n" for line in list(_lines(verdict))[:MOST])


def _lines(verdict: Verdict) -> Iterator[str]:
    title = findings.title(verdict)
    failed = verdict["verdict"] == "fail"
    if verdict["verdict"] != "pass":
        yield _command("error" if failed else "warning", f"{title}: {verdict['verdict']}", verdict["words"])
    anchor = verdict["anchor"]
    if anchor and anchor["verdict"] != "pass":
        kind = "error" if anchor["verdict"] == "fail" else "warning"
        yield _command(kind, f"{title}: anchor {anchor['verdict']}", anchor["words"])
    if failed:
        for cell in findings.worst_first(findings.cells(verdict)):
            if cell["verdict"] == "more":
                figures = f"{findings.change(cell)}, 95 % interval {findings.interval(cell)}"
                yield _command("warning", f"{title}: {findings.cell_name(cell)}", figures)


def _command(kind: str, title: str, message: str) -> str:
    """A workflow command; GitHub decodes these escapes alone."""
    value = _of_message(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={value}::{_of_message(message)}"


def _of_message(text_: str) -> str:
    return escaped(text_).replace("%", "%25")

# SPDX-License-Identifier: Apache-2.0
"""JUnit XML: one testcase for the decision, one against an anchor, and one per cell and objective.

A regression is a failure, a cell without one valid block an error, what decides nothing is skipped. Cells are
not decided upon: one that costs more is a failure only where the decision is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

from netjoule.core.safe_text import escaped
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Cell, Verdict
from netjoule.gate.verdict import duration_s

_NUMBERS_OF_CELL = (
    "blocks", "ratio", "ratio_low", "ratio_high", "difference_w", "difference_low_w", "difference_high_w",
    "p_holm",
)  # fmt: skip


def text(verdict: Verdict) -> str:
    """The document."""
    cases = [_decision(verdict)]
    if verdict["anchor"]:
        cases.append(_anchor(verdict))
    cases += [_cell(verdict, cell) for cell in findings.cells(verdict)]
    counts = {
        "tests": str(len(cases)),
        "failures": _number_of(cases, "failure"),
        "errors": _number_of(cases, "error"),
        "skipped": _number_of(cases, "skipped"),
        "time": f"{duration_s(verdict):.3f}",
    }
    suites = Xml.Element("testsuites", {"name": findings.title(verdict), **counts})
    suite = Xml.SubElement(
        suites,
        "testsuite",
        {
            "name": escaped(verdict["workload"]),
            "hostname": escaped(verdict["rig"]),
            "timestamp": verdict["created_utc"],
            **counts,
        },
    )
    _properties(suite, _of_suite(verdict))
    suite.extend(cases)
    Xml.indent(suites)
    written = bytes(Xml.tostring(suites, encoding="utf-8", xml_declaration=True))
    return written.decode() + "\n"


def _number_of(cases: list[Xml.Element], outcome: str) -> str:
    return str(sum(case.find(outcome) is not None for case in cases))


def _of_suite(verdict: Verdict) -> dict[str, object]:
    """What holds for all of it."""
    named = (
        "id", "kind", "rig", "workload", "workload_version", "power_source", "objective", "unit",
        "margin_percent", "tolerance_percent",
    )  # fmt: skip
    print_ = verdict["fingerprint"]
    return {
        **{name: verdict[name] for name in named},
        "kernel": print_["kernel"],
        "cpu_model": print_["cpu_model"],
        "meters": "; ".join(print_["meters"]),
        **{f"arm {arm['name']}": arm["commit"] or arm["text"] for arm in verdict["arms"]},
        **{f"version {name}": version for name, version in verdict["versions"].items()},
    }


def _decision(verdict: Verdict) -> Xml.Element:
    """The testcase that fails where the gate does."""
    session = findings.deciding(verdict)
    case = _case(verdict, f"decision: {verdict['objective']}")
    case.set("time", f"{duration_s(verdict):.3f}")
    counted = (
        {
            "blocks": findings.blocks(session),
            "blocks_max": session["blocks_max"],
            "looks": len(session["looks"]),
        }
        if session
        else {}
    )
    _properties(case, {**_ratio(verdict), **counted, "exit_code": verdict["exit_code"]})
    _outcome(case, verdict)
    if verdict["verdict"] == "fail" and session:
        case[-1].text = _figures(verdict, findings.blocks(session))
    return case


def _anchor(verdict: Verdict) -> Xml.Element:
    """The same against a release."""
    anchor = verdict["anchor"]
    case = _case(verdict, f"anchor: {verdict['objective']}")
    _properties(case, _ratio(anchor))
    _outcome(case, anchor)
    return case


def _cell(verdict: Verdict, cell: Cell) -> Xml.Element:
    """One cell."""
    case = _case(verdict, f"{findings.cell_name(cell)}: {verdict['objective']}")
    _properties(case, {name: cell[name] for name in _NUMBERS_OF_CELL})
    if cell["method"] == "left_out":
        Xml.SubElement(case, "skipped", {"message": escaped(cell["reason"])})
    elif not cell["blocks"]:
        message = escaped(cell["reason"]) or "none of its blocks counts"
        Xml.SubElement(case, "error", {"type": "invalid", "message": message})
    elif verdict["verdict"] == "fail" and cell["verdict"] == "more":
        message = f"{findings.change(cell)}, 95 % interval {findings.interval(cell)}"
        failure = Xml.SubElement(case, "failure", {"type": "regression", "message": message})
        failure.text = _figures(cell, cell["blocks"])
    return case


def _case(verdict: Verdict, name: str) -> Xml.Element:
    place = escaped(f"netjoule.{verdict['kind']}.{verdict['workload']}")
    return Xml.Element("testcase", {"classname": place, "name": name})


def _outcome(case: Xml.Element, decided: Mapping[str, Any]) -> None:
    """What a verdict makes of its testcase; a pass adds nothing."""
    words = escaped(decided["words"])
    if decided["verdict"] == "fail":
        Xml.SubElement(case, "failure", {"type": "regression", "message": words})
    elif decided["verdict"] != "pass":
        Xml.SubElement(case, "skipped", {"type": decided["verdict"], "message": words})


def _figures(part: Mapping[str, Any], blocks: int) -> str:
    """Ratio, interval and blocks, one a line."""
    known = [part[name] for name in ("ratio", "ratio_low", "ratio_high")]
    if None in known:
        return f"blocks {blocks}"
    return "ratio {:.4f}\ninterval {:.4f} to {:.4f}\nblocks {}".format(*known, blocks)


def _ratio(part: Mapping[str, Any]) -> dict[str, object]:
    return {name: part[name] for name in ("ratio", "ratio_low", "ratio_high")}


def _properties(owner: Xml.Element, values: Mapping[str, object]) -> None:
    """Names and values; what is not known is left out."""
    properties = Xml.SubElement(owner, "properties")
    for name, value in values.items():
        if value is not None:
            Xml.SubElement(properties, "property", {"name": escaped(name), "value": escaped(str(value))})

# SPDX-License-Identifier: Apache-2.0
"""From a list of cells to judged flows: one boot of the guest, then the captures are read on the host."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captures import Dissection, dissect, tcpdump_complaints, tshark_complaints
from cells import ENCAPSULATED, KERNEL, Cell
from encapsulation import converted, server_port
from host_programs import find
from judge import defects, goodput_mbps

_SETUP_S = 120
_CELL_S = 150
_GUEST_MEMORY_MIB = 1024
_STDERR = 2


@dataclass(frozen=True, slots=True)
class Flow:
    """One cell's outcome: the guest's account, what the capture shows, what is wrong with it."""

    cell: Cell
    kernel: str
    outcome: dict[str, Any]
    seen: Dissection
    wrong: list[str] = field(default_factory=list)

    @property
    def goodput_mbps(self) -> float | None:
        """At the receiver; None when the flow gave no report."""
        return goodput_mbps(self.outcome)


def run_cells(cells: Sequence[Cell], folder: Path) -> list[Flow]:
    """Run all cells in one guest.

    Args:
        cells: what to run, in order.
        folder: new folder for accounts and captures; the guest may write it.

    Raises:
        AssertionError: when the guest ended early; flows so far are in the folder.
    """
    run_in_guest(folder, [cell.document() for cell in cells])
    return [_judged(cell, folder) for cell in cells]


def run_in_guest(folder: Path, cells: Sequence[dict[str, Any]]) -> None:
    """Run cells as inside.py knows them in one guest; accounts and captures come into a new folder."""
    folder.mkdir(parents=True)
    job = {"program": find("netjoule-traffic"), "cells": cells}
    (folder / "cells.json").write_text(json.dumps(job))
    script = str(Path(__file__).with_name("inside.py").resolve())
    timeout_s = _SETUP_S + _CELL_S * len(cells)
    # The guest ends with this program, however that is ended.
    command = [find("setpriv"), "--pdeathsig", "TERM", find("netjoule"), "-v", "guest", "run"]
    command += ["--virtual-time", "--rw", str(folder), "--timeout", str(timeout_s)]
    command += ["--memory", str(_GUEST_MEMORY_MIB), "--", "/usr/bin/python3", script, str(folder.resolve())]
    # What it says goes to stderr: what the matrix says itself is the page.
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=_STDERR, check=False)
    if ended.returncode != 0:
        raise AssertionError(f"the guest's part ended with {ended.returncode}; see its last lines above")


def _judged(cell: Cell, folder: Path) -> Flow:
    outcome = json.loads((folder / f"{cell.name}.json").read_text())
    capture = folder / f"{cell.name}.pcap"
    if cell.pair == ENCAPSULATED.name:
        seen = dissect(capture, server_port(capture.read_bytes()))
        plain = capture.with_suffix(".native.pcap")
        count = converted(capture, plain)
        expected = seen.encapsulated
        wrong = [] if count == expected else [f"{count} packets converted, {expected} dissected"]
        capture = plain
    else:
        seen, wrong = dissect(capture), []
    ours, lossy = cell.pair != KERNEL.name, cell.loss_percent > 0
    wrong += defects(outcome, seen, ours=ours, lossy=lossy, unseen=cell.random)
    wrong += [f"tshark: {line}" for line in tshark_complaints(capture)[:3]]
    wrong += [f"tcpdump: {line}" for line in tcpdump_complaints(capture)[:3]]
    return Flow(cell, outcome["kernel"], outcome, seen, wrong)

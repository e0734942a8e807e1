# SPDX-License-Identifier: Apache-2.0
"""netjoule with the toy load of tests/loads/toy: its entries in the contracts, and what runs with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

import netjoule_contracts

TOY = Path(__file__).parent / "loads" / "toy"
FAKE_TIME = TOY / "fake_time.py"
ENTRY = {
    "name": "wait",
    "label": "Wait",
    "description": "Waits, and does nothing else.",
    "kinds": ["emulated", "simulated"],
    "work": {"unit": "ms", "label": "time that was waited"},
    "measures": [{"name": "late_ms", "label": "Late by", "unit": "ms", "better": "lower"}],
    "factors": ["wait_ms"],
    "required": ["wait_ms"],
    "arm": "wait_ms",
    "reference": None,
    "control": None,
    "objectives": ["energy"],
    "compared_at": None,
    "window": "until_done",
    "document": None,
    "figures": [
        {
            "kind": "arms",
            "x": "wait_ms",
            "y": "late_ms",
            "panel": None,
            "colour": "wait_ms",
            "title": "Late",
        }
    ],
}
FACTOR = {
    "name": "wait_ms",
    "label": "Wait",
    "description": "How long it waits.",
    "owner": "load",
    "unit": "ms",
    "value": {"type": "integer", "minimum": 1, "maximum": 60000},
}
MORE = {**FACTOR, "name": "pause_ms", "label": "Pause", "description": "How long it pauses.", "default": 0}
MORE["value"] = {"type": "integer", "minimum": 0, "maximum": 60000}
ALTITUDE = {
    "name": "altitude_m",
    "label": "Altitude",
    "description": "How high the testbed stands.",
    "owner": "testbed",
    "kinds": ["emulated"],
    "while_up": False,
    "unit": "m",
    "value": {"type": "integer", "minimum": 0, "maximum": 9000},
}
RESULT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "result_wait.schema.json",
    "title": "Result, part of the load wait",
    "description": "Measures of a run of the load wait.",
    "x-part-of": "result",
    "type": "object",
    "additionalProperties": False,
    "required": ["late_ms"],
    "properties": {"late_ms": {"description": "Late by.", "type": "number", "unit": "ms"}},
}
TIMING = {"idle_s": 1.0, "settle_s": 0.1, "warm_up_s": 0, "measure_s": 1.0, "tail_s": 1.0}
WORKLOAD = {
    "schema_version": 2,
    "name": "toy",
    "load": "wait",
    "factors": {"wait_ms": [20, 50]},
    "blocks": 2,
    "timing": TIMING,
    "limits": {"max_attempts": 10},
    "seed": 5,
}


def add(contracts: Path, name: str, *entries: dict[str, Any]) -> None:
    """Entries to loads.json or factors.json."""
    path = contracts / f"{name}.json"
    document = json.loads(path.read_text())
    document[name] += entries
    path.write_text(json.dumps(document))


def with_toy(folder: Path) -> Path:
    """The contracts with the load in them, in a folder that is made."""
    shutil.copytree(netjoule_contracts.root(), folder, ignore=shutil.ignore_patterns("python", "tests"))
    add(folder, "loads", ENTRY)
    add(folder, "factors", FACTOR)
    (folder / "schemas" / "result_wait.schema.json").write_text(json.dumps(RESULT))
    return folder


class Program:
    """netjoule as it is, in a process that has the contracts and the class of the load."""

    def __init__(self, contracts: Path) -> None:
        path = os.pathsep.join([str(TOY), str(TOY.parents[1])])
        self._env = os.environ | {"NETJOULE_CONTRACTS": str(contracts), "PYTHONPATH": path}
        self._env["NETJOULE_BIN_DIR"] = str(TOY / "bin")

    def start(self, *argv: str, **env: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, *argv], env=self._env | env, text=True, **pipes)  # type: ignore[call-overload, no-any-return]

    def done(self, *argv: str) -> str:
        """What it printed; it must end well."""
        process = self.start(*argv)
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, out + err
        return out

    def netjoule(self, *argv: str) -> str:
        return self.done("-m", "netjoule", *argv)


def workload(folder: Path, **changes: Any) -> Path:
    file = folder / "toy.yaml"
    file.write_text(yaml.safe_dump(WORKLOAD | changes))
    return file

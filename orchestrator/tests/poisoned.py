# SPDX-License-Identifier: Apache-2.0
"""A campaign whose names try to run code, break the page, or hide what they say."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = '"><img src=x onerror=window.pwned=1>'
CLOSING = "</style></svg></details><iframe src=javascript:window.pwned=1>"
TURNED = "good\u202erorre\u202c"
BROKEN = "two\nlines\x07"
LONG = "long-" * 4000
TRANSPORT = "<b onclick=pwned=1>"
"""In the place of tcp; what is longer than 20 characters is cut."""


def poison(campaign: Path) -> Path:
    """Put such names wherever the contracts allow free text, and in the place of a transport."""
    _edit(campaign / "campaign.json", _campaign)
    for run in (campaign / "runs").iterdir():
        for name in ("run.json", "flow.json", "result.json"):
            if (run / name).exists():
                _edit(run / name, _run)
    plan = campaign / "plan.csv"
    with plan.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        row["arm"] = _transport(row["arm"])
    with plan.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return campaign


def _edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def _campaign(document: dict[str, Any]) -> None:
    document["campaign"] = SCRIPT + BROKEN
    document["versions"]["commit"] = IMAGE
    document["host"] |= {"cpu_model": LONG, "distribution": CLOSING}
    document["workload"] |= {"name": TURNED, "description": LONG, IMAGE: BROKEN}
    factors = document["workload"]["factors"]
    factors["transport"] = [_transport(name) for name in factors["transport"]]
    for meter in document["meters"]:
        meter |= {"make": SCRIPT, "model": IMAGE, "serial": TURNED, "node": IMAGE, "device_model": CLOSING}
        meter |= {"identification": LONG, "firmware": BROKEN}


def _run(document: dict[str, Any]) -> None:
    for name in ("arm", "transport"):
        if name in document:
            document[name] = _transport(document[name])
    if "campaign" in document:
        document["campaign"] = SCRIPT + BROKEN
    for node in document.get("nodes", []):
        node |= {"node": IMAGE, "device_model": CLOSING}
    if "reasons" in document and "nodes" in document:
        document["reasons"] = [
            *document["reasons"],
            {"code": "reader_cpu_differs", "detail": f"{SCRIPT} {IMAGE} {TURNED} {BROKEN}"},
        ]


def _transport(name: str) -> str:
    return TRANSPORT if name == "tcp" else name

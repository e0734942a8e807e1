# SPDX-License-Identifier: Apache-2.0
"""Documents as typed objects: nothing of a real one is lost, and what fits no contract is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest
import yaml

from netjoule_contracts import ContractError
from netjoule_contracts.documents import Document, typed
from netjoule_contracts.lift.results import lifted_result
from netjoule_contracts.lift.runs import documents_of, lifted_run
from netjoule_contracts.lift.workload import newest_campaign
from netjoule_contracts.types.campaign import Campaign
from netjoule_contracts.types.result import Result, Window
from netjoule_contracts.types.run import Run
from netjoule_contracts.types.topology import Topology
from netjoule_contracts.types.workload import Workload

REPOSITORY = Path(__file__).resolve().parents[3]
GOLDEN = REPOSITORY / "results/golden"
KINDS: dict[str, type[Document]] = {"campaign.json": Campaign, "run.json": Run, "result.json": Result}


def newest(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """A document of a campaign that is older than the newest contracts, in their shape."""
    if name == "run.json":
        return lifted_run(document, [{} for _ in documents_of(document)], [])
    return lifted_result(document) if name == "result.json" else dict(newest_campaign(document))


def of_golden_campaigns() -> Iterator[tuple[type[Document], Any]]:
    """Documents of the golden campaigns."""
    for path in (GOLDEN / "guest-hwsim").rglob("*.json"):
        if path.name in KINDS:
            yield KINDS[path.name], newest(path.name, json.loads(path.read_text()))
    for path in GOLDEN.glob("*.tar.xz"):
        with tarfile.open(path) as packed:
            for member in packed:
                name = PurePosixPath(member.name).name
                text = packed.extractfile(member) if name in KINDS else None
                if text:
                    yield KINDS[name], newest(name, json.load(text))


def as_json(path: Path) -> Any:
    """A YAML file as JSON has it, where a date is text."""
    return json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))


def shipped() -> Iterator[tuple[type[Document], Any]]:
    """Workloads and topologies of the repository."""
    for path in (REPOSITORY / "workloads").rglob("*.yaml"):
        yield Workload, as_json(path)
    for path in [*(REPOSITORY / "testbed/topologies").glob("*.yaml"), REPOSITORY / "testbed-topology.yaml"]:
        yield Topology, as_json(path)


@pytest.mark.parametrize(
    ("documents", "kinds"),
    [(of_golden_campaigns, {Campaign, Run, Result}), (shipped, {Workload, Topology})],
)
def test_a_real_document_comes_back_as_it_was(documents: Any, kinds: set[type[Document]]) -> None:
    seen = set()
    for kind, document in documents():
        made = typed(kind, document)
        assert json.loads(msgspec.json.encode(made)) == document
        assert msgspec.json.decode(json.dumps(document), type=kind) == made
        seen.add(kind)
    assert seen == kinds


def of_a_run(name: str) -> dict[str, Any]:
    path = next((GOLDEN / "guest-hwsim/runs").glob(f"*/{name}"))
    return newest(name, json.loads(path.read_text()))


def test_fields_are_attributes_and_lists_are_tuples() -> None:
    document = of_a_run("result.json")
    result = typed(Result, document)
    assert result.window == Window(**document["window"])
    assert [reason.code for reason in result.reasons] == [reason["code"] for reason in document["reasons"]]
    assert isinstance(result.reasons, tuple)
    with pytest.raises(AttributeError):
        result.valid = False  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": "1"}, "seed"),
        ({"speed": 1}, "speed"),
        ({"block": 0}, "block"),
        ({"status": "over"}, "status"),
    ],
)
def test_what_its_contract_refuses_is_no_object(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        typed(Run, of_a_run("run.json") | change)


def test_the_types_are_those_of_the_schemas() -> None:
    script = REPOSITORY / "scripts/contract_types.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")

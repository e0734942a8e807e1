# SPDX-License-Identifier: Apache-2.0
"""What clients look for that weigh energy, and what they are told of it while they fetch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from runner_fakes import FakeTime, topology
from test_transfer import PLACE, conditions, workload
from tiny_campaign import CONSTANT_METER, netjoule, table, written

from netjoule.core.errors import UsageError
from netjoule.loads.transfer.energy_lines import EnergyLines
from netjoule.loads.transfer.load import TransferLoad
from netjoule.loads.transfer.objective import Objective
from netjoule.workload.load import Outcome, Place

READINGS_J = (0.5, 1.0, 1.5, 2.0)


class FakeEnergy:
    """Tells these joules, or the same more each 20 ms for ever."""

    source = "m0"

    def __init__(self, readings_j: Sequence[float] | None = None) -> None:
        self._readings_j = readings_j

    async def since_now(self) -> AsyncGenerator[float, None]:
        number = 0
        while self._readings_j is None or number < len(self._readings_j):
            await asyncio.sleep(0.02)
            yield 0.1 * (number + 1) if self._readings_j is None else self._readings_j[number]
            number += 1


class FakeProcess:
    def __init__(self) -> None:
        self.lines: list[float] = []

    async def write_line(self, text: str) -> None:
        self.lines.append(json.loads(text)["energy_j"])


@pytest.mark.parametrize(
    ("client", "asked", "metered", "arguments"),
    [
        ("eht", None, True, ["--objective", "efficiency", "--energy-stdin"]),
        ("auto", None, True, ["--objective", "efficiency", "--energy-stdin"]),
        ("auto", None, False, ["--objective", "frugal"]),
        ("eht", "energy", True, ["--objective", "energy", "--energy-stdin"]),
        ("eht", "energy", False, ["--objective", "energy"]),
        ("auto", "throughput", True, ["--objective", "throughput"]),
        ("auto", "frugal", True, ["--objective", "frugal"]),
    ],
)
def test_energy_is_told_to_who_weighs_it(
    client: str, asked: str | None, metered: bool, arguments: list[str]
) -> None:
    objective = Objective.of(client, asked, FakeEnergy() if metered else None)
    assert objective is not None
    assert objective.arguments() == arguments


@pytest.mark.parametrize("client", ["fixed", "hat", "lowe", "h1", "h3", "null", "curl", "wget"])
def test_others_look_for_nothing(client: str) -> None:
    assert Objective.of(client, "energy", FakeEnergy()) is None


@pytest.mark.parametrize(
    ("asked", "seen", "in_force"),
    [
        ("efficiency", [None, 1, 2], ["efficiency"]),
        ("efficiency", [None, 1, None], ["efficiency", "frugal"]),
        ("efficiency", [None, None], ["frugal"]),
        ("energy", [], ["frugal"]),
        ("throughput", [None, None], ["throughput"]),
    ],
)
def test_what_a_run_had_is_what_its_decisions_rested_on(
    asked: str, seen: list[int | None], in_force: list[str]
) -> None:
    decisions = [{"seen": {"energy_uj": one}} for one in seen]
    objective = Objective(asked, FakeEnergy())
    told = objective.told([{"records": [{"decisions": decisions}]}])
    assert told == {"asked": asked, "energy_from": "m0", "in_force": in_force}


def test_an_objective_that_nobody_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"transfer\.objective"):
        workload(["eht"], transfer={"objective": "cheapest"})


def test_each_transfer_is_told_joules_since_its_own_begin() -> None:
    first, second = FakeProcess(), FakeProcess()

    async def run() -> None:
        lines = EnergyLines(FakeEnergy(READINGS_J), first)  # type: ignore[arg-type]
        await lines.end()
        lines.begin()
        while len(first.lines) < 2:
            await asyncio.sleep(0.001)
        lines.go_on_to(second)  # type: ignore[arg-type]
        while len(second.lines) < 2:
            await asyncio.sleep(0.001)
        await lines.end()
        await lines.end()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert (first.lines, second.lines) == ([0.5, 1.0], [0.5, 1.0])


# -- with the real program ---------------------------------------------------------------------------------


def fetched(client: str, energy: FakeEnergy | None, **transfer: Any) -> dict[str, Any]:
    """transfer.json of a run over the loopback, with probes of 60 ms."""
    settings = {"interval_s": 0.06, **transfer}
    of = workload([client], dataset="html-1:1500", transfer=settings, max_connections=4, request_bytes=1024)
    place = Place(
        PLACE.roles,
        test_addresses=PLACE.test_addresses,
        interfaces=PLACE.interfaces,
        live_energy=lambda _host: energy,
    )

    async def run() -> Outcome:
        load = TransferLoad(of, topology())
        try:
            session = await load.open(conditions(of)[0], place, 1e-6)
            try:
                await session.go()
                return await session.outcome(FakeTime({}))
            finally:
                await session.end()
        finally:
            await load.close()

    outcome = asyncio.run(run())
    assert outcome.run_fields["work"]["reconciles"]
    return dict(outcome.documents[0].content)


def energies(document: dict[str, Any]) -> list[int | None]:
    records = document["runs"][0]["records"]
    return [one["seen"]["energy_uj"] for record in records for one in record["decisions"]]


@pytest.mark.parametrize("client", ["eht", "auto"])
def test_what_a_meter_says_is_what_decisions_rest_on(client: str) -> None:
    document = fetched(client, FakeEnergy())
    assert document["objective"] == {"asked": "efficiency", "energy_from": "m0", "in_force": ["efficiency"]}
    seen = [one for one in energies(document) if one is not None]
    assert seen == sorted(seen)
    assert seen[-1] > 100_000


def test_without_a_meter_eht_looks_for_frugal_as_it_did() -> None:
    document = fetched("eht", None)
    assert document["objective"] == {"asked": "frugal", "energy_from": None, "in_force": ["frugal"]}
    assert set(energies(document)) == {None}


def test_a_meter_that_says_nothing_holds_no_transfer_up_and_is_told_of() -> None:
    document = fetched("auto", FakeEnergy([]), objective="energy")
    assert document["objective"] == {"asked": "energy", "energy_from": "m0", "in_force": ["frugal"]}


@pytest.mark.netns
def test_on_the_emulated_testbed_decisions_rest_on_the_first_meter_of_the_client(tmp_path: Path) -> None:
    meters = [CONSTANT_METER | {"meter_id": "phone", "device": {"model": "s5-seed"}}, CONSTANT_METER]
    inputs = written(tmp_path, meters)
    asked = {"interval_s": 0.5, "objective": "efficiency"}
    path = [{"rtt_ms": 40, "rate_mbps": 50}]
    of = workload(["eht"], dataset="html-1:200", max_connections=8, path=path, transfer=asked)
    inputs.workload.write_text(yaml.safe_dump({**of.document, "limits": {"max_attempts": 10}}))
    done = netjoule(*inputs.run)
    assert done.returncode == 0, done.stdout + done.stderr
    (run_id,) = [row["run_id"] for row in table(inputs.out / "status.csv") if row["status"] == "valid"]
    document = json.loads((inputs.out / "runs" / run_id / "transfer.json").read_text())
    assert document["objective"] == {
        "asked": "efficiency",
        "energy_from": "phone",
        "in_force": ["efficiency"],
    }
    seen = [one for one in energies(document) if one is not None]
    assert len(seen) >= 4
    result = json.loads((inputs.out / "runs" / run_id / "result.json").read_text())
    phone = next(node for node in result["nodes"] if node["meter_id"] == "phone")
    # What was told during the transfer is what the campaign's arithmetic finds of it.
    assert 0.3 * phone["e_d_j"] < seen[-1] / 1e6 < 1.05 * phone["e_d_j"]

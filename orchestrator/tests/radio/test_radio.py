# SPDX-License-Identifier: Apache-2.0
"""Radio records: from the emulated link's socket to radio/<node>.csv."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import RunFailed
from netjoule.design.timeline import Span
from netjoule.radio import LinkStatsReader, RadioRecord
from netjoule.radio import log as radio_log
from netjoule.radio.emulated_link import record_from_stats
from netjoule.radio.log import RadioLog
from netjoule.radio.state_energy import entry

STATS = {
    "kind": "station",
    "station": "client",
    "t_start_ns": 1_000_000_000,
    "t_end_ns": 1_100_000_000,
    "airtime_tx_s": 0.012,
    "airtime_rx_s": 0.001,
    "frames_tx": 40,
    "frames_rx": 2,
    "ppdus_tx": 10,
    "ppdus_rx": 2,
    "retries": 3,
    "drops": 1,
    "queue_packets": 0,
    "phy_rate_mbps": 216.0,
    "mcs": 13,
    "streams": 2,
    "width_mhz": 40,
    "guard_interval_ns": 800,
}


def test_a_station_line_becomes_a_record_in_campaign_time() -> None:
    record = record_from_stats(STATS, origin_ns=600_000_000)
    assert record == RadioRecord(
        t_s=0.5,
        phy_rate_mbps=216.0,
        mcs=13,
        streams=2,
        width_mhz=40,
        guard_interval_ns=800,
        retries=3,
        failed=1,
        power_save=False,
        airtime_tx_s=0.012,
        airtime_rx_s=0.001,
        frames_tx=40,
        frames_rx=2,
        ppdus_tx=10,
        ppdus_rx=2,
        source="link",
    )


def test_a_radio_that_sleeps_tells_its_state_and_what_it_spent_is_shared_by_time_at_an_edge() -> None:
    def line(number: int, **states: float) -> dict[str, Any]:
        told = {name: {"time_s": 0.1 / len(states), "energy_j": energy} for name, energy in states.items()}
        access = {"state": "cr", "states": told, "energy_j": sum(states.values())}
        access |= {"held_packets": 2, "held_s": 0.4}
        return STATS | {"t_start_ns": number * 10**8, "t_end_ns": (number + 1) * 10**8, "access": access}

    lines = [line(0, IDLE=1.0), line(1, IDLE=0.2, CR=0.6), line(2, CR=1.0)]
    records = [record_from_stats(told, origin_ns=0) for told in lines]
    assert {record.state for record in records} == {"cr"}
    assert [record.as_row()["state_energy_j"] for record in records] == [1.0, pytest.approx(0.8), 1.0]
    assert list(records[0].as_row()) == [field["name"] for field in contracts.table("radio")["fields"]]
    steps = [record.step for record in records if record.step is not None]
    found = entry("client", steps, {"measure": Span(0.15, 0.3), "tail": None})
    assert found == {
        "node": "client",
        "power_source": "modelled",
        "measure": {
            "energy_j": pytest.approx(1.4),
            "states": {
                "IDLE": {"time_s": pytest.approx(0.025), "energy_j": pytest.approx(0.1)},
                "CR": {"time_s": pytest.approx(0.125), "energy_j": pytest.approx(1.3)},
            },
            "held_packets": pytest.approx(3),
            "held_s": pytest.approx(0.6),
        },
        "tail": None,
    }
    assert entry("client", steps, {"measure": Span(1.0, 2.0), "tail": None}) is None


def test_a_record_has_exactly_the_columns_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "client.csv"
    row = record_from_stats(STATS, origin_ns=0).as_row()
    assert list(row) == [f["name"] for f in contracts.table("radio")["fields"]]
    files.append_table(path, "radio", [row])
    assert list(contracts.table_defects("radio", path)) == []


class Link:
    """A statistics socket that says what it is told, then closes."""

    def __init__(self, path: Path, *sessions: Sequence[dict[str, Any]], tail: bytes = b"") -> None:
        self.path = path
        self.sessions = list(sessions)
        self.tail = tail

    async def __aenter__(self) -> "Link":
        self.server = await asyncio.start_unix_server(self.answer, str(self.path))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for line in self.sessions.pop(0) if self.sessions else []:
            writer.write(json.dumps(line).encode() + b"\n")
        writer.write(self.tail)
        await writer.drain()
        writer.close()


def test_the_reader_takes_its_own_station_only_and_ends_with_the_link(tmp_path: Path) -> None:
    async def read() -> list[RadioRecord | None]:
        lines: list[dict[str, Any]] = [
            STATS | {"station": "other"},
            {"kind": "wired"},
            STATS,
            STATS | {"retries": 9},
        ]
        async with Link(tmp_path / "s", lines, tail=b'{"kind":"stat'):
            reader = LinkStatsReader("laptop", "client", tmp_path / "s", 0)
            await reader.open()
            got = [await reader.read() for _ in range(3)]
            await reader.close()
            await reader.close()
        return got

    got = asyncio.run(read())
    assert [r.retries if r else None for r in got] == [3, 9, None]


def test_no_link_is_one_clear_sentence(tmp_path: Path) -> None:
    reader = LinkStatsReader("client", "client", tmp_path / "none", 0)
    with pytest.raises(RunFailed, match="does not answer on its statistics socket") as caught:
        asyncio.run(reader.open())
    assert caught.value.code == "link_stopped"


class Sink:
    def __init__(self, wanted: int) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.wanted = wanted
        self.enough = asyncio.Event()

    def append_radio(self, node: str, rows: Sequence[dict[str, Any]]) -> None:
        self.rows += [(node, row) for row in rows]
        if len(self.rows) >= self.wanted:
            self.enough.set()


def test_the_log_reopens_a_reader_that_ended_and_tells_the_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radio_log, "REOPEN_PAUSE_S", 0.0)
    monkeypatch.setattr(radio_log, "BATCH_RECORDS", 1)

    async def follow() -> tuple[Sink, list[str], list[str]]:
        sink = Sink(wanted=3)
        async with Link(tmp_path / "s", [STATS, STATS], [STATS]):
            reader = LinkStatsReader("client", "client", tmp_path / "s", 0)
            async with RadioLog(sink, [reader]) as log:
                await asyncio.wait_for(sink.enough.wait(), 60)
                return sink, log.take_losses(), log.take_losses()

    sink, lost, again = asyncio.run(follow())
    assert [node for node, _ in sink.rows[:3]] == ["client"] * 3
    assert lost[0] == "radio of client: its reader ended"
    assert again == []


def test_what_is_in_hand_is_written_at_the_end(tmp_path: Path) -> None:
    async def follow() -> Sink:
        sink = Sink(wanted=99)
        seen = asyncio.Event()

        class Reader:
            node = "client"
            left = 2

            async def open(self) -> None:
                return None

            async def read(self) -> RadioRecord | None:
                if self.left:
                    self.left -= 1
                    return record_from_stats(STATS, 0)
                seen.set()
                await asyncio.Event().wait()
                return None

            async def close(self) -> None:
                return None

        async with RadioLog(sink, [Reader()]):
            await asyncio.wait_for(seen.wait(), 60)
            assert sink.rows == []
        return sink

    assert len(asyncio.run(follow()).rows) == 2

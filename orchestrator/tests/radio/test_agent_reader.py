# SPDX-License-Identifier: Apache-2.0
"""The reader of a real radio: lines of the agent become records; what ends and what goes wrong."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import LocalHost
from netjoule.radio import AgentReader, RadioRecord
from netjoule.radio.agent_reader import agent_options

READY = {"event": "ready", "t_ns": 0, "source": "nl80211", "every_s": 1.0, "boot_id": "x"}
READING = {
    "event": "reading",
    "t_ns": 7_500_000_000,
    "cpu_s": 0.5,
    "missed": 0,
    "source": "nl80211",
    "state": "associated",
    "role": "client",
    "bssid": "02:00:00:00:00:0a",
    "power_save": False,
    "station": "02:00:00:00:00:0a",
    "phy_rate_mbps": 216.0,
    "mcs": 13,
    "streams": 2,
    "width_mhz": 40,
    "guard_interval_ns": 800,
    "rx_phy_rate_mbps": 81.0,
    "rx_mcs": 10,
    "rx_streams": 2,
    "rx_width_mhz": 40,
    "rx_guard_interval_ns": 800,
    "rssi_dbm": -50.0,
    "retries": 7,
    "failed": 0,
    "flag": "",
}
GONE = {"event": "interface_gone", "t_ns": 9_500_000_000, "cpu_s": 0.75, "missed": 0, "message": "no wlan0"}


def agent(tmp_path: Path, lines: Sequence[dict[str, Any]], tail: str = "", code: int = 0) -> tuple[str, ...]:
    """A program that says these lines, then waits for the end of its input."""
    said = tmp_path / "said"
    said.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail, encoding="utf-8")
    script = f"import sys; sys.stdout.write(open({str(said)!r}).read()); sys.stdout.flush(); sys.exit({code})"
    return sys.executable, "-S", "-c", script


def reader(argv: Sequence[str]) -> AgentReader:
    return AgentReader("laptop", LocalHost("laptop"), argv, lambda t_ns: (t_ns - 500_000_000) / 1e9)


def read_all(it: AgentReader) -> list[RadioRecord]:
    async def read() -> list[RadioRecord]:
        await it.open()
        got = []
        try:
            while record := await it.read():
                got.append(record)
        finally:
            await it.close()
            await it.close()
        return got

    return asyncio.run(read())


def test_a_line_becomes_a_record_in_campaign_time(tmp_path: Path) -> None:
    it = reader(agent(tmp_path, [READY, READING]))
    (record,) = read_all(it)
    assert record == RadioRecord(
        t_s=7.0,
        phy_rate_mbps=216.0,
        mcs=13,
        streams=2,
        width_mhz=40,
        guard_interval_ns=800,
        rx_phy_rate_mbps=81.0,
        rx_mcs=10,
        rx_streams=2,
        rx_width_mhz=40,
        rx_guard_interval_ns=800,
        rssi_dbm=-50.0,
        retries=7,
        failed=0,
        power_save=False,
        bssid="02:00:00:00:00:0a",
        station="02:00:00:00:00:0a",
        source="nl80211",
    )
    assert (it.node, it.ready["source"], it.ready["every_s"]) == ("laptop", "nl80211", 1.0)


def test_the_cost_of_reading_is_that_since_the_row_before(tmp_path: Path) -> None:
    later = [READING | {"cpu_s": cpu_s} for cpu_s in (0.503, 0.503, 0.51)]
    got = read_all(reader(agent(tmp_path, [READY, READING, *later])))
    assert [record.reader_cpu_s for record in got] == [None, 0.003, 0.0, 0.007]


def test_a_gap_is_a_row_without_figures(tmp_path: Path) -> None:
    again = {"event": "reading_again", "t_ns": 1, "cpu_s": 0.8}
    ended = {"event": "ended", "t_ns": 1, "cpu_s": 0.8}
    got = read_all(reader(agent(tmp_path, [READY, READING, GONE, again, READING | {"cpu_s": 0.8}, ended])))
    assert [record.flag for record in got] == ["", "interface_gone", ""]
    assert got[1] == RadioRecord(t_s=9.0, reader_cpu_s=0.25, flag="interface_gone")
    assert got[2].reader_cpu_s == 0.05


def test_its_rows_fit_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "laptop.csv"
    got = read_all(reader(agent(tmp_path, [READY, READING, GONE])))
    files.append_table(path, "radio", [record.as_row() for record in got])
    assert list(contracts.table_defects("radio", path)) == []


def test_a_line_cut_off_by_the_agents_end_is_no_record(tmp_path: Path) -> None:
    assert len(read_all(reader(agent(tmp_path, [READY, READING], tail='{"event":"rea')))) == 1


def test_a_line_that_cannot_be_read_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Expecting"):
        read_all(reader(agent(tmp_path, [READY], tail="rubbish\n")))


def test_an_agent_that_cannot_read_the_radio_says_why(tmp_path: Path) -> None:
    told = {"event": "error", "message": "there is no wireless interface wlan9; the radios here: wlan0"}
    with pytest.raises(RunFailed, match="no wireless interface wlan9; the radios here: wlan0") as caught:
        read_all(reader(agent(tmp_path, [told], code=3)))
    assert (caught.value.code, caught.value.exit_code) == ("radio_reader_lost", 1)


def test_closing_its_input_ends_the_agent() -> None:
    script = (
        'import sys; print(\'{"event":"ready"}\', flush=True); sys.stdin.read(); '
        'print(\'{"event":"ended"}\', flush=True)'
    )

    async def run() -> tuple[RadioRecord | None, int]:
        it = reader((sys.executable, "-S", "-c", script))
        await it.open()
        process = it._process
        assert process is not None
        waiting = asyncio.create_task(process.wait())
        await it.close()
        return await it.read(), await waiting

    assert asyncio.run(run()) == (None, 0)


def test_options_of_the_agent() -> None:
    assert agent_options("wlan0", 0.5, "iw") == ("--interface", "wlan0", "--every-s", "0.5", "--source", "iw")

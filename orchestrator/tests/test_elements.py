# SPDX-License-Identifier: Apache-2.0
"""What an access point that dies, a client that roams or a host out of reach means for runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import runner_fakes as fakes

from netjoule import elements
from netjoule.elements import Elements
from netjoule.errors import RunFailed
from netjoule.radio import RadioRecord
from netjoule.radio_log import RadioLog


class Reader:
    """Gives these records, then stays silent."""

    node = "client"

    def __init__(self, *records: RadioRecord) -> None:
        self._records = list(records)
        self.given = asyncio.Event()

    async def open(self) -> None:
        return None

    async def read(self) -> RadioRecord | None:
        if self._records:
            return self._records.pop(0)
        self.given.set()
        await asyncio.Event().wait()
        return None

    async def close(self) -> None:
        return None


class Sink:
    def append_radio(self, node: str, rows: Any) -> None:
        return None


class Hosts:
    async def returned(self) -> None:
        return None


def told(*flags: str, client: str = "client") -> list[tuple[str, str]]:
    """Reasons of a run over seconds 0 to 10 with a record each second."""

    async def whole() -> list[tuple[str, str]]:
        reader = Reader(*(RadioRecord(t_s=float(t_s), flag=flag) for t_s, flag in enumerate(flags)))
        async with RadioLog(Sink(), [reader], client) as radio:
            await reader.given.wait()
            return [(r.code, r.detail) for r in Elements(Hosts(), radio).reasons(0.0, 10.0)]

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("flags", "reasons"),
    [
        (("", "rate_mismatch", "rx_rate_unchecked"), []),
        (("", *["disassociated"] * 2), [("radio_disassociated", "client is not associated at 1.0 s")]),
        (("roamed;counter_reset",), [
            ("radio_roamed", "client went to another access point at 0.0 s"),
            ("radio_disassociated", "client was associated anew at 0.0 s"),
        ]),
        (("interface_gone",), [("radio_disassociated", "client has lost its radio interface at 0.0 s")]),
    ],
)  # fmt: skip
def test_what_the_clients_radio_says_decides(flags, reasons) -> None:
    assert told(*flags) == reasons


def test_another_nodes_radio_decides_nothing() -> None:
    assert told("disassociated", client="laptop") == []


def test_a_client_that_stays_away_ends_the_campaign_with_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(elements, "RETURN_S", 0.01)

    async def whole() -> None:
        reader = Reader(RadioRecord(t_s=1.0, flag="disassociated"))
        async with RadioLog(Sink(), [reader], "client") as radio:
            await reader.given.wait()
            await Elements(Hosts(), radio).all_back()

    with pytest.raises(RunFailed, match="is not associated since") as caught:
        asyncio.run(whole())
    assert caught.value.code == "radio_disassociated"


def test_a_flow_that_fails_with_its_host_is_repeated_however_often(tmp_path: Path) -> None:
    """More often than failures in a row may happen: the host was away, nothing is wrong with the next run."""
    script = fakes.Script()
    failures = iter(range(7))

    def report(spec: Any, document: dict[str, Any]) -> dict[str, Any]:
        if next(failures, None) is not None:
            raise RunFailed("netjoule-traffic send was lost with its host", code="host_unreachable")
        return document

    script.on_report = report
    load = fakes.workload(limits={"max_attempts": 10})
    with fakes.new_campaign(tmp_path / "c", load) as campaign:
        outcome, _ = fakes.run(campaign, script)
        rows = campaign.rows()
    assert outcome.end == "complete"
    assert {row.reason for row in rows if row.status == "invalid"} == {"host_unreachable"}
    latest = {row.mini_block: row.attempt for row in rows}
    assert {r.status for r in rows if r.attempt == latest[r.mini_block]} == {"done"}
    assert script.collected > 0


def test_a_host_that_is_given_up_ends_the_session_and_resume_goes_on(tmp_path: Path) -> None:
    """What is finished stays as it is."""
    words = "given up after 10 min: it cannot be reached over SSH: no answer in time"
    testbeds: list[fakes.FakeTestbed] = []
    script = fakes.Script()

    def report(spec: Any, document: dict[str, Any]) -> dict[str, Any]:
        if len(script.of("go")) == 3:
            testbeds[0].death.set_result(RunFailed(words, where="host server", code="host_unreachable"))
        return document

    script.on_report = report
    with fakes.new_campaign(tmp_path / "c") as campaign:
        with pytest.raises(RunFailed, match=f"host server: {words}") as caught:
            fakes.run(campaign, script, on_up=testbeds.append)
        kept = {row.run_id: (campaign.run_dir(row.run_id) / "run.json") for row in campaign.rows()[:2]}
        before = {run_id: path.read_bytes() for run_id, path in kept.items()}
        assert [row.status for row in campaign.rows()] == ["done", "done", "planned", "planned"]
    assert caught.value.code == "host_unreachable"
    with fakes.Campaign.open(tmp_path / "c") as campaign:
        outcome, _ = fakes.run(campaign, fakes.Script())
        assert [row.status for row in campaign.rows()] == ["done"] * 4
        assert [session["end"] for session in campaign.document["sessions"]] == ["failed", "complete"]
    assert outcome.end == "complete"
    assert {run_id: path.read_bytes() for run_id, path in kept.items()} == before

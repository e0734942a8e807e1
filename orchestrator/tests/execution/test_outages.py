# SPDX-License-Identifier: Apache-2.0
"""What an access point that dies, a client that roams or a host out of reach means for runs."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import runner_fakes as fakes
from golden_sentences import raises

from netjoule.core.errors import HostLacks, RunFailed
from netjoule.core.reason import Reason, invalidates
from netjoule.execution import outages
from netjoule.execution.outages import Outages
from netjoule.hosts.host import LocalHost
from netjoule.radio import RadioRecord, log
from netjoule.radio.log import RadioLog
from netjoule.radio.rates import RateLimits
from netjoule.topology.topology import Topology
from netjoule.workload.load import Place


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


def told(*flags: str, clients: tuple[str, ...] = ("client",)) -> list[tuple[str, str]]:
    """Reasons of a run over seconds 0 to 10 with a record each second."""

    async def whole() -> list[tuple[str, str]]:
        reader = Reader(*(RadioRecord(t_s=float(t_s), flag=flag) for t_s, flag in enumerate(flags)))
        async with RadioLog(Sink(), [reader], clients) as radio:
            await reader.given.wait()
            return [(r.code, r.detail) for r in Outages(Hosts(), radio).reasons(0.0, 10.0)]

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


def test_rates_outside_the_topologys_are_one_reason_that_does_not_invalidate() -> None:
    records = [
        RadioRecord(t_s=1.0, mcs=7, streams=1),  # before the measure window
        RadioRecord(t_s=2.0, mcs=13, streams=2, rx_mcs=13, rx_streams=2),
        RadioRecord(t_s=3.0, mcs=13, streams=2, rx_mcs=5, rx_streams=1),
        RadioRecord(t_s=4.0, mcs=15, streams=2, rx_mcs=13, rx_streams=2),
    ]

    async def whole(rates: Any) -> list[Any]:
        reader = Reader(*records)
        limits = RateLimits.of({"mode": "11n", "rates": rates})
        async with RadioLog(Sink(), [reader], ["laptop"], limits) as radio:
            await reader.given.wait()
            return Outages(Hosts(), radio).rate_reasons(2.0, 10.0)

    seen = "client received at MCS 5 at 3.0 s; 2 looks in all"
    found = asyncio.run(whole({"mcs": [13], "streams": 2}))
    assert found == [Reason("radio_outside_rates", seen)]
    assert not invalidates(found[0].code)
    assert asyncio.run(whole("automatic")) == []


def test_a_run_at_other_rates_than_the_topologys_counts_with_a_note(tmp_path: Path, monkeypatch) -> None:
    """Every look of the client, one each 0.1 s, is at MCS 5."""
    looks = [RadioRecord(t_s=tenth / 10, mcs=5, streams=1) for tenth in range(1000)]
    monkeypatch.setattr(fakes.FakeTestbed, "radio_readers", [Reader(*looks)])
    monkeypatch.setattr(Topology, "wifi", {"mode": "11n", "rates": {"mcs": [13]}})
    with fakes.new_campaign(tmp_path / "c") as campaign:
        outcome, _ = fakes.run(campaign, fakes.Script())
        runs = [json.loads((campaign.run_dir(r.run_id) / "run.json").read_text()) for r in campaign.rows()]
    assert outcome.end == "complete"
    for run in runs:
        assert run["status"] == "done"
        (reason,) = run["reasons"]
        assert reason["code"] == "radio_outside_rates"
        assert re.fullmatch(r"client sent at MCS 5 at \d+\.\d s; 2\d looks in all", reason["detail"])


def test_another_nodes_radio_decides_nothing() -> None:
    assert told("disassociated", clients=("laptop",)) == []


def test_a_reader_that_fails_to_open_in_any_way_is_opened_again(monkeypatch) -> None:
    """A host that lacks a program is being set up, one out of reach returns: the log goes on with both."""
    monkeypatch.setattr(log, "REOPEN_PAUSE_S", 0.0)
    problems = [
        HostLacks("cannot start the radio agent", where="host client"),
        RunFailed("it was lost", where="host client", code="host_unreachable"),
    ]

    class Ending(Reader):
        opened = 0

        async def open(self) -> None:
            self.opened += 1
            if self.opened > 1 and problems:
                raise problems.pop(0)

        async def read(self) -> RadioRecord | None:
            if self.opened == 1:
                return None
            return await super().read()

    async def whole() -> list[str]:
        reader = Ending(RadioRecord(t_s=2.0, flag="roamed"))
        async with RadioLog(Sink(), [reader], ["client"]) as radio:
            await asyncio.wait_for(reader.given.wait(), 20)
            assert [fault.code for fault in radio.faults(0.0, 10.0)] == ["radio_roamed"]
            await radio.wait_associated(0.0)
            return radio.take_losses()

    assert asyncio.run(whole()) == ["radio of client: its reader ended"]
    assert problems == []


def test_a_radios_log_that_cannot_go_on_ends_the_campaign_before_its_next_run() -> None:
    class FullDisk:
        def append_radio(self, node: str, rows: Any) -> None:
            raise RunFailed("cannot write radio/client.csv: the disk is full")

    async def whole() -> None:
        records = [RadioRecord(t_s=float(t_s)) for t_s in range(log.BATCH_RECORDS)]
        async with RadioLog(FullDisk(), [Reader(*records)], ["client"]) as radio:
            await asyncio.wait(radio._tasks)
            await Outages(Hosts(), radio).all_back()

    with raises(RunFailed):
        asyncio.run(asyncio.wait_for(whole(), 20))


def test_a_client_that_stays_away_ends_the_campaign_with_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(outages, "RETURN_S", 0.01)

    async def whole() -> None:
        reader = Reader(RadioRecord(t_s=1.0, flag="disassociated"))
        async with RadioLog(Sink(), [reader], ["client"]) as radio:
            await reader.given.wait()
            await Outages(Hosts(), radio).all_back()

    with raises(RunFailed) as caught:
        asyncio.run(whole())
    assert caught.value.code == "radio_disassociated"


class SecondReader(Reader):
    node = "second"


def test_every_clients_radio_is_watched_and_each_must_be_back(monkeypatch) -> None:
    monkeypatch.setattr(outages, "RETURN_S", 0.01)
    gone, back = RadioRecord(t_s=1.0, flag="disassociated"), RadioRecord(t_s=2.0)

    async def whole(first: Reader, second: Reader) -> list[str]:
        async with RadioLog(Sink(), [first, second], ["client", "second"]) as radio:
            await asyncio.gather(first.given.wait(), second.given.wait())
            await Outages(Hosts(), radio).all_back()
            return [reason.detail for reason in Outages(Hosts(), radio).reasons(0.0, 10.0)]

    # The first one's return is not the second one's.
    with raises(RunFailed):
        asyncio.run(whole(Reader(gone, back), SecondReader(gone)))
    assert asyncio.run(whole(Reader(), SecondReader(gone, back))) == ["second is not associated at 1.0 s"]


@pytest.mark.parametrize(("takes_part", "status"), [(True, "invalid"), (False, "done")])
def test_a_second_clients_radio_decides_about_runs_in_which_it_takes_part(
    tmp_path: Path, monkeypatch, takes_part, status
) -> None:
    clients = (LocalHost("client"), LocalHost("second"))
    place = Place({"client": clients, "server": (LocalHost("server"),)}, {"server": "10.79.0.1"})
    monkeypatch.setattr(fakes.FakeTestbed, "place", place)
    roams = [RadioRecord(t_s=t_s / 10, flag="roamed") for t_s in range(1000)]
    monkeypatch.setattr(fakes.FakeTestbed, "radio_readers", [Reader(), SecondReader(*roams)])
    once = {"transports": ["udp"], "offered_rate_mbps": [1], "limits": {"max_attempts": 1}}
    load = fakes.workload(**once, clients=2 if takes_part else 1)
    with fakes.new_campaign(tmp_path / "c", load, fakes.with_clients(2)) as campaign:
        fakes.run(campaign, fakes.Script())
        (row,) = campaign.rows()
        run = json.loads((campaign.run_dir(row.run_id) / "run.json").read_text())
    assert run["status"] == status
    roamed = [("radio_roamed", "second went to another access point")]
    assert [(r["code"], r["detail"].partition(" at ")[0]) for r in run["reasons"]] == roamed * takes_part


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
    assert {r.status for r in rows if r.attempt == latest[r.mini_block]} == {"valid"}
    assert script.collected > 0


class Silent(fakes.FakeTestbed):
    """Its hosts say nothing when they are asked between runs, so often."""

    times = {"clocks": 0, "collect": 0}  # noqa: RUF012
    waited = 0

    async def returned(self) -> None:
        self.waited += 1

    async def clock_rows(self, t_s: float) -> Any:
        if self._script.of("end")[3:]:  # the flow of the block's last run has ended: the closing look
            self._fail("clocks")
        return await super().clock_rows(t_s)

    async def collect(self) -> None:
        self._fail("collect")
        await super().collect()

    def _fail(self, what: str) -> None:
        if self.times[what]:
            self.times[what] -= 1
            raise RunFailed("no answer in time", where="host server", code="host_unreachable")


@pytest.mark.parametrize("what", ["clocks", "collect"])
def test_a_host_lost_between_runs_is_waited_for(tmp_path: Path, monkeypatch, what: str) -> None:
    testbeds: list[Silent] = []
    monkeypatch.setattr(fakes, "FakeTestbed", Silent)
    monkeypatch.setattr(Silent, "times", {"clocks": 0, "collect": 0} | {what: 8})
    with fakes.new_campaign(tmp_path / "c") as campaign:
        outcome, _ = fakes.run(campaign, fakes.Script(), on_up=testbeds.append)
        rows = campaign.rows()
    assert outcome.end == "complete"
    assert [(row.status, row.attempt) for row in rows] == [("valid", 1)] * 4
    assert Silent.times[what] == 0
    assert testbeds[0].waited == len(rows) + 8


@pytest.mark.parametrize("code", ["host_unreachable", "clock_unsure"])
def test_a_host_in_reach_that_answers_nothing_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch, code: str
) -> None:
    asked: list[int] = []

    class Never(fakes.FakeTestbed):
        async def collect(self) -> None:
            asked.append(self._script.clock.now_ns)
            raise RunFailed("no answer in time", where="host server", code=code)

    monkeypatch.setattr(fakes, "FakeTestbed", Never)
    with (
        fakes.new_campaign(tmp_path / "c") as campaign,
        raises(RunFailed),
    ):
        fakes.run(campaign, fakes.Script())
    waited_s = (asked[-1] - asked[0]) / 1e9
    assert (600 < waited_s < 610) if code == "host_unreachable" else len(asked) == 1


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
        before = {run_id: json.loads(path.read_text()) for run_id, path in kept.items()}
        assert [row.status for row in campaign.rows()] == ["valid", "valid", "planned", "planned"]
    assert caught.value.code == "host_unreachable"
    with fakes.Campaign.open(tmp_path / "c") as campaign:
        outcome, _ = fakes.run(campaign, fakes.Script())
        assert [row.status for row in campaign.rows()] == ["valid"] * 4
        assert [session["end"] for session in campaign.document["sessions"]] == ["failed", "complete"]
    assert outcome.end == "complete"
    # How a run and its null run compare is written with their results, which the first session did not reach.
    after = {run_id: json.loads(path.read_text()) for run_id, path in kept.items()}
    assert [run.pop("control") is None for run in before.values()] == [True, True]
    assert [(run.pop("control") or {}).get("run_id") for run in after.values()].count(None) == 1
    assert after == before

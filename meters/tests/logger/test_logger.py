# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from datetime import date
from typing import ClassVar

from golden_sentences import raises
from meter_processes import PATIENCE_S

from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import InvalidLog, LogWriteError, NoAnswer
from netjoule_meters.logger import clock_follower, process
from netjoule_meters.logger.clock_exchange import Offset
from netjoule_meters.logger.process import Logger
from netjoule_meters.reading import Flag, Reading

CONFIGS = [
    MeterConfig("a", "client", "fake", "port-a"),
    MeterConfig("b", "access_point", "fake", "port-b"),
]


class FakePassport:
    def document(self):
        return {"meter_id": "fake"}


class FakeMeter:
    """A meter that gives ``readings`` and then waits for the end."""

    update_interval_s = 0.1
    settings: ClassVar = {"stuck_after_s": None}

    def __init__(self, readings, open_error=None):
        self.given = list(readings)
        self.open_error = open_error
        self.given_all = threading.Event()
        self.cancelled = threading.Event()
        self.closed = False

    def open(self):
        if self.open_error:
            raise self.open_error

    def close(self):
        self.closed = True

    def cancel(self):
        self.cancelled.set()

    def passport(self, config, today):
        return FakePassport()

    def readings(self, stop):
        yield from self.given
        self.given_all.set()
        self.cancelled.wait(PATIENCE_S)


def make(tmp_path, clock, meters, events):
    by_id = dict(zip((config.meter_id for config in CONFIGS), meters, strict=True))
    return Logger(
        configs=CONFIGS,
        out=tmp_path,
        origin_ns=0,
        clock=clock,
        today=date(2026, 11, 21),
        emit=events.append,
        build=lambda config, _clock, _notify: by_id[config.meter_id],
    )


def test_each_meter_has_its_file_and_all_rows(tmp_path, clock):
    meters = [
        FakeMeter(Reading(n * 10**8, float(n)) for n in range(50)),
        FakeMeter([Reading(0, flag=Flag.NO_DATA)]),
    ]
    events = []
    logger = make(tmp_path, clock, meters, events)
    thread = threading.Thread(target=logger.run)
    thread.start()
    assert all(meter.given_all.wait(PATIENCE_S) for meter in meters)
    logger.end()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    told = [event for event in events if event["event"] == "meter"]
    assert [(event["meter_id"], event["kind"]) for event in told] == [("b", "no_data")]
    events = [event for event in events if event not in told]
    assert [event["event"] for event in events] == ["ready", "ended"]
    assert events[1]["rows"] == {"a": 50, "b": 1}
    assert events[1]["summary"]["a"]["readings"] == 50 and events[1]["summary"]["b"]["no_data"] == 1
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 51
    assert (tmp_path / "meters" / "b.csv").read_text().splitlines()[1] == "0.000000,0,,,,,no_data"
    assert all(meter.closed for meter in meters)


def test_a_slow_disk_does_not_delay_a_meter(tmp_path, clock, monkeypatch):
    release = threading.Event()
    real_append = process.ReadingsFile.append

    def slow_append(self, reading):
        assert release.wait(PATIENCE_S)
        real_append(self, reading)

    monkeypatch.setattr(process.ReadingsFile, "append", slow_append)
    # The writer holds one row in its hand or, on a busy machine, none yet: either way 1000 wait at some time.
    meters = [FakeMeter(Reading(n, 1.0) for n in range(1100)), FakeMeter([])]
    events = []
    logger = make(tmp_path, clock, meters, events)
    thread = threading.Thread(target=logger.run)
    thread.start()
    assert meters[0].given_all.wait(PATIENCE_S), "all readings are taken while not one is written"
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 1
    release.set()
    logger.end()
    thread.join(PATIENCE_S)
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 1101
    told = [event["message"] for event in events if event.get("kind") == "slow_disk"]
    assert [message.split(";")[0] for message in told] == [
        "500 rows wait for a slow disk",
        "1000 rows wait for a slow disk",
    ], "once, and again when they have doubled"


def test_a_full_disk_ends_all_with_one_sentence(tmp_path, clock, monkeypatch):
    def full(self, reading):
        raise LogWriteError(f"cannot write {self.path}: No space left on device")

    monkeypatch.setattr(process.ReadingsFile, "append", full)
    meters = [FakeMeter([Reading(0, 1.0)]), FakeMeter([])]
    with raises(LogWriteError):
        make(tmp_path, clock, meters, []).run()
    assert all(meter.closed and meter.cancelled.is_set() for meter in meters)


def test_one_meter_that_does_not_answer_is_named_and_nothing_is_announced(tmp_path, clock):
    meters = [FakeMeter([]), FakeMeter([], open_error=NoAnswer("no usable answer on port-b"))]
    events = []
    with raises(NoAnswer):
        make(tmp_path, clock, meters, events).run()
    assert events == []
    assert all(meter.closed for meter in meters)


def test_ended_before_it_began(tmp_path, clock):
    logger = make(tmp_path, clock, [FakeMeter([]), FakeMeter([])], [])
    logger.end()
    logger.run()
    assert (tmp_path / "meters" / "a.csv").exists()


def test_resume_goes_on_numbering(tmp_path, clock):
    for _ in range(2):
        meters = [FakeMeter([Reading(0, 1.0), Reading(1, 1.0)]), FakeMeter([])]
        logger = make(tmp_path, clock, meters, [])
        thread = threading.Thread(target=logger.run)
        thread.start()
        assert meters[0].given_all.wait(PATIENCE_S)
        logger.end()
        thread.join(PATIENCE_S)
    rows = (tmp_path / "meters" / "a.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in rows] == ["0", "1", "2", "3"]


def test_a_second_session_with_an_origin_of_its_own_is_refused(tmp_path, clock):
    meters = [FakeMeter([Reading(60 * 10**9, 1.0)]), FakeMeter([])]
    run_to_the_end(make(tmp_path, clock, meters, []), meters)
    clock.now_ns = 120 * 10**9
    again = make(tmp_path, clock, meters, events := [])
    again.origin_ns = clock.now_ns
    with raises(InvalidLog):
        again.run()
    assert events == [], "nothing is announced"
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 2


def run_to_the_end(logger, meters):
    thread = threading.Thread(target=logger.run)
    thread.start()
    assert all(meter.given_all.wait(PATIENCE_S) for meter in meters)
    logger.end()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_what_the_watcher_finds_is_told_in_campaign_time_and_flagged_in_the_file(tmp_path, clock):
    frozen = FakeMeter(Reading(10**9 + n * 10**8, 7.5, 230.0) for n in range(40))
    frozen.settings = {"stuck_after_s": 2}
    holed = FakeMeter(Reading(10**9 + n * 10**8, float(n)) for n in range(40) if not 10 <= n < 20)
    events = []
    logger = make(tmp_path, clock, [frozen, holed], events)
    logger.origin_ns = 10**9
    run_to_the_end(logger, [frozen, holed])
    told = {event["meter_id"]: event for event in events if event["event"] == "meter"}
    assert (told["a"]["kind"], told["a"]["t_s"], told["a"]["since_s"]) == ("stuck", 2.0, 0.0)
    assert (told["b"]["kind"], told["b"]["since_s"], told["b"]["until_s"]) == ("gap", 0.9, 2.0)
    flags = [line.rsplit(",", 1)[1] for line in (tmp_path / "meters" / "a.csv").read_text().splitlines()[1:]]
    assert flags == [""] * 20 + ["stale"] * 20


def test_stamps_of_another_host_are_the_controllers(tmp_path, clock, monkeypatch):
    ahead_ns = 5 * 10**12  # that host has been up for longer

    def ask(host, port, *, clock):
        assert (host, port) == ("controller", 5303)
        return Offset(clock.monotonic_ns(), -ahead_ns, 40_000)

    monkeypatch.setattr(clock_follower, "measure", ask)
    monkeypatch.setattr(clock_follower.socket, "gethostname", lambda: "meterhost")
    clock.now_ns = ahead_ns + 3 * 10**9
    meters = [FakeMeter(Reading(clock.now_ns + n * 10**8, float(n)) for n in range(3)), FakeMeter([])]
    events = []
    logger = make(tmp_path, clock, meters, events)
    logger.origin_ns, logger.clock_server = 10**9, ("controller", 5303)
    run_to_the_end(logger, meters)
    times = [line.split(",")[0] for line in (tmp_path / "meters" / "a.csv").read_text().splitlines()[1:]]
    assert times == ["2.000000", "2.100000", "2.200000"]
    (row,) = [event["row"] for event in events if event["event"] == "clock"]
    assert row == {"t_s": 2.0, "host": "meterhost", "offset_s": 5000.0, "drift_ppm": None,
                   "residual_s": 4e-05, "method": "control_exchange"}  # fmt: skip

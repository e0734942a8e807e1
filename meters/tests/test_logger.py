# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from datetime import date

import pytest

from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import LogWriteError, NoAnswer
from netjoule_meters.logger import process
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
        self.cancelled.wait(10)


def make(tmp_path, clock, meters, events):
    by_id = dict(zip((config.meter_id for config in CONFIGS), meters, strict=True))
    return Logger(
        configs=CONFIGS,
        out=tmp_path,
        origin_ns=0,
        clock=clock,
        today=date(2026, 11, 21),
        announce=events.append,
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
    assert all(meter.given_all.wait(5) for meter in meters)
    logger.end()
    thread.join(5)
    assert not thread.is_alive()
    assert [event["event"] for event in events] == ["ready", "ended"]
    assert events[1]["rows"] == {"a": 50, "b": 1}
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 51
    assert (tmp_path / "meters" / "b.csv").read_text().splitlines()[1] == "0.000000,0,,,,no_data"
    assert all(meter.closed for meter in meters)


def test_a_slow_disk_does_not_delay_a_meter(tmp_path, clock, monkeypatch):
    release = threading.Event()
    real_append = process.ReadingsFile.append

    def slow_append(self, reading):
        assert release.wait(10)
        real_append(self, reading)

    monkeypatch.setattr(process.ReadingsFile, "append", slow_append)
    meters = [FakeMeter(Reading(n, 1.0) for n in range(1000)), FakeMeter([])]
    logger = make(tmp_path, clock, meters, [])
    thread = threading.Thread(target=logger.run)
    thread.start()
    assert meters[0].given_all.wait(5), "all readings are taken while not one is written"
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 1
    release.set()
    logger.end()
    thread.join(5)
    assert len((tmp_path / "meters" / "a.csv").read_text().splitlines()) == 1001


def test_a_full_disk_ends_all_with_one_sentence(tmp_path, clock, monkeypatch):
    def full(self, reading):
        raise LogWriteError(f"cannot write {self.path}: No space left on device")

    monkeypatch.setattr(process.ReadingsFile, "append", full)
    meters = [FakeMeter([Reading(0, 1.0)]), FakeMeter([])]
    with pytest.raises(LogWriteError, match="No space left"):
        make(tmp_path, clock, meters, []).run()
    assert all(meter.closed and meter.cancelled.is_set() for meter in meters)


def test_one_meter_that_does_not_answer_is_named_and_nothing_is_announced(tmp_path, clock):
    meters = [FakeMeter([]), FakeMeter([], open_error=NoAnswer("no usable answer on port-b"))]
    events = []
    with pytest.raises(NoAnswer, match="port-b"):
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
        assert meters[0].given_all.wait(5)
        logger.end()
        thread.join(5)
    rows = (tmp_path / "meters" / "a.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in rows] == ["0", "1", "2", "3"]

# SPDX-License-Identifier: Apache-2.0
"""The real processes: emulated HM8115-2 and CC128 on pseudo-terminals, adapters, logger, command line."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import select
import subprocess
import termios
import threading
import time

import pytest
from instrument_threads import spacing_s
from meter_processes import COMMAND, PATIENCE_S, Process

from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.control import request_fault
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.meter_factory import open_meter
from netjoule_meters.reading import Flag

HM_SETTINGS = {"voltage_range_v": 500, "current_range_a": 0.16}


def emulator(model: str, link, *arguments: str) -> Process:
    process = Process("emulate", model, "--link", str(link), *arguments)
    process.wait_for("ready")
    return process


def take(adapter, link, count: int, **settings):
    meter = open_meter(MeterConfig("m1", "client", adapter, str(link), settings))
    try:
        return list(itertools.islice(meter.readings(threading.Event()), count))
    finally:
        meter.close()


def config(tmp_path, **adapters) -> str:
    """A configuration: links by adapter."""
    meters = [
        {
            "meter_id": adapter,
            "node": node,
            "adapter": adapter,
            "resource": str(link),
            "settings": HM_SETTINGS if adapter == "hm8115" else {},
            "power_source": "modelled",
            "device_model": "bench",
            "device_form": "constant",
        }
        for (adapter, link), node in zip(adapters.items(), ("client", "access-point"), strict=False)
    ]
    path = tmp_path / "meters.json"
    path.write_text(json.dumps({"schema_version": 1, "meters": meters}))
    return str(path)


def rows(tmp_path, meter_id: str) -> list[dict[str, str]]:
    with (tmp_path / "meters" / f"{meter_id}.csv").open() as file:
        return list(csv.DictReader(file))


def wait_for_rows(tmp_path, meter_id: str, count: int, process: Process) -> list[dict[str, str]]:
    deadline = time.monotonic() + 2 * PATIENCE_S
    while len(found := rows(tmp_path, meter_id)) < count:
        assert process.child.poll() is None, process.child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def read_hm(port, *more: str) -> subprocess.CompletedProcess[str]:
    ranges = ("--set", "voltage_range_v=500", "--set", "current_range_a=0.16")
    return run("read", "hm8115", "--port", str(port), *ranges, "-n", "2", *more)


def assert_one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


# -- HM8115-2 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("handshake", "variant"), [("xon_xoff", "values"), ("none", "ranges")])
def test_each_cycle_once_whether_the_port_or_the_adapter_takes_flow_control_out(tmp_path, handshake, variant):
    with emulator("hm8115", tmp_path / "hm", "--power-w", "22.93", "--variant", variant):
        readings = take("hm8115", tmp_path / "hm", 6, **HM_SETTINGS, handshake=handshake)
    assert {(reading.flag, reading.power_w) for reading in readings} == {(Flag.GOOD, 22.93)}
    assert {reading.voltage_v for reading in readings} == {230.0 if variant == "values" else None}
    assert 0.44 < spacing_s(readings) < 0.6


def test_values_that_are_asked_for(tmp_path):
    with emulator("hm8115", tmp_path / "hm", "--power-w", "22.93"):
        readings = take("hm8115", tmp_path / "hm", 4, **HM_SETTINGS, readout="query")
    assert {(reading.flag, reading.power_w) for reading in readings} == {(Flag.GOOD, 22.93)}
    assert 0.44 < spacing_s(readings) < 0.6


def heard_on(port, seconds: float) -> bytes:
    """What arrives within so long, apart from what was waiting."""
    descriptor = os.open(port, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
        time.sleep(seconds)
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, 4096)
        return b""
    finally:
        os.close(descriptor)


def test_the_instrument_is_left_quiet_and_can_be_opened_again(tmp_path):
    with emulator("hm8115", tmp_path / "hm", "--power-w", "22.93"):
        for _ in range(2):
            assert take("hm8115", tmp_path / "hm", 1, **HM_SETTINGS)[0].power_w == 22.93
        # The last line may still be leaving; an instrument that goes on says something in every 1.2 s.
        assert any(heard_on(tmp_path / "hm", 1.2) == b"" for _ in range(5))


def test_a_meter_that_streams_when_it_is_opened(tmp_path):
    with emulator("hm8115", tmp_path / "hm", "--power-w", "22.93"):
        descriptor = os.open(tmp_path / "hm", os.O_RDWR | os.O_NOCTTY)
        os.write(descriptor, b"MA1\r")
        assert select.select([descriptor], [], [], PATIENCE_S)[0], "it streams"
        os.close(descriptor)
        assert take("hm8115", tmp_path / "hm", 1, **HM_SETTINGS)[0].power_w == 22.93


def test_faults_of_the_instrument_are_flags(tmp_path):
    control = tmp_path / "control"
    with (
        emulator("hm8115", tmp_path / "hm", "--power-w", "22.93", "--control", str(control)),
        Process("log", "--config", config(tmp_path, hm8115=tmp_path / "hm"), "--out", str(tmp_path)) as log,
    ):
        log.wait_for("ready")
        wait_for_rows(tmp_path, "hm8115", 2, log)
        request_fault(control, {"fault": "range_change"})
        request_fault(control, {"fault": "overflow", "cycles": 2})
        count = len(rows(tmp_path, "hm8115"))
        wait_for_rows(tmp_path, "hm8115", count + 4, log)
        request_fault(control, {"fault": "garbage", "bytes": 40})
        wait_for_rows(tmp_path, "hm8115", count + 7, log)
        assert log.end() == 0
    written = rows(tmp_path, "hm8115")
    flags = [row["flag"] for row in written]
    # The two values after the relay's cycle are over range, the spike after them is none either.
    assert flags.count("overrange") == 2 and "garbage" in flags
    assert {row["power_w"] for row in written if row["flag"] == ""} == {"22.93"}
    assert {row["power_w"] for row in written if row["flag"] != ""} == {""}


def test_a_pulled_cable_is_a_gap_and_a_reconnection(tmp_path):
    with Process(
        "emulate", "hm8115", "--link", str(tmp_path / "hm"), "--power-w", "22.93"
    ) as first:  # fmt: skip
        first.wait_for("ready")
        with Process(
            "log", "--config", config(tmp_path, hm8115=tmp_path / "hm"), "--out", str(tmp_path)
        ) as log:
            log.wait_for("ready")
            wait_for_rows(tmp_path, "hm8115", 2, log)
            # A killed emulator leaves its link, and another program's terminal may get the number it names.
            (tmp_path / "hm").unlink()
            first.child.kill()
            first.child.wait(PATIENCE_S)
            log.wait_for("meter", "connection lost")
            log.wait_for("meter", "no new value within 3 updates")
            with emulator("hm8115", tmp_path / "hm", "--power-w", "30"):
                log.wait_for("meter", "connected again")
                wait_for_rows(tmp_path, "hm8115", len(rows(tmp_path, "hm8115")) + 3, log)
                assert log.end() == 0
    flags = [row["flag"] for row in rows(tmp_path, "hm8115")]
    assert flags.count("reconnect") == 1 and flags[flags.index("reconnect") - 1] == "timeout"
    powers = [row["power_w"] for row in rows(tmp_path, "hm8115") if row["flag"] == ""]
    assert powers == sorted(powers) and set(powers) == {"22.93", "30"}


def test_read_and_passport_say_what_is_provisional(tmp_path):
    with emulator("hm8115", tmp_path / "hm", "--power-w", "22.93", "--seed", "4"):
        done = read_hm(tmp_path / "hm")
    assert done.returncode == 0, done.stderr
    assert "HAMEG HM8115-2" in done.stdout


# -- what else may be on the port --------------------------------------------------------------------------


def heard_at(data: bytes, sent_baud: int, heard_baud: int) -> bytes:
    """What a receiver at ``heard_baud`` makes of 8N1 characters sent at ``sent_baud``, back to back."""
    levels = [1] * 2
    for byte in data:
        levels += [0, *((byte >> bit) & 1 for bit in range(8)), 1]
    levels += [1] * 12

    def level(bit_time: float) -> int:
        place = int(bit_time * sent_baud)
        return levels[place] if place < len(levels) else 1

    received, now, end = bytearray(), 0.0, len(levels) / sent_baud
    bit = 1 / heard_baud
    while now < end:
        if level(now) == 1:
            now += bit / 16
            continue
        received.append(sum(level(now + (1.5 + place) * bit) << place for place in range(8)))
        now += 9.5 * bit
    return bytes(received)


def test_the_model_of_a_wrong_baud_rate():
    assert heard_at(b"HAMEG HM8115-2\r", 9600, 9600) == b"HAMEG HM8115-2\r"
    assert b"HAMEG" not in heard_at(b"HAMEG HM8115-2\r", 1200, 9600)


@contextlib.contextmanager
def answering(tmp_path, answer: bytes, to: bytes = b"?"):
    """A pseudo-terminal where something answers each question, or says ``answer`` now and then."""
    port = PtyPort(tmp_path / "other")
    os.set_blocking(port.master, True)
    ended = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(port.master, 4096):
                if to in data:
                    os.write(port.master, answer)

    def talk() -> None:
        with contextlib.suppress(OSError):
            while not ended.wait(0.2):
                os.write(port.master, answer)

    threading.Thread(target=serve if to else talk, daemon=True).start()
    try:
        yield tmp_path / "other"
    finally:
        ended.set()
        port.close()


def test_hm8115_at_another_baud_rate(tmp_path):
    with answering(tmp_path, heard_at(b"HAMEG HM8115-2\r", 1200, 9600) + b"\r") as port:
        assert_one_line(
            read_hm(port), 3, "no usable answer from a Hameg HM8115-2", "baud_rate", "9600 or 1200"
        )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"YOKOGAWA,760401,0,F2.01\r\n", "not a Hameg HM8115-2"),
        (b"IeS type ISW8001A\r", "not a Hameg HM8115-2"),
        (b"U3=230.0E+0 I1=99.7E-3 W=22", "check that it is on"),  # a line that never ends
    ],
)
def test_hm8115_where_something_else_answers(tmp_path, answer, words):
    with answering(tmp_path, answer) as port:
        assert_one_line(read_hm(port), 3, words)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (heard_at(b"<msg><src>CC128-v0.11</src></msg>\r\n", 57600, 9600) + b"\n", "57600 Bd"),
        (b"12.3,45.6\r\n", "is not one whole message"),
        (b"<msg><src><name>CC02</name><id>00077</id></src></msg>\r\n", "older Current Cost Classic"),
    ],
)
def test_cc128_where_something_else_talks(tmp_path, said, words):
    with answering(tmp_path, said, to=b"") as port:
        assert_one_line(run("read", "cc128", "--port", str(port), "-n", "1"), 3, words)


# -- CC128, and both in one logger -------------------------------------------------------------------------


def test_two_meters_of_two_nodes_in_one_log(tmp_path):
    with (
        emulator("hm8115", tmp_path / "hm", "--power-w", "22.93"),
        emulator("cc128", tmp_path / "cc", "--power-w", "22.93"),
        Process(
            "log", "--config", config(tmp_path, hm8115=tmp_path / "hm", cc128=tmp_path / "cc"),
            "--out", str(tmp_path), "--origin-ns", "0",
        ) as log,
    ):  # fmt: skip
        passports = {passport["meter_id"]: passport for passport in log.wait_for("ready")["passports"]}
        wait_for_rows(tmp_path, "cc128", 1, log)
        assert log.end() == 0
    assert passports["hm8115"]["semantics"] == passports["cc128"]["semantics"] == "instantaneous"
    assert passports["cc128"]["quantity"] == "apparent_power"
    assert passports["cc128"]["accuracy"]["status"] == "unknown"
    assert passports["cc128"]["emulated"] and passports["hm8115"]["provisional"]
    assert [row["power_w"] for row in rows(tmp_path, "cc128")] == ["24"]  # 240 V taken for granted
    assert {row["power_w"] for row in rows(tmp_path, "hm8115")} == {"22.93"}


@pytest.mark.slow
def test_a_missed_radio_message_is_a_gap_row_and_history_is_none(tmp_path):
    control = tmp_path / "control"
    with (
        emulator("cc128", tmp_path / "cc", "--power-w", "100", "--control", str(control)),
        Process("log", "--config", config(tmp_path, cc128=tmp_path / "cc"), "--out", str(tmp_path)) as log,
    ):
        log.wait_for("ready")
        wait_for_rows(tmp_path, "cc128", 1, log)
        request_fault(control, {"fault": "miss", "count": 1})
        request_fault(control, {"fault": "history"})
        wait_for_rows(tmp_path, "cc128", 4, log)
        assert log.end() == 0
    written = rows(tmp_path, "cc128")
    assert [row["flag"] for row in written] == ["", "timeout", "", ""]
    assert {row["power_w"] for row in written if row["flag"] == ""} == {"104"}
    times = [float(row["t_s"]) for row in written if row["flag"] == ""]
    assert times[1] - times[0] == pytest.approx(12, abs=0.5) and times[2] - times[1] == pytest.approx(
        6, abs=0.5
    )

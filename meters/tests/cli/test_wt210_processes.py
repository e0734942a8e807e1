# SPDX-License-Identifier: Apache-2.0
"""The real processes: an emulated WT210 on a pseudo-terminal, the adapter, the logger, the command line."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import signal
import subprocess
import threading
import time

import pytest
from instrument_threads import spacing_s
from meter_processes import COMMAND, PATIENCE_S, Process

from netjoule_meters.config import MeterConfig
from netjoule_meters.meter_factory import open_meter
from netjoule_meters.reading import Flag

SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1, "mode": "RMS"}


def emulator(link, *arguments: str) -> Process:
    process = Process("emulate", "wt210", "--link", str(link), *arguments)
    process.wait_for("ready")
    return process


def meter_config(tmp_path, link, **settings) -> str:
    path = tmp_path / "meters.json"
    meter = {
        "meter_id": "m1",
        "node": "client",
        "adapter": "wt210",
        "resource": str(link),
        "settings": {**SETTINGS, **settings},
        "power_source": "modelled",
        "device_model": "bench",
        "device_form": "constant",
    }
    path.write_text(json.dumps({"schema_version": 1, "meters": [meter]}))
    return str(path)


def logger(tmp_path, link, **options) -> Process:
    return Process(
        "log", "--config", meter_config(tmp_path, link), "--out", str(tmp_path), "--origin-ns", "0", **options
    )


def rows(tmp_path) -> list[list[str]]:
    text = (tmp_path / "meters" / "m1.csv").read_text()
    assert text.endswith("\n")
    return [line.split(",") for line in text.splitlines()[1:]]


def wait_for_rows(tmp_path, count: int, process: Process) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(rows(tmp_path)) < count:
        assert process.child.poll() is None, process.child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read(link, count: int, **settings):
    meter = open_meter(MeterConfig("m1", "client", "wt210", str(link), {**SETTINGS, **settings}))
    stop = threading.Event()
    try:
        taken = []
        for reading in meter.readings(stop):
            taken.append(reading)
            if len(taken) == count:
                return taken
    finally:
        meter.close()
    raise AssertionError("the readings ended")


def test_constant_power_is_read_once_per_update_within_the_display(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.3456"):
        readings = read(tmp_path / "wt", 8)
    good = [reading for reading in readings if reading.flag is Flag.GOOD]
    assert len(good) >= 6
    assert all(reading.power_w == pytest.approx(12.346) for reading in good)
    assert all(reading.voltage_v == 230 for reading in good)
    assert all(reading.current_a == pytest.approx(0.05368) for reading in good)
    assert 0.09 < spacing_s(good) < 0.15, "each update is read, and once"


def test_a_drawn_instrument_is_wrong_within_its_specification(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.0", "--seed", "7"):
        power_w = read(tmp_path / "wt", 2)[-1].power_w
    assert power_w != 12.0
    assert abs(power_w - 12.0) <= 0.0015 * 12 + 0.001 * 30 + 0.0005


def test_overrange_through_the_whole_chain(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "60"):
        reading = read(tmp_path / "wt", 1)[-1]
    assert (reading.flag, reading.power_w) == (Flag.OVERRANGE, None)


def test_a_stream_on_standard_input_comes_out_as_means_one_period_late(tmp_path):
    origin_ns = time.monotonic_ns()
    arguments = ("--power-stream", "-", "--origin-ns", str(origin_ns), "--update-interval-s", "0.1")
    with emulator(tmp_path / "wt", *arguments) as meter_process:
        powers = [5.0 + step for step in range(20)]
        # Intervals of 0.1 s that lie a little ahead: reading them then depends on the update grid alone.
        start_s = round((time.monotonic_ns() - origin_ns) / 1e9 + 2.0, 1)
        for index, power_w in enumerate(powers):
            meter_process.feed(start_s + 0.1 * index, start_s + 0.1 * (index + 1), power_w)
        readings = read(tmp_path / "wt", 20)
        by_power = {reading.power_w: (reading.t_ns - origin_ns) / 1e9 for reading in readings}
        assert meter_process.child.poll() is None
        meter_process.child.stdin.close()
        assert meter_process.child.wait(PATIENCE_S) == 0
    shown = [power_w for power_w in powers if power_w in by_power]
    assert len(shown) >= 4
    for power_w in shown:
        interval_ended_s = start_s + 0.1 * (powers.index(power_w) + 1)
        assert interval_ended_s + 0.1 - 0.001 <= by_power[power_w] <= interval_ended_s + 0.1 + 0.5
    assert set(by_power) <= {*powers, None}
    assert not (tmp_path / "wt").is_symlink()


def test_a_stream_that_falls_silent_gives_no_data_and_nothing_made_up(tmp_path):
    origin_ns = time.monotonic_ns()
    with emulator(tmp_path / "wt", "--power-stream", "-", "--origin-ns", str(origin_ns)) as meter_process:
        start_s = (time.monotonic_ns() - origin_ns) / 1e9 + 0.5
        meter_process.feed(start_s, start_s + 0.1, 5.0)
        readings = read(tmp_path / "wt", 4)
    assert {reading.power_w for reading in readings} <= {5.0, None}
    assert Flag.NO_DATA in {reading.flag for reading in readings}


def test_a_wrong_stream_is_one_sentence(tmp_path):
    with emulator(tmp_path / "wt", "--power-stream", "-") as process:
        process.child.stdin.write("12 W\n")
        process.child.stdin.flush()
        assert process.child.wait(PATIENCE_S) == 2
        assert "not a line of a power stream" in process.child.stderr.read()


def test_a_stream_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "stream.ndjson").write_text("")
    done = run("emulate", "wt210", "--power-stream", str(tmp_path / "stream.ndjson"))
    assert_one_line(done, 2, "is a file", "pipe it in")


def test_nobody_listening_to_the_logger_holds_nothing_up(tmp_path):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * 4096)
    os.set_blocking(write_end, True)
    arguments = ["log", "--config", meter_config(tmp_path, tmp_path / "wt"), "--out", str(tmp_path)]
    with emulator(tmp_path / "wt", "--power-w", "12.5"):
        child = subprocess.Popen([*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=write_end)
        try:
            deadline = time.monotonic() + PATIENCE_S
            path = tmp_path / "meters" / "m1.csv"
            while not path.exists() or len(rows(tmp_path)) < 4:
                assert child.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            child.terminate()
            assert child.wait(PATIENCE_S) == 0
        finally:
            child.kill()
            child.wait()
            os.close(read_end)
            os.close(write_end)


def test_logger_ready_passport_readings_and_end(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.5"), logger(tmp_path, tmp_path / "wt") as log:
        (passport,) = log.wait_for("ready")["passports"]
        assert (passport["meter_id"], passport["emulated"], passport["update_interval_s"]) == (
            "m1",
            True,
            0.1,
        )
        wait_for_rows(tmp_path, 9, log)
        assert log.end() == 0
        ended = log.wait_for("ended")
    written = rows(tmp_path)
    assert ended["rows"] == {"m1": len(written)}
    assert [row[1] for row in written] == [str(index) for index in range(len(written))]
    # While a busy host holds the instrument up there is no value: told, never made up.
    by_flag = {flag: [row[2:6] for row in written if row[6] == flag] for flag in {row[6] for row in written}}
    good = by_flag.pop("")
    assert len(good) >= 5 and all(values == ["12.5", "230", "0.05435", ""] for values in good)
    assert set(by_flag) <= {"no_data", "timeout"}
    assert all(row[2] == "" for row in written if row[6])


def test_logger_ends_within_a_second(tmp_path):
    """Once of five times: a busy host may hold one end up, a logger that waits is late each time."""

    def seconds_to_end() -> float:
        with logger(tmp_path, tmp_path / "wt") as log:
            log.wait_for("ready")
            began = time.monotonic()
            assert log.end() == 0
            return time.monotonic() - began

    with emulator(tmp_path / "wt", "--power-w", "12.5"):
        assert any(seconds_to_end() < 1.0 for _ in range(5))


@pytest.mark.parametrize("how", ["SIGINT", "stdin"])
def test_logger_ends_during_a_long_wait(tmp_path, how):
    config = meter_config(tmp_path, tmp_path / "wt", update_interval_s=5)
    arguments = ("log", "--config", config, "--out", str(tmp_path))
    with emulator(tmp_path / "wt", "--power-w", "12.5") as meter, Process(*arguments) as log:
        log.wait_for("ready")
        meter.child.send_signal(signal.SIGSTOP)  # no update comes: the logger waits 15 s for one
        began = time.monotonic()
        if how == "stdin":
            log.child.stdin.close()
        else:
            log.child.send_signal(signal.SIGINT)
        assert log.child.wait(PATIENCE_S) == 0
        assert time.monotonic() - began < 10, "the wait was called off"


def test_file_is_readable_after_kill_9_and_numbers_go_on(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.5"):
        with logger(tmp_path, tmp_path / "wt") as log:
            log.wait_for("ready")
            wait_for_rows(tmp_path, 4, log)
            killed_s = time.monotonic()
            log.end(signal.SIGKILL)
        before = rows(tmp_path)
        assert killed_s - float(before[-1][0]) < 1.0, "readable up to the last second"
        with logger(tmp_path, tmp_path / "wt") as log:
            log.wait_for("ready")
            wait_for_rows(tmp_path, len(before) + 4, log)
            assert log.end() == 0
    after = rows(tmp_path)
    assert after[: len(before)] == before
    assert [row[1] for row in after] == [str(index) for index in range(len(after))]
    assert (tmp_path / "meters" / "m1.csv").read_text().count("t_s") == 1


def test_pulled_cable_is_a_gap_and_a_reconnection(tmp_path):
    link = tmp_path / "wt"
    with logger_and_emulator(tmp_path, link) as (log, first):
        wait_for_rows(tmp_path, 3, log)
        # A killed emulator leaves its link, and another program's terminal may get the number it names.
        link.unlink()
        first.end(signal.SIGKILL)
        log.wait_for("meter", "connection lost")
        log.wait_for("meter", "no new value within 3 updates")
        with emulator(link, "--power-w", "20"):
            log.wait_for("meter", "connected again")
            wait_for_rows(tmp_path, len(rows(tmp_path)) + 4, log)
            assert log.end() == 0
    written = rows(tmp_path)
    flags = [row[6] for row in written]
    back = flags.index("reconnect")
    assert flags.count("reconnect") == 1 and flags[back - 1] == "timeout"
    good = [(index > back, row[2]) for index, row in enumerate(written) if row[6] == ""]
    assert set(good) == {(False, "12.5"), (True, "20")}
    # One row for the whole outage, and nothing made up in it or anywhere else.
    last_before = max(index for index, row in enumerate(written) if row[2] == "12.5")
    assert [flag for flag in flags[last_before + 1 : back] if flag != "no_data"] == ["timeout"]
    assert all(row[2] == "" for row in written if row[6] != "")
    times = [float(row[0]) for row in written]
    assert times == sorted(times)


@contextlib.contextmanager
def logger_and_emulator(tmp_path, link):
    with emulator(link, "--power-w", "12.5") as first, logger(tmp_path, link) as log:
        log.wait_for("ready")
        yield log, first


def test_full_disk_is_one_sentence_and_exit_1(tmp_path):
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    with (
        emulator(tmp_path / "wt", "--power-w", "12.5"),
        logger(tmp_path, tmp_path / "wt", preexec_fn=small_files) as log,
    ):
        log.wait_for("ready")
        assert log.child.wait(PATIENCE_S) == 1
        message = log.child.stderr.read()
    assert message.startswith("netjoule-meters: cannot write ") and message.count("\n") == 1
    written = rows(tmp_path)
    assert written and all(len(row) == 7 for row in written)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def read_command(port) -> subprocess.CompletedProcess[str]:
    ranges = ("--set", "voltage_range_v=300", "--set", "current_range_a=0.1")
    return run("read", "wt210", "--port", str(port), *ranges, "-n", "1")


def assert_one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_wrong_port(tmp_path):
    assert_one_line(read_command(tmp_path / "ttyUSB9"), 3, "no serial port", "serial ports of this host")


def test_not_a_serial_port(tmp_path):
    (tmp_path / "file").write_text("")
    assert_one_line(read_command(tmp_path / "file"), 3, "cannot be used as a serial port")


def test_port_in_use(tmp_path):
    with logger_and_emulator(tmp_path, tmp_path / "wt"):
        assert_one_line(read_command(tmp_path / "wt"), 3, "in use by another program")


@contextlib.contextmanager
def answering(tmp_path, answer: bytes | None):
    """A pseudo-terminal where something else than a WT210 answers each line, or nothing does."""
    from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort

    port = PtyPort(tmp_path / "other")
    os.set_blocking(port.master, True)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while (data := os.read(port.master, 4096)) and answer is not None:
                if b"?" in data:
                    os.write(port.master, answer)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield tmp_path / "other"
    finally:
        port.close()


def test_nothing_answers(tmp_path):
    with answering(tmp_path, None) as port:
        assert_one_line(read_command(port), 3, "no usable answer", "null-modem", "488.2")


def test_not_in_488_2_mode(tmp_path):
    with answering(tmp_path, b"V1  230.12E+0\r\n") as port:
        assert_one_line(read_command(port), 3, "does not speak 488.2", "Local menu")


def test_another_instrument(tmp_path):
    with answering(tmp_path, b"YOKOGAWA,WT310,C2PH13047V,F1.03\r\n") as port:
        assert_one_line(read_command(port), 3, "another instrument answers", "WT310")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("read", "wt210"), "--port"),
        (("read", "wt9", "--port", "x"), "no adapter 'wt9'"),
        (("read", "wt210", "--port", "x", "--set", "voltage_range_v"), "NAME=VALUE"),
        (("read", "wt210", "--port", "x"), "'voltage_range_v' is missing"),
        (("emulate", "wt210"), "--power-stream or --power-w"),
        (("emulate", "wt210", "--power-w", "1", "--update-interval-s", "0.3"), "0.1, 0.25, 0.5, 1, 2, 5"),
        (("log", "--config", "/nowhere.json", "--out", "."), "cannot read the meter configuration"),
    ],
)
def test_usage_errors(arguments, words):
    assert_one_line(run(*arguments), 2, words)


def test_list_names_adapters_settings_and_ports():
    shown = run("list").stdout
    assert "wt210: Yokogawa WT210" in shown and "voltage_range_v" in shown and "serial ports:" in shown
    adapters = json.loads(run("list", "--json").stdout)["adapters"]
    assert {"wt210", "hm8115", "cc128"} <= {found["name"] for found in adapters}


def test_read_prints_what_the_meter_shows(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.5"):
        done = read_command(tmp_path / "wt")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["YOKOGAWA,760401,0,F2.01 on 30 W range", "12.5 W  230 V  0.05435 A"]


def test_read_takes_a_configuration_and_prints_json(tmp_path):
    with emulator(tmp_path / "wt", "--power-w", "12.5"):
        done = run("read", "--config", meter_config(tmp_path, tmp_path / "wt"), "--json", "-n", "6")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # Updates of 0.1 s: one that the new range spoils, or that a busy host holds up, has a flag and no value.
    assert {line["flag"] for line in lines} <= {"", "no_data", "timeout"}
    values = [line for line in lines if line["flag"] == ""]
    assert len(values) >= 2 and {line["power_w"] for line in values} == {12.5}
    assert all(one["t_ns"] < other["t_ns"] for one, other in itertools.pairwise(lines))


def test_a_file_that_is_no_log_is_refused_and_kept(tmp_path):
    (tmp_path / "meters").mkdir()
    (tmp_path / "meters" / "m1.csv").write_text("something else\n")
    config = meter_config(tmp_path, tmp_path / "wt")
    assert_one_line(run("log", "--config", config, "--out", str(tmp_path)), 4, "is not a file of readings")
    assert (tmp_path / "meters" / "m1.csv").read_text() == "something else\n"


def test_logger_names_the_meter_that_is_not_there(tmp_path):
    config = meter_config(tmp_path, tmp_path / "absent")
    assert_one_line(run("log", "--config", config, "--out", str(tmp_path)), 3, "no serial port", "absent")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_emulated_instrument_leaves_nothing(tmp_path, number):
    with emulator(tmp_path / "wt", "--power-w", "12.5") as process:
        assert (tmp_path / "wt").is_symlink()
        assert process.end(number) == 0
    assert not (tmp_path / "wt").is_symlink()


def test_a_hangup_that_nohup_keeps_away_ends_nothing(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # is handed on to what is started
    process = emulator(tmp_path / "wt", "--power-w", "12.5")
    signal.signal(signal.SIGHUP, before)
    with process:
        process.child.send_signal(signal.SIGHUP)
        config = meter_config(tmp_path, tmp_path / "wt")
        assert run("read", "--config", config, "--json", "-n", "1").returncode == 0
        assert process.end(signal.SIGTERM) == 0


def test_link_replaces_a_link_but_nothing_else(tmp_path):
    (tmp_path / "file").write_text("mine")
    done = run("emulate", "wt210", "--power-w", "1", "--link", str(tmp_path / "file"))
    assert_one_line(done, 2, "is not a symbolic link")
    assert (tmp_path / "file").read_text() == "mine"

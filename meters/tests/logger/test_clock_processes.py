# SPDX-License-Identifier: Apache-2.0
"""A logger that follows the controller's clock, as processes; here both clocks are one, so the truth is 0."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from meter_processes import COMMAND, PATIENCE_S, Process

from .test_clock_exchange import TRACKING

LEAST_CERTAIN_S = 0.25
"""An answer is waited for half a second, so no exchange is less certain, on however busy a host."""


@pytest.fixture
def server():
    with Process("clock", "serve", "--listen", "127.0.0.1:0") as process:
        ready = process.wait_for("ready")
        yield f"{ready['host']}:{ready['port']}"
        assert process.end() == 0


def run(*arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], input=told, capture_output=True, text=True, timeout=120, check=False
    )


def test_measure_finds_the_same_clock(server):
    row = json.loads(run("clock", "measure", server, "--json").stdout)
    assert abs(row["offset_s"]) <= row["residual_s"] < LEAST_CERTAIN_S
    assert (row["host"], row["drift_ppm"], row["method"]) == ("127.0.0.1", None, "control_exchange")


def test_nobody_serves():
    done = run("clock", "measure", "127.0.0.1:9", "--count", "2")
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    assert "run 'netjoule-meters clock serve' there" in done.stderr


def test_a_logger_on_another_host_stamps_by_the_controllers_clock(tmp_path, server):
    config = tmp_path / "meters.json"
    meter = {"meter_id": "m1", "node": "client", "adapter": "wt210", "resource": str(tmp_path / "wt")}
    settings = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}
    config.write_text(json.dumps({"schema_version": 1, "meters": [meter | {"settings": settings}]}))
    origin_ns = time.monotonic_ns()
    arguments = ("--config", str(config), "--out", str(tmp_path), "--origin-ns", str(origin_ns))
    with (
        Process("emulate", "wt210", "--power-w", "12.5", "--link", str(tmp_path / "wt")) as meter_process,
        Process("log", *arguments, "--clock-server", server) as log,
    ):
        meter_process.wait_for("ready")
        row = log.wait_for("clock")["row"]
        log.wait_for("ready")
        path = tmp_path / "meters" / "m1.csv"
        deadline_s = time.monotonic() + PATIENCE_S
        while path.read_bytes().count(b"\n") < 6:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        log.child.send_signal(signal.SIGTERM)
        began_s = time.monotonic()
        log.wait_for("ended")
        assert log.child.wait(PATIENCE_S) == 0
        assert time.monotonic() - began_s < 20, "the next exchange, due after a minute, is not waited for"
    now_s = (time.monotonic_ns() - origin_ns) / 1e9
    assert abs(row["offset_s"]) <= row["residual_s"]
    times_s = [float(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]
    assert times_s == sorted(times_s)
    assert times_s[0] > 0 and times_s[-1] < now_s


def test_a_clock_server_needs_the_controllers_origin(tmp_path):
    done = run("log", "--config", "x", "--out", str(tmp_path), "--clock-server", "127.0.0.1:1")
    assert done.returncode == 2 and "--clock-server needs --origin-ns" in done.stderr


def test_chrony_of_two_hosts_makes_a_row(tmp_path):
    here = tmp_path / "here.txt"
    here.write_text(TRACKING)
    words = ("clock", "chrony", "meterhost", "--here")
    there = TRACKING.replace("slow of", "fast of")
    row = json.loads(run(*words, str(here), told=there).stdout)
    assert (row["host"], row["method"]) == ("meterhost", "chrony")
    assert row["offset_s"] == pytest.approx(13.046e-6)
    no_file = run(*words, "/nowhere", told=there)
    assert (no_file.returncode, "cannot read /nowhere" in no_file.stderr) == (2, True)
    no_answer = run(*words, str(here))
    assert (no_answer.returncode, "on meterhost said ''" in no_answer.stderr) == (2, True)

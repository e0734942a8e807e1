# SPDX-License-Identifier: Apache-2.0
"""The verbs as processes: each kind of emulated instrument is started, found and read."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
from meter_processes import PATIENCE_S

COMMAND = [sys.executable, "-m", "netjoule_meters"]
RANGES = {
    "wt210": {"voltage_range_v": 300, "current_range_a": 0.1},
    "wt310": {"voltage_range_v": 300, "current_range_a": 0.5},
    "hm8115": {"voltage_range_v": 500, "current_range_a": 0.16},
    "ptd": {"voltage_range_v": 300, "current_range_a": 0.1},
}


def run(*arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
    )


@contextlib.contextmanager
def emulated(*arguments: str):
    """A running `emulate` and its ready line; ended by its id."""
    child = subprocess.Popen(
        [*COMMAND, "emulate", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = child.stdout.readline()
        assert line, child.stderr.read()
        yield json.loads(line)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE_S)
        child.stdout.close()
        child.stderr.close()


def settings(ready: dict, **more: object) -> list[str]:
    """The options that read an emulated instrument as it says of itself."""
    chosen = {**RANGES.get(ready["adapter"], {}), **ready["settings"], **more}
    return [
        word
        for name, value in chosen.items()
        for word in ("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    ]


def assert_one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("wt210",),
        ("wt210", "--port-kind", "tcp"),
        ("wt210-gpib",),
        ("wt310", "--variant", "wt310e", "--update-interval-s", "0.25"),
        ("wt310", "--port-kind", "vxi11", "--update-interval-s", "0.25"),
        ("hm8115",),
        ("socket", "--variant", "netio", "--update-interval-s", "0.5"),
        ("socket", "--variant", "apc", "--update-interval-s", "0.5"),
        ("isockets", "--variant", "csv", "--update-interval-s", "0.5"),
        ("ptd",),
    ],
    ids=lambda words: "-".join(word for word in words if not word.startswith("--") and word[0].isalpha()),
)
def test_an_emulated_instrument_is_read_as_its_ready_line_says(arguments):
    with emulated(*arguments, "--power-w", "20") as ready:
        assert ready["emulated"] is True and ready["model"] == arguments[0]
        more = {"update_interval_s": 0.5} if ready["adapter"] in ("socket", "isockets") else {}
        done = run(
            "read",
            ready["adapter"],
            "--port",
            ready["resource"],
            *settings(ready, **more),
            "--json",
            "-n",
            "6",
        )
    assert done.returncode == 0, done.stderr
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    good = [reading["power_w"] for reading in readings if not reading["flag"] and reading["power_w"]]
    assert len(readings) == 6 and good, readings
    assert good[-1] == pytest.approx(20, abs=0.2), "no seed, no error but that of the display"
    stamps = [reading["t_ns"] for reading in readings]
    assert stamps == sorted(stamps)


def test_watch_prints_a_line_per_reading_where_there_is_no_terminal():
    with emulated("wt210", "--power-w", "12.5") as ready:
        done = run(
            "read", "wt210", "--port", ready["resource"], *settings(ready, update_interval_s=0.1), "--watch",
            "-n", "3",
        )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 4
    assert lines[0] == "YOKOGAWA,760401,0,F2.01 on 30 W range"
    assert lines[3].startswith("     12.5 W  mean 12.5  12.5..12.5 W") and "\x1b" not in done.stdout


def test_watch_rewrites_one_line_on_a_terminal():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with emulated("wt210", "--power-w", "12.5") as ready:
        words = ["read", "wt210", "--port", ready["resource"], *settings(ready, update_interval_s=0.1)]
        child = subprocess.Popen([*COMMAND, *words, "--watch", "-n", "4"], stdout=slave)
        assert child.wait(PATIENCE_S) == 0
    os.close(slave)
    seen = os.read(master, 65536).decode()
    os.close(master)
    lines = seen.split("\r\x1b[K")
    assert len(lines) == 5 and "\n" not in "".join(lines[1:4])
    assert all(len(line.rstrip("\r\n")) < 80 for line in lines)


def test_watch_ends_on_ctrl_c_with_exit_0():
    with emulated("wt210", "--power-w", "12.5") as ready:
        words = ["read", "wt210", "--port", ready["resource"], *settings(ready), "--watch"]
        child = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() and child.stdout.readline()
            child.send_signal(signal.SIGINT)
            assert child.wait(PATIENCE_S) == 0
        finally:
            child.kill()
            child.wait(PATIENCE_S)
            child.stdout.close()


def test_probe_finds_an_instrument_and_prints_what_to_paste(tmp_path):
    link = tmp_path / "wt"
    with emulated("wt210", "--power-w", "12.5", "--link", str(link)):
        text = run("probe", "--port", str(link))
        found = json.loads(run("probe", "--port", str(link), "--json").stdout)
    assert text.returncode == 0, text.stderr
    assert "adapter: wt210" in text.stdout and "voltage_range_v: auto" in text.stdout
    assert found["found"][0]["adapter"] == "wt210" and "meter_id: client-wt210" in found["snippet"]


def test_probe_leaves_a_port_in_use_alone(tmp_path):
    link = tmp_path / "wt"
    with emulated("wt210", "--power-w", "12.5", "--link", str(link)) as ready:
        words = ["read", "wt210", "--port", str(link), *settings(ready, update_interval_s=0.1), "--json"]
        reader = subprocess.Popen([*COMMAND, *words, "-n", "100000"], stdout=subprocess.PIPE, text=True)
        try:
            reader.stdout.readline()
            done = run("probe", "--port", str(link))
            before_ns = time.monotonic_ns()
            flags = {json.loads(reader.stdout.readline())["flag"] for _ in range(5)}
        finally:
            reader.kill()
            reader.wait(PATIENCE_S)
            reader.stdout.close()
    assert f"open in process {reader.pid}: left alone" in done.stdout
    assert flags == {""} and time.monotonic_ns() > before_ns, "the reader did not notice"
    assert_one_line(done, 3, "no meter found")


def wait_until_it_shows_a_value(plug: dict) -> None:
    """A socket has nothing to show in its first update."""
    words = ["--port", plug["resource"], *settings(plug, update_interval_s=0.2), "--json", "-n", "1"]
    deadline = time.monotonic() + PATIENCE_S
    while '"flag": ""' not in (done := run("read", plug["adapter"], *words)).stdout:
        assert time.monotonic() < deadline, done.stdout + done.stderr


def test_probe_finds_meters_on_named_hosts():
    with (
        emulated("socket", "--variant", "shelly2", "--power-w", "5", "--update-interval-s", "0.2") as plug,
        emulated("ptd", "--power-w", "5") as daemon,
    ):
        wait_until_it_shows_a_value(plug)
        done = run("probe", "--host", plug["port"], "--host", daemon["port"], "--json")
    found = {one["adapter"]: one for one in json.loads(done.stdout)["found"]}
    assert found["socket"]["settings"] == {"preset": "shelly2"}, done.stdout
    assert found["socket"]["resource"] == f"http://{plug['port']}"
    assert found["ptd"]["resource"] == f"tcp:{daemon['port']}"


@pytest.mark.parametrize(("variant", "scheme"), [("kasa", "kasa"), ("apc", "snmp")])
def test_probe_finds_sockets_without_pages_by_their_scheme(variant, scheme):
    with emulated("socket", "--variant", variant, "--power-w", "50", "--update-interval-s", "0.2") as plug:
        wait_until_it_shows_a_value(plug)
        done = run("probe", "--host", f"{scheme}:{plug['port']}", "--json")
    (found,) = json.loads(done.stdout)["found"]
    assert (found["adapter"], found["settings"]) == ("socket", {"preset": variant}), done.stdout


def test_probe_tells_which_provisional_statements_an_instrument_confirms():
    with emulated("hm8115", "--power-w", "20") as ready:
        done = run("probe", "--adapter", "hm8115", "--port", ready["resource"])
    assert done.returncode == 0, done.stderr
    assert "HAMEG HM8115-2" in done.stdout
    assert "confirmed" in done.stdout and "NOT SO" not in done.stdout


def test_range_finds_the_fixed_range_for_a_load():
    with emulated("wt210", "--power-w", "12.5") as ready:
        done = run("range", "wt210", "--port", ready["resource"], "--seconds", "3", "--json")
        again = run("read", "wt210", "--port", ready["resource"], *settings(ready), "-n", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["settings"] == {"voltage_range_v": 300.0, "current_range_a": 0.1}
    assert found["most_w"] == pytest.approx(12.5, abs=0.1)
    assert "on 30 W range" in again.stdout


def test_a_ranging_pass_that_is_cut_short_brings_the_fixed_ranges_back():
    with emulated("wt210", "--power-w", "12.5") as ready:
        command = [*COMMAND, "--verbose", "range", "wt210", "--port", ready["resource"], "--seconds", "600"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        told = []
        for line in child.stderr:
            told.append(line)
            if ":CURR:AUTO ON" in line:
                break
        child.send_signal(signal.SIGINT)
        out, rest = child.communicate(timeout=60)
    assert ":CURR:AUTO OFF" in rest and ":VOLT:AUTO OFF" in rest
    assert "Traceback" not in rest
    assert child.returncode in (0, 3), "with the few readings it had, or too few of them"
    assert "settings: " in out or "of the 3 readings" in rest


def test_a_meter_with_one_range_has_no_ranging_pass():
    with emulated("socket", "--variant", "netio", "--power-w", "5") as ready:
        words = settings(ready, update_interval_s=0.5)
        done = run("range", "socket", "--port", ready["resource"], *words, "--seconds", "1")
    assert_one_line(done, 2, "has one range")


def test_calibrate_against_a_known_load_adds_points(tmp_path):
    out = tmp_path / "plug.json"
    words = ["--seconds", "2.2", "--out", str(out), "--known-u95-w", "0.02", "--known-text", "heater"]
    for power_w in ("10", "20"):
        with emulated("wt210", "--power-w", power_w) as ready:
            chosen = settings(ready, update_interval_s=0.1)
            done = run(
                "calibrate", "wt210", "--port", ready["resource"], *chosen, "--known-w", power_w, *words
            )
        assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert [point["true_w"] for point in document["points"]] == [10, 20]
    assert document["line"]["gain"] == pytest.approx(1, abs=1e-3)
    assert document["limits"]["reading_ratio"] < 0.01


def test_calibrate_beside_a_reference_meter(tmp_path):
    out = tmp_path / "cal.json"
    with (
        emulated("wt310", "--power-w", "20", "--update-interval-s", "0.1") as better,
        emulated("wt210", "--power-w", "20", "--seed", "3") as ready,
    ):
        reference = [
            word.replace("--set", "--reference-set")
            for word in settings(better, update_interval_s=0.1, current_range_a=0.5)
        ]
        done = run(
            "calibrate", "wt210", "--port", ready["resource"], *settings(ready, update_interval_s=0.1),
            "--reference-adapter", "wt310", "--reference-port", better["resource"], *reference,
            "--reference-calibrated", "2026-09-01", "--seconds", "2.5", "--out", str(out),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["reference"]["method"] == "reference_meter"
    assert document["points"][0]["true_w"] == pytest.approx(20, abs=0.1)
    assert document["points"][0]["u95_true_w"] > 0.02, "the reference's specification counts"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("emulate", "wt9"), "no emulated instrument 'wt9'"),
        (("emulate", "wt210", "--power-w", "1", "--power-stream", "-"), "give one of --power-stream"),
        (("emulate", "wt210", "--power-w", "nan"), "neither nan nor inf can be metered"),
        (("emulate", "wt210", "--power-w", "1", "--voltage-v", "0"), "more than 0, not 0"),
        (("emulate", "wt210", "--power-w", "1", "--repeat"), "--repeat goes with --power-trace"),
        (("emulate", "wt210", "--power-w", "1", "--port-kind", "udp"), "choose one of pty, tcp"),
        (("emulate", "wt210", "--power-w", "1", "--port-kind", "pty", "--listen", "x:1"), "has no address"),
        (("emulate", "wt210", "--power-w", "1", "--listen", "nowhere"), "--listen takes HOST:PORT"),
        (("emulate", "ptd", "--power-w", "1", "--link", "/tmp/x"), "--link names a pseudo-terminal"),
        (("emulate", "wt210", "--power-trace", "/nowhere.csv"), "cannot read the power trace"),
        (("calibrate", "wt210", "--port", "x", "--out", "c.json"), "give either --known-w or a reference"),
        (("calibrate", "wt210", "--port", "x", "--out", "c.json", "--known-w", "3"), "--known-u95-w"),
        (
            ("calibrate", "wt210", "--port", "x", "--out", "c", "--reference-adapter", "wt310",
             "--reference-port", "y"), "--reference-calibrated",
        ),
        (("probe", "--adapter", "wt210"), "--adapter goes with exactly one --port"),
        (("probe", "--hosts-file", "/nowhere"), "cannot read the list of hosts"),
        (("log", "--config", "x", "--out", "y", "--clock-server", "h:1"), "--clock-server needs --origin-ns"),
        (("read", "--config", "/nowhere.json", "--meter-id", "m"), "cannot read the meter configuration"),
    ],
)  # fmt: skip
def test_usage_errors_are_one_sentence(arguments, words):
    assert_one_line(run(*arguments), 2, words)


def test_probe_of_a_silent_port_says_what_to_check(tmp_path):
    from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort

    port = PtyPort(tmp_path / "silent")
    try:
        done = run("probe", "--port", str(tmp_path / "silent"), "--no-listen")
    finally:
        port.close()
    assert "nothing answers" in done.stdout or "left alone" in done.stdout
    assert_one_line(done, 3, "no meter found", "group 'dialout'", "--host")


def test_probe_of_hosts_without_meters_says_what_to_check(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
    (tmp_path / "hosts").write_text(f"# plugs\n{place}  # the first\n\n")
    done = run("probe", "--hosts-file", str(tmp_path / "hosts"))
    assert done.stdout == f"{place}: nothing answers on the ports of meters\n"
    assert_one_line(done, 3, "no meter found on the named hosts", "snmp:HOST")


def test_a_trace_is_replayed_and_ends(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("t_s,power_w\n" + "".join(f"{t / 2},{10 + t % 2}\n" for t in range(5)))
    began = time.monotonic()
    done = run("emulate", "wt210", "--power-trace", str(trace))
    assert done.returncode == 0 and json.loads(done.stdout)["event"] == "ready"
    assert time.monotonic() - began > 1.9, "in real time"


def test_two_clocks_of_one_host_agree():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Other tests' ports are of 127.0.0.1: nobody takes this one meanwhile.
        probe.bind(("127.0.0.3", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen(
        [*COMMAND, "clock", "serve", "--listen", f"127.0.0.3:{port}"], stdout=subprocess.PIPE, text=True
    )
    killer = threading.Timer(PATIENCE_S, child.kill)
    killer.start()
    try:
        assert json.loads(child.stdout.readline())["port"] == port
        row = json.loads(run("clock", "measure", f"127.0.0.3:{port}", "--json").stdout)
        said = run("clock", "measure", f"127.0.0.3:{port}").stdout
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE_S) == 0
    finally:
        killer.cancel()
        child.kill()
        child.wait(PATIENCE_S)
        child.stdout.close()
    # An answer is waited for half a second, so no exchange is less certain, on however busy a host.
    assert abs(row["offset_s"]) <= row["residual_s"] < 0.25 and row["method"] == "control_exchange"
    assert "drift not known yet" in said

# SPDX-License-Identifier: Apache-2.0
"""The program itself beside a made-up link: what it writes, when it waits and how it ends."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import netjoule_contracts
from netjoule_devices.cli import main

PATIENCE_S = 60


def start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "netjoule_devices", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def finish(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Wait for the end; return exit code, samples and stderr."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def line(index: int, *, station: str = "client", origin_ns: int = 0) -> bytes:
    """Statistics of the 100 ms interval `index`: ten frames of 1 ms air time each, per interval number."""
    document = {
        "schema_version": 1,
        "kind": "station",
        "station": station,
        "t_start_ns": origin_ns + index * 100_000_000,
        "t_end_ns": origin_ns + (index + 1) * 100_000_000,
        "airtime_tx_s": 0.001 * index,
        "airtime_rx_s": 0.0,
        "frames_tx": 10 * index,
        "frames_rx": 0,
        "ppdus_tx": 10 * index,
        "ppdus_rx": 0,
        "retries": 0,
        "retries_rx": 0,
        "drops": 0,
        "drops_rx": 0,
        "queue_packets": 0,
        "queue_packets_rx": 0,
        "phy_rate_mbps": 216.0,
        "mcs": 13,
        "streams": 2,
        "width_mhz": 40,
        "guard_interval_ns": 800,
    }
    netjoule_contracts.validate("link_stats", document)
    return json.dumps(document).encode() + b"\n"


class Link:
    """A statistics socket that a test feeds by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.settimeout(PATIENCE_S)
        self.connections: list[socket.socket] = []

    def open(self) -> None:
        self.listener.bind(str(self.path))
        self.listener.listen()

    def accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        self.connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in (*self.connections, self.listener):
            connection.close()


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    made = Link(tmp_path / "link.sock")
    yield made
    made.close()


def test_samples_follow_the_link_and_it_ends_when_the_link_does(link: Link, tmp_path: Path) -> None:
    link.open()
    log = tmp_path / "device.ndjson"
    log.write_text('{"earlier":"session"}\n')
    arguments = ["--model", "linear", "--link-socket", str(link.path), "--origin-ns", "100000000"]
    process = start(*arguments, "--log", str(log))
    connection = link.accept()
    stream = b"".join(line(k) + line(k, station="other") for k in range(1, 6))
    connection.sendall(stream[:100])  # a line may arrive in parts
    connection.sendall(stream[100:])
    connection.close()
    code, samples, err = finish(process)
    assert code == 1
    assert err == (
        "netjoule-device: the link closed its statistics socket (it has ended, or this reader was too slow)\n"
    )
    edges = [(s["t_start_s"], s["t_end_s"]) for s in samples]
    assert edges == [(0.0, 0.1), (0.1, 0.2), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5)]
    wanted = [5 + 0.0002 * 100 * k + 4 * 0.01 * k for k in range(1, 6)]
    assert [s["power_w"] for s in samples] == pytest.approx(wanted, abs=1e-6)
    logged = [json.loads(text) for text in log.read_text().splitlines()]
    assert logged == [{"earlier": "session"}, *samples]


def asked(path: Path, request: str) -> dict[str, Any]:
    """The answer to a request at a control socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE_S)
        asking.bind("")
        asking.sendto(request.encode(), str(path))
        return dict(json.loads(asking.recv(65_536)))


def test_its_model_changes_between_two_samples_of_one_stream(tmp_path: Path) -> None:
    path = tmp_path / "device.control"
    arguments = ["--origin-ns", "0", "--interval-s", "0.02", "--cpu-netns", "/proc/self/ns/net"]
    process = start("--model", "constant", *arguments, "--control", str(path))
    assert process.stdout is not None
    assert set(json.loads(process.stdout.readline())["terms"]) == {"p0"}
    changed = asked(path, '{"model": "galaxy-s4:core_w=0"}')
    assert changed["model"]["name"] == "galaxy-s4:core_w=0"
    assert (changed["ok"], changed["model"]["status"]) == (True, "vendor_declared")
    read = (json.loads(line) for line in iter(process.stdout.readline, ""))
    phone = next(sample for sample in read if "wifi_on" in sample["terms"])
    assert phone["terms"]["cpu"] == 0
    assert asked(path, '{"model": "s5-seed"}')["model"]["form"] == "connections"
    passed = [phone]
    while "connections" not in passed[-1]["terms"]:
        passed.append(next(read))
    assert set(passed[-1]["terms"]) == {"idle", "active", "rate", "connections"}
    refused = asked(path, '{"model": "galaxy-s9"}')
    assert not refused["ok"]
    assert "no device model 'galaxy-s9'" in refused["error"]
    assert not asked(path, "s5-seed")["ok"]
    process.send_signal(signal.SIGTERM)
    code, samples, err = finish(process)
    assert (code, err) == (0, "")
    for before, after in itertools.pairwise([*passed, *samples]):
        assert after["t_start_s"] == before["t_end_s"]
    assert not path.exists()


def test_it_waits_for_a_link_that_appears_later(link: Link) -> None:
    process = start("--model", "constant", "--link-socket", str(link.path), "--origin-ns", "0")
    assert process.stderr is not None
    opener = threading.Timer(0.5, link.open)
    opener.start()
    opener.join()
    link.accept().sendall(line(1))
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["power_w"] == 8.0
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (0, [], "")


def test_link_that_never_appears(tmp_path: Path) -> None:
    path = tmp_path / "nothing.sock"
    process = start("--model", "constant", "--link-socket", str(path), "--origin-ns", "0", "--wait-s", "0.2")
    code, samples, err = finish(process)
    assert (code, samples) == (1, [])
    wanted = f"no link at {path} within 0.2 s (No such file or directory); is netjoule-link running?"
    assert err == f"netjoule-device: {wanted}\n"


def test_station_that_the_link_does_not_know(link: Link) -> None:
    link.open()
    arguments = ["--model", "constant", "--link-socket", str(link.path), "--origin-ns", "0"]
    process = start(*arguments, "--station", "laptop", "--wait-s", "2")
    link.accept().sendall(line(1))
    code, samples, err = finish(process)
    assert (code, samples) == (1, [])
    assert "said nothing about station 'laptop' for 2 s" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_own_grid_is_contiguous_and_a_signal_ends_it(number: signal.Signals) -> None:
    origin_ns = time.monotonic_ns()
    process = start(
        "--model", "laptop-cpu", "--origin-ns", str(origin_ns), "--cpu-netns", "/proc/self/ns/net"
    )
    assert process.stdout is not None
    samples = [json.loads(process.stdout.readline()) for _ in range(4)]
    process.send_signal(number)
    code, rest, err = finish(process)
    assert (code, err) == (0, "")
    samples += rest
    for before, after in itertools.pairwise(samples):
        assert after["t_start_s"] == before["t_end_s"]
    for sample in samples:
        steps = sample["t_end_s"] / 0.1
        assert abs(steps - round(steps)) < 1e-4
        assert sample["power_w"] >= 9.36 - 1e-6


def test_a_hangup_that_nohup_keeps_away_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # is handed on to what is started
    process = start("--model", "constant", "--origin-ns", "0", "--interval-s", "0.02")
    signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    assert all(process.stdout.readline() for _ in range(20))
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0


def test_reader_that_goes_away_ends_it_quietly() -> None:
    process = start("--model", "constant", "--origin-ns", "0", "--interval-s", "0.02")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert (process.wait(PATIENCE_S), process.stderr.read()) == (0, "")
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "nokia", "--origin-ns", "0"], 2, "no device model 'nokia'"),
        (["--model", "constant"], 2, "--origin-ns"),
        (
            ["--model", "constant", "--origin-ns", "0", "--interval-s", "soon"],
            2,
            "'soon' is no number of seconds",
        ),
        (
            ["--model", "constant", "--origin-ns", "0", "--cpu-netns", "/nowhere"],
            3,
            "/nowhere cannot be opened",
        ),
        (["--model", "s5-seed", "--origin-ns", "0"], 2, "name a namespace by --cpu-netns"),
        (
            ["--model", "constant", "--origin-ns", "0", "--log", "/nowhere/x"],
            3,
            "the log /nowhere/x cannot be",
        ),
        (
            ["--model", "constant", "--origin-ns", "0", "--control", "/nowhere/x"],
            3,
            "the control socket /nowhere/x cannot be made",
        ),
    ],
)
def test_bad_arguments_end_with_one_clear_line(arguments: list[str], code: int, message: str) -> None:
    found, samples, err = finish(start(*arguments, env=os.environ | {"COLUMNS": "200"}))
    assert (found, samples) == (code, [])
    assert message in err.splitlines()[-1]


def test_describe_names_the_form_for_labels() -> None:
    code, documents, err = finish(start("--model", "laptop-cpu", "--describe"))
    assert (code, err) == (0, "")
    assert (documents[0]["name"], documents[0]["form"], documents[0]["status"]) == (
        "laptop-cpu",
        "cpu",
        "assumed",
    )
    assert "assumed, not measured" in documents[0]["source"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--origin-ns", "0"], "the following arguments are required: --model"),
        (["--model", "laptop-cpu"], "--origin-ns is needed"),
    ],
)
def test_wrong_options_are_one_line(words, what, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"netjoule-device: {what}")
    assert line.endswith("; see 'netjoule-device --help'")

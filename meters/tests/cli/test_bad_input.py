# SPDX-License-Identifier: Apache-2.0
"""What goes wrong at a bench, one row each: the sentence that a person gets, its next step, the exit code.

The command line (or the logger, for what happens while readings run) stands against the emulated
instruments on real ports. Elsewhere are the tests of each adapter's every byte.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from golden_sentences import same_sentence
from meter_processes import PATIENCE_S

from netjoule_meters.adapters.base import Meter
from netjoule_meters.adapters.power_analysers import hm8115
from netjoule_meters.adapters.power_analysers.ptd import Ptd
from netjoule_meters.cli import main
from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.control import Control, request_fault
from netjoule_meters.emulated.instrument_loop import ConstantSource, Instrument, run_instrument
from netjoule_meters.emulated.ports.baud_rate import BaudPort, as_received
from netjoule_meters.emulated.ports.network import Port, TcpPort, UdpPort
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.emulated.registry import (
    EmulationOptions,
    client_resource,
    emulated_model,
    make_instrument,
    variant_of,
)
from netjoule_meters.logger.process import Logger

NOBODY = 65534
HM8115 = ("voltage_range_v=500", "current_range_a=1.6")
WT210 = ("voltage_range_v=300", "current_range_a=0.1", "update_interval_s=0.1")


# -- instruments and commands ------------------------------------------------------------------------------


@dataclass
class Bench:
    """Emulated instruments in threads of this process, each on a real port; ended with the test."""

    folder: Path
    stack: contextlib.ExitStack
    controls: list[Path] = field(default_factory=list)

    def instrument(
        self,
        model: str,
        *,
        power_w: float = 12.5,
        variant: str = "",
        baud_rate: int | None = None,
        behaviour: Callable[[Instrument], Instrument] = lambda instrument: instrument,
        **options: Any,
    ) -> str:
        """Start one; what a client calls it."""
        way = variant_of(emulated_model(model), variant)
        instrument = behaviour(make_instrument(model, EmulationOptions(variant=variant, **options)))
        port = self._port(way.ports[0], baud_rate)
        control = Control(self.folder / f"control{len(self.controls)}")
        self.controls.append(control.path)
        stop, ender = os.pipe()
        serving = threading.Thread(
            target=run_instrument,
            args=(instrument, port, ConstantSource(power_w)),
            kwargs={"clock": SystemClock(), "origin_ns": 0, "stop": stop, "control": control},
        )
        serving.start()

        def end() -> None:
            os.write(ender, b"x")
            serving.join(PATIENCE_S)
            port.close()
            control.close()
            os.close(stop)
            os.close(ender)

        self.stack.callback(end)
        return client_resource(way.resource, way.ports[0], port.name)

    def _port(self, kind: str, baud_rate: int | None) -> Port:
        if kind == "udp":
            return UdpPort()
        if kind != "pty":
            return TcpPort(once=kind == "tcp-once")
        return PtyPort(None) if baud_rate is None else BaudPort(None, baud_rate)

    def impatient(self) -> None:
        """Do not wait for answers as long as at a real bench: none will come."""
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        for kind in (Meter, hm8115.HM8115, Ptd):
            patch.setattr(kind, "reply_timeout_s", 0.3)

    def fault(self, name: str, index: int = -1, **values: Any) -> None:
        """Ask an instrument for a fault."""
        request_fault(self.controls[index], {"fault": name, **values})


@pytest.fixture
def bench(tmp_path) -> Iterator[Bench]:
    with contextlib.ExitStack() as stack:
        yield Bench(tmp_path, stack)


@dataclass
class Outcome:
    """What a command left: exit code and what it said on standard error."""

    code: int
    said: str


@pytest.fixture
def command(capsys, monkeypatch) -> Callable[..., Outcome]:
    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["netjoule-meters", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Outcome(int(ended.value.code or 0), capsys.readouterr().err)

    return run


def reading(adapter: str, resource: str, *settings: str) -> tuple[str, ...]:
    """A ``read`` command."""
    return (
        *("read", adapter, "--port", resource, "-n", "1"),
        *(part for setting in settings for part in ("--set", setting)),
    )


class InAnotherMode:
    """A WT210 that is not in its 488.2 mode: it answers nothing and pushes what it shows."""

    def __init__(self, instrument: Instrument) -> None:
        self._instrument = instrument
        self._next_s = 0.0

    def feed(self, interval: Any) -> None:
        self._instrument.feed(interval)

    def receive(self, data: bytes) -> None:
        """No command of the 488.2 mode is known."""

    def step(self, now_s: float) -> bytes:
        self._instrument.step(now_s)
        if now_s < self._next_s:
            return b""
        self._next_s = now_s + 0.25
        return b"V1   230.00E+0,A1   54.35E-3,W1   12.50E+0\r\n"

    def wake_s(self, now_s: float) -> float | None:
        return self._next_s


class AnotherServer:
    """A server of another kind: every line is an error to it."""

    def __init__(self) -> None:
        self._lines = 0

    def feed(self, interval: Any) -> None:
        """It measures nothing."""

    def receive(self, data: bytes) -> None:
        self._lines += data.count(b"\n")

    def step(self, now_s: float) -> bytes:
        lines, self._lines = self._lines, 0
        return b"500 Syntax error, command unrecognised\r\n" * lines

    def wake_s(self, now_s: float) -> float | None:
        return None


@contextlib.contextmanager
def as_somebody_without_rights(path: Path) -> Iterator[None]:
    """``path`` is closed to others, and this process is not its owner (root is let in everywhere)."""
    path.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


# -- one row each: before the first reading ----------------------------------------------------------------

Case = Callable[[Bench], "contextlib.AbstractContextManager[tuple[str, ...]]"]


@contextlib.contextmanager
def wrong_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("wt210", str(bench.folder / "ttyUSB9"), *WT210)


@contextlib.contextmanager
def a_file_for_a_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    (bench.folder / "notes.txt").write_text("not a port\n")
    yield reading("wt210", str(bench.folder / "notes.txt"), *WT210)


@contextlib.contextmanager
def wrong_tcp_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield reading("ptd", f"tcp:127.0.0.1:{silent.getsockname()[1]}", *WT210)


@contextlib.contextmanager
def wrong_http_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield reading("socket", f"http://127.0.0.1:{silent.getsockname()[1]}", "preset=netio")


@contextlib.contextmanager
def a_port_of_another_kind(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("hm8115", "snmp:127.0.0.1", *HM8115)


@contextlib.contextmanager
def wrong_baud_rate(bench: Bench) -> Iterator[tuple[str, ...]]:
    bench.impatient()
    yield reading("wt210", bench.instrument("wt210", baud_rate=4800), *WT210)


@contextlib.contextmanager
def wrong_baud_rate_of_a_hameg(bench: Bench) -> Iterator[tuple[str, ...]]:
    bench.impatient()
    yield reading("hm8115", bench.instrument("hm8115", baud_rate=9600), "baud_rate=1200", *HM8115)


@contextlib.contextmanager
def not_in_488_2_mode(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("wt210", bench.instrument("wt210", behaviour=InAnotherMode), *WT210)


@contextlib.contextmanager
def another_yokogawa(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("wt210", bench.instrument("wt310"), *WT210)


@contextlib.contextmanager
def another_make(bench: Bench) -> Iterator[tuple[str, ...]]:
    bench.impatient()
    yield reading("hm8115", bench.instrument("wt210"), *HM8115)


@contextlib.contextmanager
def another_server(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("ptd", bench.instrument("ptd", behaviour=lambda _: AnotherServer()), *WT210)


@contextlib.contextmanager
def a_server_that_waits_for_more(bench: Bench) -> Iterator[tuple[str, ...]]:
    bench.impatient()
    resource = bench.instrument("socket", variant="netio")
    yield reading("ptd", f"tcp:{resource.removeprefix('http://')}", *WT210)


@contextlib.contextmanager
def another_socket(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("socket", bench.instrument("socket", variant="tasmota"), "preset=shelly2")


@contextlib.contextmanager
def a_mapping_that_does_not_fit(bench: Bench) -> Iterator[tuple[str, ...]]:
    resource = bench.instrument("socket", variant="tasmota")
    yield reading("socket", resource, "preset=tasmota", "power_path=/StatusSNS/ENERGY/Watts")


@contextlib.contextmanager
def no_permission_on_the_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    resource = bench.instrument("wt210")
    with as_somebody_without_rights(Path(resource)):
        yield reading("wt210", resource, *WT210)


@contextlib.contextmanager
def no_permission_on_the_counter(bench: Bench) -> Iterator[tuple[str, ...]]:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        zone = Path(name, "class/powercap/intel-rapl:0")
        zone.mkdir(parents=True)
        for file, content in (("name", "package-0"), ("max_energy_range_uj", "99"), ("energy_uj", "1")):
            (zone / file).write_text(content)
        with as_somebody_without_rights(zone / "energy_uj"):
            yield reading("rapl", "sysfs:intel-rapl:0", f"sysfs_root={name}")


@contextlib.contextmanager
def http_500(bench: Bench) -> Iterator[tuple[str, ...]]:
    resource = bench.instrument("socket", variant="netio")
    bench.fault("http_500", seconds=60)
    yield reading("socket", resource, "preset=netio")


@contextlib.contextmanager
def snmp_time_out(bench: Bench) -> Iterator[tuple[str, ...]]:
    resource = bench.instrument("socket", variant="apc")
    bench.fault("silence", seconds=60)
    yield reading("socket", resource, "preset=apc", "answer_timeout_s=0.3")


@contextlib.contextmanager
def two_meters_with_one_id(bench: Bench) -> Iterator[tuple[str, ...]]:
    meters = [
        {"meter_id": "laptop", "node": "client", "adapter": "ptd", "resource": f"tcp:lab{number}:8888"}
        for number in (1, 2)
    ]
    path = bench.folder / "meters.json"
    path.write_text(json.dumps({"schema_version": 1, "meters": meters}))
    yield ("log", "--config", str(path), "--out", str(bench.folder))


@contextlib.contextmanager
def two_meters_on_one_port(bench: Bench) -> Iterator[tuple[str, ...]]:
    meters = [
        {"meter_id": name, "node": "client", "adapter": "ptd", "resource": "tcp:lab:8888"}
        for name in ("laptop", "router")
    ]
    path = bench.folder / "meters.json"
    path.write_text(json.dumps({"schema_version": 1, "meters": meters}))
    yield ("log", "--config", str(path), "--out", str(bench.folder))


@contextlib.contextmanager
def a_missing_library(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("joulescope", "joulescope:")


@contextlib.contextmanager
def a_setting_of_the_wrong_kind(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("wt210", "/dev/ttyUSB0", *WT210, "lag_s=late")


@contextlib.contextmanager
def an_unknown_setting(bench: Bench) -> Iterator[tuple[str, ...]]:
    yield reading("wt210", "/dev/ttyUSB0", *WT210, "colour=red")


BEFORE_THE_FIRST_READING: list[tuple[Case, int]] = [
    (wrong_port, 3),
    (a_file_for_a_port, 3),
    (wrong_tcp_port, 3),
    (wrong_http_port, 3),
    (a_port_of_another_kind, 2),
    (wrong_baud_rate, 3),
    (wrong_baud_rate_of_a_hameg, 3),
    (not_in_488_2_mode, 3),
    (another_yokogawa, 3),
    (another_make, 3),
    (another_server, 3),
    (a_server_that_waits_for_more, 3),
    (another_socket, 3),
    (a_mapping_that_does_not_fit, 3),
    (no_permission_on_the_port, 3),
    (no_permission_on_the_counter, 3),
    (http_500, 3),
    (snmp_time_out, 3),
    (two_meters_with_one_id, 2),
    (two_meters_on_one_port, 2),
    (a_setting_of_the_wrong_kind, 2),
    (an_unknown_setting, 2),
    (a_missing_library, 3),
]


@pytest.mark.parametrize(
    ("case", "code"),
    BEFORE_THE_FIRST_READING,
    ids=[row[0].__name__ for row in BEFORE_THE_FIRST_READING],
)
def test_before_the_first_reading(bench, command, case, code):
    with case(bench) as arguments:
        outcome = command(*arguments)
    assert outcome.code == code, outcome.said
    same_sentence(outcome.said)
    assert outcome.said.count("\n") == 1 and outcome.said.startswith("netjoule-meters: ")
    assert "Traceback" not in outcome.said


@pytest.mark.parametrize("words", [["reed"], ["read", "--prot", "x"], ["read", "wt210", "--count", "x"]])
def test_a_wrong_command_line_is_one_line_like_every_error(command, words):
    outcome = command(*words)
    assert outcome.code == 2
    same_sentence(outcome.said)
    assert outcome.said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ([], "Usage: netjoule-meters [OPTIONS] COMMAND"),
        (["clock"], "Usage: netjoule-meters clock [OPTIONS] COMMAND"),
        *(
            ([name], f"Usage: netjoule-meters {name} [OPTIONS]")
            for name in ("read", "log", "emulate", "range")
        ),
        (["--version"], "netjoule-meters 0."),
    ],
)
def test_a_bare_command_prints_its_help(monkeypatch, capsys, words, printed):
    monkeypatch.setattr(sys, "argv", ["netjoule-meters", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out.startswith(printed)


# -- one row each: while readings run ----------------------------------------------------------------------


class Logging:
    """The logger in a thread; its events and rows so far."""

    def __init__(self, folder: Path, *configs: MeterConfig) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.ids = [config.meter_id for config in configs]
        self.logger = Logger(list(configs), folder, 0, SystemClock(), date(2026, 1, 1), self._take)
        self.thread = threading.Thread(target=self.logger.run)

    def _take(self, event: Any) -> None:
        self.events.append(dict(event))

    def __enter__(self) -> Logging:
        self.thread.start()
        try:
            self.wait(self.rows)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.logger.end()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()

    def rows(self, index: int = 0) -> list[dict[str, str]]:
        path = self.folder / "meters" / f"{self.ids[index]}.csv"
        head, *lines = (path.read_text() if path.exists() else "").splitlines() or [""]
        names = head.split(",")
        return [dict(zip(names, line.split(","), strict=True)) for line in lines]

    def flags(self) -> list[str]:
        return [row["flag"] for row in self.rows()]

    def said(self, kind: str) -> list[str]:
        return [event["message"] for event in self.events if event.get("kind") == kind]

    def wait(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.thread.is_alive(), self.events
            assert time.monotonic() < deadline, (self.events, self.flags())
            time.sleep(0.02)

    def wait_for_good_rows(self, count: int) -> None:
        have = self.flags().count("")
        self.wait(lambda: self.flags().count("") >= have + count)


def wt210(resource: str, **settings: Any) -> MeterConfig:
    known = {"voltage_range_v": 300, "current_range_a": 0.1, "update_interval_s": 0.1}
    return MeterConfig("laptop", "client", "wt210", resource, {**known, **settings})


def only_true_values(log: Logging) -> bool:
    return {row["power_w"] for row in log.rows()} <= {"12.5", ""}


def test_garbage_bytes_are_rows_without_numbers_and_told(bench):
    with Logging(bench.folder, wt210(bench.instrument("wt210"))) as log:
        bench.fault("garbage", bytes=40, with_answer=1)
        log.wait(lambda: "garbage" in log.flags())
        log.wait_for_good_rows(3)
        assert any("check cable, baud rate" in sentence for sentence in log.said("garbage"))
        assert only_true_values(log)


def test_partial_lines_are_put_together(bench):
    with Logging(bench.folder, wt210(bench.instrument("wt210"))) as log:
        bench.fault("split", seconds=1.0, gap_s=0.002)
        log.wait_for_good_rows(8)
        assert "garbage" not in log.flags() and only_true_values(log)


def test_a_line_that_never_ends_is_a_gap_and_the_meter_comes_back(bench):
    with Logging(bench.folder, wt210(bench.instrument("wt210"))) as log:
        bench.fault("silence", seconds=1.0)
        log.wait(lambda: "timeout" in log.flags())
        log.wait_for_good_rows(3)
        assert any("no new value" in sentence for sentence in log.said("gap"))
        assert only_true_values(log)


def test_http_500_while_logging_is_garbage_that_names_the_status(bench, caplog):
    resource = bench.instrument("socket", variant="netio", update_interval_s=0.1)
    settings = {"preset": "netio", "update_interval_s": 0.1}
    with (
        caplog.at_level("INFO", logger="netjoule_meters"),
        Logging(bench.folder, MeterConfig("laptop", "client", "socket", resource, settings)) as log,
    ):
        bench.fault("http_500", seconds=0.5)
        log.wait(lambda: "garbage" in log.flags())
        log.wait_for_good_rows(2)
    assert "500" in caplog.text


def test_snmp_silence_while_logging_is_a_gap(bench):
    resource = bench.instrument("socket", variant="apc", power_w=120.0, update_interval_s=0.1)
    settings = {"preset": "apc", "update_interval_s": 0.1, "answer_timeout_s": 0.2}
    with Logging(bench.folder, MeterConfig("rack", "client", "socket", resource, settings)) as log:
        bench.fault("silence", seconds=1.0)
        log.wait(lambda: "timeout" in log.flags())
        log.wait_for_good_rows(2)
        assert any("no new value" in sentence for sentence in log.said("gap"))


def test_a_meter_that_freezes_on_one_value_is_stale_from_then_on(bench):
    with Logging(bench.folder, wt210(bench.instrument("wt210"), stuck_after_s=1.0)) as log:
        log.wait(lambda: "stale" in log.flags())  # constant power: this meter never moves
        log.wait(lambda: log.said("stuck"))
        (sentence,) = log.said("stuck")
        assert "12.5" in sentence and any(step in sentence for step in ("check", "look", "restart"))


def test_a_ptdaemon_that_goes_away_and_comes_back(bench):
    resource = bench.instrument("ptd", update_interval_s=0.2)
    settings = {"voltage_range_v": 300, "current_range_a": 0.1, "update_interval_s": 0.2}
    with Logging(bench.folder, MeterConfig("laptop", "client", "ptd", resource, settings)) as log:
        bench.fault("disconnect", seconds=0.8)
        log.wait(lambda: "reconnect" in log.flags())
        bench.fault("garbage", bytes=30, with_answer=1)
        log.wait(lambda: "garbage" in log.flags())
        bench.fault("nan", count=2)
        log.wait(lambda: log.flags().count("no_data") >= 2)
        log.wait_for_good_rows(3)
        assert only_true_values(log)
    assert any("range may be too small" in sentence for sentence in log.said("note"))


def test_a_permission_that_is_lost_while_logging_is_a_gap_not_an_end(bench):
    zone = bench.folder / "class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for file, content in (("name", "package-0"), ("max_energy_range_uj", "9999"), ("energy_uj", "1")):
        (zone / file).write_text(content)
    settings = {"sysfs_root": str(bench.folder), "update_interval_s": 0.05}
    with Logging(bench.folder, MeterConfig("cpu", "client", "rapl", "sysfs:intel-rapl:0", settings)) as log:
        (zone / "energy_uj").rename(zone / "away")
        log.wait(lambda: "timeout" in log.flags())
        (zone / "away").rename(zone / "energy_uj")
        log.wait(lambda: "reconnect" in log.flags())
        log.wait_for_good_rows(2)


# -- the line between two baud rates -----------------------------------------------------------------------


def test_bytes_at_the_right_rate_are_those_that_were_sent():
    assert as_received(b"*IDN?\n", 9600, 9600) == b"*IDN?\n"


@pytest.mark.parametrize(
    ("sent_bd", "received_bd"), [(9600, 4800), (4800, 9600), (57600, 9600), (1200, 9600)]
)
def test_bytes_at_a_wrong_rate_are_others(sent_bd, received_bd):
    taken = as_received(b"230.00E+00,54.35E-03,12.50E+00\r\n", sent_bd, received_bd)
    assert taken and b"230" not in taken and b"\n" not in taken.strip()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("wt210", "--baud-rate", "4801"), "no serial port runs at 4801 Bd: choose one of "),
        (("ptd", "--baud-rate", "9600"), "--baud-rate goes with a pseudo-terminal"),
    ],
)
def test_a_baud_rate_that_an_emulated_instrument_cannot_have(command, options, words):
    outcome = command("emulate", *options, "--power-w", "5")
    assert outcome.code == 2 and words in outcome.said


def test_a_slow_receiver_takes_the_first_bit_of_each_pair():
    # 'U' at twice the rate: 0 1 0 1 ... each sample of the slow receiver falls on a high bit.
    assert as_received(b"U", 9600, 4800) == b"\xff"

# SPDX-License-Identifier: Apache-2.0
"""The PTDaemon client: its every byte, and against the emulated PTDaemon."""

from __future__ import annotations

import contextlib
import threading
from datetime import date

import pytest
from golden_sentences import raises
from meter_dialogue import SILENCE, UNPLUGGED, Dialogue, expected_dialogue

from netjoule_meters.adapters.power_analysers.ptd import Ptd
from netjoule_meters.adapters.power_analysers.wt310 import WT310
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions, make_instrument
from netjoule_meters.errors import NoAnswer, ReplyTimeout, SettingRefused, UsageError, WrongInstrument
from netjoule_meters.reading import Flag

SETTINGS = {"voltage_range_v": 300, "current_range_a": 0.5}
IDENTITY = b"YokogawaWT210,1000,1,1,1,1,0,0,1,version=1.11.1-0-0,OS=Linux,mode=power,1,1,1,0,0"
HELLO = [(b"Hello", b"Hello, PTDaemon here!")]
GREET = [*HELLO, (b"Identify", IDENTITY)]
RANGES = [
    (b"Stop", b"Error: no measurement to stop"),
    (b"SR,V,300", b"Range V changed"),
    (b"SR,A,0.5", b"Range A changed"),
    (b"RR", b"Ranges,0,0.500000,0,300.000000"),
]
STARTED = b"Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples"
GO = [(b"Go,1000,0,netjoule", STARTED)]
OPEN = [*GREET, *RANGES, *GO]


def line(clock: str, watts: str = "22.950000") -> bytes:
    return f"Time,11-21-2026 {clock},Watts,{watts},Volts,228.57,Amps,0.20643,PF,0.4864,Mark,netjoule".encode()


def batch(*lines: bytes) -> list:
    return [(b"RL,*", b"Last %d samples" % len(lines)), *((None, sample) for sample in lines)]


@contextlib.contextmanager
def opened(clock, entries, notes=None, wait=None, **settings):
    with expected_dialogue([*OPEN, *entries], wait) as dialogue:
        notify = None if notes is None else notes.append
        meter = Ptd(dialogue, {**SETTINGS, **settings}, clock=clock, notify=notify)
        meter.open()
        yield meter


def refused(clock, entries, kind, **settings):
    with expected_dialogue(entries) as dialogue:
        meter = Ptd(dialogue, {**SETTINGS, **settings}, clock=clock)
        with raises(kind):
            meter.open()


def test_open_greets_identifies_ranges_and_starts(clock):
    with opened(clock, []) as meter:
        assert meter.identification.model == "YokogawaWT210"
        assert meter.identification.firmware == "1.11.1-0-0"
        assert (meter.measuring_range.voltage_v, meter.measuring_range.current_a) == (300.0, 0.5)
        assert meter.update_interval_s == meter.lag_s == 1.0


def test_each_sample_is_one_reading_spaced_by_ptdaemons_clock(clock):
    samples = batch(line("15:21:14.682"), line("15:21:15.682", "23.0"), line("15:21:16.682", "24.0"))
    clock.advance(100.0)
    with opened(clock, samples) as meter:
        readings = [meter.read() for _ in range(3)]
    assert [reading.power_w for reading in readings] == [22.95, 23.0, 24.0]
    assert readings[-1].t_ns == clock.now_ns
    assert [readings[-1].t_ns - reading.t_ns for reading in readings] == [2_000_000_000, 1_000_000_000, 0]
    assert {reading.flag for reading in readings} == {Flag.GOOD}
    assert (readings[0].voltage_v, readings[0].current_a) == (228.57, 0.20643)


def test_the_same_sample_twice_is_a_duplicate(clock):
    same = line("15:21:14.682")
    with opened(clock, [*batch(same), *batch(same)]) as meter:
        assert [meter.read().flag for _ in range(2)] == [Flag.GOOD, Flag.DUPLICATE]


@pytest.mark.parametrize("watts", ["nan", "-1.000000", "-2.000000", "inf"])
def test_a_sample_without_watts_is_a_flagged_row_and_a_note(clock, watts):
    notes: list[str] = []
    with opened(clock, batch(line("15:21:14.682", watts)), notes) as meter:
        reading = meter.read()
    assert (reading.power_w, reading.flag, reading.voltage_v) == (None, Flag.NO_DATA, 228.57)
    assert len(notes) == 1 and "range may be too small" in notes[0]


def test_many_samples_without_watts_are_one_note(clock):
    notes: list[str] = []
    samples = batch(*(line(f"15:21:1{second}.000", "-1.000000") for second in range(4)))
    with opened(clock, samples, notes) as meter:
        assert {meter.read().flag for _ in range(4)} == {Flag.NO_DATA}
    assert len(notes) == 1


def test_a_clock_of_ptdaemons_host_that_was_set_back_spaces_nothing(clock):
    with opened(clock, batch(line("15:21:14.682"), line("15:21:13.000"))) as meter:
        assert meter.read().flag is Flag.GARBAGE


def test_stamps_never_go_back(clock):
    entries = [*batch(line("15:21:14.000")), *batch(line("15:21:15.000"), line("15:21:16.000"))]
    with opened(clock, entries) as meter:
        first = meter.read()  # arrived late: by PTDaemon's clock the next two lie before it
        clock.advance(0.5)
        stamps = [first.t_ns, meter.read().t_ns, meter.read().t_ns]
    assert stamps == sorted(set(stamps))


def test_no_unread_sample_is_asked_for_again(clock):
    entries = [(b"RL,*", b"No unread samples available"), *batch(line("15:21:14.682"))]
    with opened(clock, entries) as meter:
        with raises(ReplyTimeout):
            meter.read()
        assert meter.read().power_w == 22.95


def test_a_pause_within_a_list_goes_on_where_it_stopped(clock):
    entries = [(b"RL,*", b"Last 2 samples"), (None, line("15:21:14.682")), (None, SILENCE)]
    entries += [(None, line("15:21:15.682", "23.0"))]
    with opened(clock, entries, wait=clock.advance) as meter:
        with pytest.raises(ReplyTimeout):
            meter.read()
        assert [meter.read().power_w for _ in range(2)] == [22.95, 23.0]


def test_garbage_is_one_flagged_row_and_then_all_is_well(clock):
    entries = [
        (b"RL,*", b"Last 1 samples"),
        (None, b"Time,11-21-2026 15:21:14.682,Wa"),
        *[(b"Hello", b"Time,11-21-2026 15:21:15.000,Watts,1"), (None, b"Hello, PTDaemon here!")],
        *batch(line("15:21:16.682", "24.0")),
    ]
    with opened(clock, entries) as meter:
        assert meter.read().flag is Flag.GARBAGE
        assert meter.read().power_w == 24.0


@pytest.mark.parametrize("head", [b"\xff\x00\x80", b"Last 0 samples", b"Last 99999999 samples", b"Error: x"])
def test_no_head_of_a_list_is_garbage(clock, head):
    with opened(clock, [(b"RL,*", head)]) as meter:
        assert meter.read().flag is Flag.GARBAGE


def test_a_broken_connection_is_a_gap_and_a_new_measurement(clock):
    stop = threading.Event()
    # The daemon goes on measuring while nobody is connected: Stop is answered with "Stopping".
    again = [*GREET, (b"Stop", b"Stopping untimed measurement"), *RANGES[1:], *GO]
    entries = [*batch(line("15:21:14.682")), (b"RL,*", UNPLUGGED), *again, *batch(line("15:21:20.682"))]
    with opened(clock, entries) as meter:
        flags = []
        for reading in meter.readings(stop):
            flags.append(reading.flag)
            if len(flags) == 3:
                break
    assert flags == [Flag.GOOD, Flag.RECONNECT, Flag.GOOD]


def test_the_uncertainty_warning_is_passed_on_once(clock):
    notes: list[str] = []
    many = [line(f"15:{index // 60:02d}:{index % 60:02d}.000") for index in range(60)]
    warning = (b"Uncertainty", b"Uncertainty,0.021000,0.02,0.022,60,60,0,0")
    entries = [*batch(*many), warning, *batch(line("15:01:00.000"))]
    with opened(clock, entries, notes) as meter:
        for _ in range(61):
            assert meter.read().flag is Flag.GOOD
    assert len(notes) == 1
    assert "60 have an uncertainty over its limit" in notes[0] and "smaller ranges" in notes[0]


def test_close_ends_the_measurement(clock):
    with opened(clock, [(b"Stop", None)]) as meter:
        meter.close()


@pytest.mark.parametrize(
    "greeting", [b"220 mail.example ESMTP", b"HTTP/1.1 400 Bad Request", b"YOKOGAWA,760401,0,F2.01"]
)
def test_another_greeting(clock, greeting):
    refused(clock, [(b"Hello", greeting)], WrongInstrument)


def test_nothing_answers(clock):
    refused(clock, [(b"Hello", SILENCE)], NoAnswer)


def test_a_temperature_daemon(clock):
    identity = IDENTITY.replace(b"mode=power", b"mode=temperature")
    refused(clock, [*HELLO, (b"Identify", identity)], WrongInstrument)


def test_an_answer_that_identifies_nothing(clock):
    refused(clock, [*HELLO, (b"Identify", b"Unknown command")], WrongInstrument)


def test_another_analyser_than_the_settings_say(clock):
    refused(clock, GREET, WrongInstrument, model="WT310")


@pytest.mark.parametrize("answer", [b"Meter busy", b"Error in parameter", b"Invalid number of parameters"])
def test_a_refused_range(clock, answer):
    entries = [*GREET, RANGES[0], (b"SR,V,300", answer)]
    refused(clock, entries, SettingRefused)


@pytest.mark.parametrize("shown", [b"Ranges,1,0.5,0,300.0", b"Ranges,0,0.2,0,300.0"])
def test_a_range_that_is_not_kept(clock, shown):
    refused(clock, [*GREET, *RANGES[:3], (b"RR", shown)], SettingRefused)


def test_a_measurement_that_does_not_start(clock):
    refused(clock, [*GREET, *RANGES, (GO[0][0], b"Meter busy")], SettingRefused)


def test_an_analyser_whose_ranges_are_set_by_hand(clock):
    identity = IDENTITY.replace(b"mode=power,1,1", b"mode=power,1,0")
    entries = [*HELLO, (b"Identify", identity), RANGES[0], (b"RR", b"Ranges,-1,-1.0,-1,-1.0"), *GO]
    with expected_dialogue(entries) as dialogue:
        meter = Ptd(dialogue, SETTINGS, clock=clock)
        meter.open()
        assert meter.measuring_range.power_w == 150.0


def test_autorange_for_a_ranging_pass_and_back(clock):
    stop, auto = (b"Stop", b"Stopping untimed measurement"), (b"RR", b"Ranges,1,0.2,1,300.0")
    entries = [
        *HELLO,
        stop,
        (b"SR,V,Auto", b"Range V changed"),
        (b"SR,A,Auto", b"Range A changed"),
        auto,
        *GO,
    ]
    entries += [*HELLO, stop, *RANGES[1:], *GO]
    with opened(clock, entries) as meter:
        meter.autorange(True)
        assert meter.measuring_range.current_a == 0.2
        meter.autorange(False)
        assert meter.measuring_range.current_a == 0.5
        assert meter.choose_range(230.0, 0.2, 46.0) == {"voltage_range_v": 253.0, "current_range_a": 0.22}


@pytest.mark.parametrize("model", ["WT310", "WT310E"])
def test_a_wt310_behind_ptdaemon_has_the_limits_of_one_that_is_read_directly(clock, model):
    settings = {"voltage_range_v": 300, "current_range_a": 20, "model": model}
    behind = Ptd(Dialogue([]), settings, clock=clock)
    direct = WT310(Dialogue([]), settings, clock=clock)
    assert behind.accuracy(100.0).terms == direct.accuracy(100.0).terms


def test_accuracy_is_unknown_unless_the_analyser_is_named(clock):
    with expected_dialogue([]) as dialogue:
        unnamed = Ptd(dialogue, SETTINGS, clock=clock)
        named = Ptd(dialogue, {**SETTINGS, "model": "WT210"}, clock=clock)
        younger = Ptd(dialogue, {**SETTINGS, "model": "WT310"}, clock=clock)
    assert unnamed.accuracy(100.0).status == "unknown"
    assert named.accuracy(None).status == "unknown"
    assert named.accuracy(100.0).status == younger.accuracy(100.0).status == "known"


def test_passport_says_what_is_not_confirmed(clock):
    with opened(clock, []) as meter:
        passport = meter.passport(
            MeterConfig("m1", "client", "ptd", "tcp:lab:8888"), date(2026, 1, 1)
        ).document()
    assert passport["semantics"] == "interval_mean" and passport["accuracy"]["status"] == "unknown"
    assert any("PTDaemon" in statement for statement in passport["provisional"])


def test_a_look_at_what_is_provisional(clock):
    samples = batch(line("15:21:14.000"), line("15:21:15.000"), line("15:21:16.000"))
    clock.advance(100.0)
    with opened(clock, samples) as meter:
        findings = meter.confirm(3)
    assert [finding.statement for finding in findings] == list(meter.provisional)
    assert [finding.holds for finding in findings] == [True, None, None, None]
    assert findings[1].seen == "1.000 s between samples, median"


# -- the emulated PTDaemon -----------------------------------------------------------------------------


class Bench:
    """An emulated PTDaemon with constant power and a clock that is turned by hand."""

    def __init__(self, power_w: float = 22.95, **options: object) -> None:
        self.daemon = make_instrument("ptd", EmulationOptions(update_interval_s=1.0, **options))  # type: ignore[arg-type]
        self.power_w = power_w
        self.now_s = 0.0

    def ask(self, *commands: str) -> list[str]:
        self.daemon.receive("".join(f"{command}\r\n" for command in commands).encode())
        return self.take()

    def take(self) -> list[str]:
        return self.daemon.step(self.now_s).decode().split("\r\n")[:-1]

    def advance(self, seconds: float) -> list[str]:
        lines: list[str] = []
        for _ in range(round(seconds / 0.25)):
            self.daemon.feed(PowerInterval(self.now_s, self.now_s + 0.25, self.power_w))
            self.now_s += 0.25
            lines += self.take()
        return lines

    def measuring(self) -> Bench:
        self.ask("SR,V,300", "SR,A,0.5", "Go,1000,0,m")
        return self


def test_the_emulated_one_says_that_it_is_emulated():
    greeting, identity = Bench().ask("Hello", "Identify")
    assert greeting == "Hello, PTDaemon here!"
    assert identity.startswith("YokogawaWT210,1000,") and identity.endswith("emulated by netjoule")


def test_samples_are_told_once_and_a_wait_is_held():
    bench = Bench().measuring()
    bench.advance(1.5)
    assert bench.ask("RL,*") == []
    told = bench.advance(1.5)
    assert told[0] == "Last 1 samples"
    assert told[1].startswith("Time,01-01-2000 00:00:02.000,Watts,22.950000,Volts,230.000000,Amps,0.099780")
    assert told[1].endswith("Mark,m")
    bench.advance(2.0)
    assert bench.ask("RL,*")[0] == "Last 3 samples"


def test_a_wait_without_a_sample_ends_after_one_interval():
    bench = Bench().measuring()
    assert bench.ask("RL,*", "Hello") == []
    bench.now_s += 1.5
    assert bench.take() == ["No unread samples available", "Hello, PTDaemon here!"]


def test_over_range_and_faults_come_as_minus_one():
    bench = Bench(power_w=230 * 0.5 * 1.5).measuring()
    bench.advance(3.0)
    assert ",Watts,-1.000000,Volts,230.000000,Amps,-1.000000," in bench.ask("RL,*")[1]
    bench.power_w = 20.0
    bench.advance(3.0)
    bench.ask("RL,*")
    assert bench.daemon.take_fault("nan", {}, bench.now_s)
    assert not bench.daemon.take_fault("explode", {}, bench.now_s)
    bench.advance(2.0)
    _, wrong, right = bench.ask("RL,*")
    assert ",Watts,nan," in wrong and ",Watts,20.000000," in right


def test_watts_and_uncertainty_over_the_measurement():
    bench = Bench(power_w=2.0).measuring()
    bench.advance(5.0)
    watts = bench.ask("Watts")[0].split(",")
    assert watts == ["Watts", "2.000000", "2.000000", "2.000000", "4", "0", "4"]
    uncertainty = bench.ask("Uncertainty")[0].split(",")
    assert float(uncertainty[1]) == pytest.approx(0.0015 + 0.001 * 150 / 2)
    assert uncertainty[4:] == ["4", "4", "0", "0"], "2 W on a 150 W range are known worse than 1 %"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("Stop", "Error: no measurement to stop"),
        ("RL,*", "Error: no measurement running"),
        ("SR,V,1000", "Error in parameter"),
        ("SR,Q,1", "Error in parameter"),
        ("SR,A,inf", "Error in parameter"),
        ("SR,V", "Invalid number of parameters"),
        ("Go,10,0", "Error in parameter"),
        ("Go,1000", "Invalid number of parameters"),
        ("Fly", "Unknown command"),
    ],
)
def test_what_the_emulated_one_refuses(command, answer):
    assert Bench().ask(command) == [answer]


def test_ranges_go_upwards_and_are_locked_while_measuring():
    bench = Bench()
    assert bench.ask("RR") == ["Ranges,1,20.000000,1,600.000000"]
    assert bench.ask("SR,V,231", "SR,A,0.3", "RR")[2] == "Ranges,0,0.500000,0,300.000000"
    assert bench.ask("Go,0,0")[0].endswith("at 1000ms with 0 rampup samples")
    assert bench.ask("SR,V,600", "Go,0,0") == ["Meter busy", "Meter busy"]


def test_autorange_follows_the_load():
    bench = Bench(power_w=200.0, supply=Supply())
    bench.ask("Go,1000,0,m")
    bench.advance(3.0)
    assert bench.ask("RR") == ["Ranges,1,1.000000,1,300.000000"]


def test_each_seed_is_another_analyser():
    shown = set()
    for seed in (1, 2):
        bench = Bench(seed=seed).measuring()
        bench.advance(3.0)
        watts = float(bench.ask("RL,*")[1].split(",")[3])
        assert abs(watts - 22.95) <= 0.0015 * 22.95 + 0.001 * 150 + 0.005
        shown.add(watts)
    assert len(shown) == 2


def test_too_short_an_interval_is_refused():
    with raises(UsageError):
        make_instrument("ptd", EmulationOptions(update_interval_s=0.01))

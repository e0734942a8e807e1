# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import socket
import threading
from queue import Queue
from random import Random

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st
from meter_processes import PATIENCE_S

from netjoule_contracts import table
from netjoule_meters.clock import SystemClock
from netjoule_meters.errors import GarbageReply, MeterUnavailable, UsageError
from netjoule_meters.logger import clock_follower
from netjoule_meters.logger.chrony import chrony_row, parse_tracking, tracking_here
from netjoule_meters.logger.clock_exchange import (
    Exchange,
    Offset,
    clock_is_usable,
    clock_row,
    clock_was_stepped,
    drift_of,
    measure,
    offset_of,
    serve,
)
from netjoule_meters.logger.clock_follower import ClockFollower
from netjoule_meters.logger.clock_map import ClockMap

SECOND = 10**9


class ShiftedClock:
    """The system's clock, so many ns ahead."""

    def __init__(self, ahead_ns: int) -> None:
        self.ahead_ns = ahead_ns

    def monotonic_ns(self) -> int:
        return SystemClock().monotonic_ns() + self.ahead_ns


def exchange(t_ns: int, offset_ns: int, there_ns: int, back_ns: int) -> Exchange:
    """What is stamped when the other clock is ahead by ``offset_ns`` and the ways take so long."""
    received_ns = t_ns + there_ns
    return Exchange(
        t_ns, received_ns + offset_ns, received_ns + offset_ns + 5000, received_ns + 5000 + back_ns
    )


def an_exchange(offset_ns: int, random: Random, t_ns: int = 0) -> Exchange:
    return exchange(t_ns, offset_ns, *(round(random.expovariate(1 / 300_000)) + 50_000 for _ in range(2)))


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=20),
)
def test_the_true_offset_is_always_within_the_residual(offset_ns, ways):
    taken = [exchange(n * 10**7, offset_ns, *way) for n, way in enumerate(ways)]
    found = offset_of(taken)
    assert abs(found.offset_ns - offset_ns) <= found.residual_ns
    assert found.residual_ns == pytest.approx(min(sum(way) for way in ways) / 2, abs=1)


def test_stamps_that_contradict_each_other():
    for wrong in ([], [Exchange(0, 5, 100, 50)]):
        with raises(GarbageReply):
            offset_of(wrong)


def test_drift_is_within_its_residual_and_better_over_longer_time():
    random = Random(4)
    offsets = []
    for minute in range(30):
        t_ns = minute * 60 * SECOND
        truth_ns = 7 * SECOND + round(t_ns * 23.5e-6)
        offsets.append(offset_of([an_exchange(truth_ns, random, t_ns) for _ in range(20)]))
    assert drift_of(offsets[:1]) is None
    short, long = drift_of(offsets[:2]), drift_of(offsets)
    assert long.residual_ppm < short.residual_ppm / 10
    assert abs(long.ppm - 23.5) <= long.residual_ppm < 1


def test_rows_fit_the_contract_and_tell_no_drift_that_is_not_known():
    offsets = [Offset(2 * SECOND, 5 * SECOND, 150_000), Offset(3 * SECOND, 5 * SECOND + 20_000, 150_000)]
    row = clock_row("meterhost", offsets, SECOND)
    assert row == {"t_s": 2.0, "host": "meterhost", "offset_s": 5.00002, "drift_ppm": None,
                   "residual_s": 0.00015, "method": "control_exchange"}  # fmt: skip
    assert list(row) == [field["name"] for field in table("clocks")["fields"]]
    later = clock_row("meterhost", [*offsets, Offset(1002 * SECOND, 5 * SECOND + 10**7, 150_000)], SECOND)
    assert later["drift_ppm"] == pytest.approx(10, abs=0.01)


def a_row(**changes) -> dict:
    return {
        "t_s": 0.0,
        "host": "mh",
        "offset_s": 9.0,
        "drift_ppm": 3.0,
        "residual_s": 1e-4,
        "method": "x",
    } | changes


def test_a_clock_that_is_known_well_is_usable_however_far_away():
    assert clock_is_usable(a_row(), 10) is None
    assert clock_is_usable(a_row(offset_s=1e6, drift_ppm=None), 10) is None


@pytest.mark.parametrize(
    ("row", "window_s", "words"),
    [
        (a_row(residual_s=0.011), 10, "is known to 11 ms only, more than 10 ms for windows of 10 s"),
        (a_row(residual_s=0.021), 1000, "more than 20 ms"),
        (a_row(drift_ppm=-400.0), 10, "drifts by -400 ppm"),
        (a_row(residual_s=float("nan")), 10, "was not measured"),
    ],
)
def test_reasons_against_a_clock(row, window_s, words):
    assert words in clock_is_usable(row, window_s)


def test_a_stepped_clock_is_noticed_and_drift_is_not_a_step():
    assert clock_was_stepped(a_row(), a_row(t_s=100.0, offset_s=9.019)) is None
    reason = clock_was_stepped(a_row(), a_row(t_s=100.0, offset_s=9.03))
    assert "moved by 30 ms within 100 s" in reason


# -- real sockets --------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """The address of a server whose clock is 1000 s ahead."""
    read_end, write_end = os.pipe()
    where: Queue[tuple[str, int]] = Queue()
    thread = threading.Thread(
        target=lambda: serve(
            "127.0.0.1",
            0,
            clock=ShiftedClock(1000 * SECOND),
            stop=read_end,
            ready=lambda *at: where.put(at),
        )
    )
    thread.start()
    yield where.get(timeout=PATIENCE_S)
    os.write(write_end, b"x")
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    os.close(read_end)
    os.close(write_end)


def test_a_real_exchange_finds_the_other_clock(server):
    found = measure(*server, clock=SystemClock(), count=6, spacing_s=0, timeout_s=PATIENCE_S)
    assert abs(found.offset_ns - 1000 * SECOND) <= found.residual_ns < SECOND


def test_packets_that_are_no_questions_are_not_answered(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(server)
        asking.settimeout(0.2)
        for packet in (b"", b"NJC1", b"x" * 40, b"NJC1" + b"y" * 200):
            asking.send(packet)
        with pytest.raises(TimeoutError):
            asking.recv(100)
    found = measure(*server, clock=SystemClock(), count=2, spacing_s=0, timeout_s=PATIENCE_S)
    assert abs(found.offset_ns - 1000 * SECOND) <= found.residual_ns


def test_nobody_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with raises(MeterUnavailable):
            measure("127.0.0.1", port, clock=SystemClock(), count=4, spacing_s=0, timeout_s=0.01)
        with raises(UsageError):
            serve("127.0.0.1", port, clock=SystemClock(), stop=0)


# -- mapping -------------------------------------------------------------------------------------------


def test_the_map_follows_an_offset_and_a_drift_without_a_step():
    ahead_ns, drift = 5000 * SECOND, 30e-6

    def truth_ns(t_ns: int) -> int:
        """The controller's time; ours is ahead and runs faster."""
        return round((t_ns - ahead_ns) * (1 - drift))

    random = Random(5)
    offsets = [Offset(ahead_ns, ahead_ns, 200_000)]
    clock_map = ClockMap(offsets[0])
    worst_ns = []
    before_ns = None
    for second in range(1, 3601):
        t_ns = ahead_ns + second * SECOND
        if second % 60 == 0:
            error_ns = round(random.uniform(-200_000, 200_000))
            offsets.append(Offset(t_ns, t_ns - truth_ns(t_ns) + error_ns, 200_000))
            clock_map.learn(offsets[-1], drift_of(offsets))
        mapped_ns = clock_map.to_controller_ns(t_ns)
        if before_ns is not None:
            assert abs(mapped_ns - before_ns - SECOND) < 1_100_000, "slewed, never stepped"
        before_ns = mapped_ns
        worst_ns.append(abs(mapped_ns - truth_ns(t_ns)))
    assert max(worst_ns[:120]) < 4_000_000, "before the drift is known"
    assert max(worst_ns[600:]) < 400_000


def test_the_follower_announces_rows_and_survives_a_controller_that_is_gone(server):
    events: list[dict] = []
    stop = threading.Event()
    told = threading.Event()

    def emit(event):
        events.append(event)
        if len(events) >= 3:
            told.set()

    clock = ShiftedClock(3 * SECOND)
    origin_ns = ShiftedClock(1000 * SECOND).monotonic_ns()
    follower = ClockFollower(server, clock=clock, origin_ns=origin_ns, emit=emit, host="mh", every_s=0.01)
    follower.start(stop)
    assert told.wait(PATIENCE_S)
    stop.set()
    follower.join()
    row = events[0]["row"]
    assert row["offset_s"] == pytest.approx(-997, abs=row["residual_s"] + 1e-6)
    assert -1 < row["t_s"] < 60 and row["host"] == "mh"
    before_ns = ShiftedClock(1000 * SECOND).monotonic_ns()
    controller_ns = follower.to_controller_ns(clock.monotonic_ns())
    after_ns = ShiftedClock(1000 * SECOND).monotonic_ns()
    assert before_ns - 0.2 * SECOND <= controller_ns <= after_ns + 0.2 * SECOND


def looks(offsets, monkeypatch):
    """A follower that found these offsets (controller minus this host), and what it announced."""
    events: list[dict] = []
    given = iter(offsets)
    stop = threading.Event()

    def ask(host, port, *, clock):
        found = next(given)
        if found is offsets[-1]:
            stop.set()
        return found

    monkeypatch.setattr(clock_follower, "measure", ask)
    follower = ClockFollower(
        ("controller", 5303), clock=SystemClock(), origin_ns=0, emit=events.append, every_s=0.001
    )
    follower.start(stop)
    stop.wait(PATIENCE_S)
    follower.join()
    return follower, events


def test_a_clock_that_was_stepped_is_told_and_followed_at_once(monkeypatch):
    slept_ns = 10 * SECOND
    minutes = [Offset(n * 60 * SECOND, 0, 100_000) for n in range(10)]
    after = [Offset(n * 60 * SECOND, slept_ns, 100_000) for n in range(10, 13)]
    follower, events = looks([*minutes, *after], monkeypatch)
    told = [event["message"] for event in events if "message" in event]
    assert len(told) == 1 and "was stepped, suspended or started anew" in told[0]
    t_ns = after[-1].t_ns
    assert follower.to_controller_ns(t_ns) == t_ns + slept_ns
    assert follower.to_controller_ns(t_ns + 60 * SECOND) == t_ns + 60 * SECOND + slept_ns, "no drift of it"
    assert [event["row"]["drift_ppm"] for event in events if "row" in event][10] is None


def test_stamps_never_run_backwards_when_the_controller_starts_anew(monkeypatch):
    looked = [Offset(60 * SECOND, 0, 100_000), Offset(120 * SECOND, -100 * SECOND, 100_000)]
    follower, events = looks(looked, monkeypatch)
    assert any("was stepped" in event.get("message", "") for event in events)
    stamps = [follower.to_controller_ns(n * SECOND) for n in range(120, 180)]
    assert stamps[0] == 120 * SECOND and stamps == sorted(stamps)


# -- chrony --------------------------------------------------------------------------------------------

TRACKING = """\
Reference ID    : CB00710F (203.0.113.15)
Stratum         : 3
Ref time (UTC)  : Fri Jan 27 09:49:17 2023
System time     : 0.000006523 seconds slow of NTP time
Last offset     : -0.000006747 seconds
RMS offset      : 0.000035822 seconds
Frequency       : 3.225 ppm slow
Residual freq   : -0.020 ppm
Skew            : 0.129 ppm
Root delay      : 0.013639022 seconds
Root dispersion : 0.001100737 seconds
Update interval : 64.2 seconds
Leap status     : Normal
"""


def test_tracking_and_its_row():
    slow = parse_tracking(TRACKING, "here")
    assert (slow.offset_s, slow.reference, slow.synchronised) == (-6.523e-6, "CB00710F", True)
    assert slow.greatest_error_s == pytest.approx(0.001100737 + 0.013639022 / 2)
    fast = parse_tracking(TRACKING.replace("slow of", "fast of"), "there")
    row = chrony_row("client", 12.0, fast, slow)
    assert row["offset_s"] == pytest.approx(13.046e-6) and row["method"] == "chrony"
    assert row["residual_s"] == pytest.approx(2 * slow.greatest_error_s, abs=1e-9)


def test_what_chrony_says_when_it_is_not_there_or_follows_nobody():
    with raises(UsageError):
        parse_tracking("506 Cannot talk to daemon", "client")
    alone = parse_tracking(TRACKING.replace("Normal", "Not synchronised"), "client")
    with raises(UsageError):
        chrony_row("client", 0.0, alone, parse_tracking(TRACKING, "here"))


def test_a_host_without_chrony_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises(MeterUnavailable):
        tracking_here()


def test_the_chronyd_of_this_host_is_asked(monkeypatch, tmp_path):
    (tmp_path / "chronyc").write_text(f"#!/bin/sh\necho '{TRACKING}'\n")
    (tmp_path / "chronyc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tracking_here() == parse_tracking(TRACKING, "this host")

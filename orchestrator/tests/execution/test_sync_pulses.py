# SPDX-License-Identifier: Apache-2.0
"""Coded sync pulses: their rhythm, their times, and which lag is kept."""

import asyncio

import pytest
from runner_fakes import HERE, PLACE, START_NS, FakeTime, Script, fake_load, with_clients, workload

from netjoule.core.clock import CampaignTime
from netjoule.core.errors import RunFailed
from netjoule.design.timeline import MeterPace, code_for, pulse_s, quiet_s
from netjoule.execution.sync_pulses import PULSE_TRIES, Burst, bursts, kept, lags, send_pulse, words
from netjoule.hosts.host import LocalHost
from netjoule.workload.load import Place

FAST = MeterPace("fast", 0.1, 0.1)
SLOW = MeterPace("slow", 5.0, 7.5)
PULSES = {"rate_mbps": 60, "payload_bytes": 1440}


def test_bursts_are_the_runs_of_ones() -> None:
    assert bursts("1111100110101") == [Burst(0, 5), Burst(7, 2), Burst(10, 1), Burst(12, 1)]
    assert bursts("000") == []
    for code in ("1111100110101", "0110", "1", "0101"):
        again = ["0"] * len(code)
        for burst in bursts(code):
            again[burst.first_bit : burst.first_bit + burst.bits] = "1" * burst.bits
        assert "".join(again) == code


def test_the_slowest_meter_decides_the_bit() -> None:
    assert code_for([FAST]).bit_s == 0.5
    assert code_for([FAST, SLOW]).bit_s == 10.0
    assert quiet_s([FAST, SLOW]) == pytest.approx(5 * 5.0 + 7.5)
    assert pulse_s([SLOW]) == pytest.approx(2 * 32.5 + 14 * 10.0)


def send(
    script: Script, meters: list[MeterPace], place: Place = PLACE, offsets_ns: dict[str, int] | None = None
) -> dict:
    time = CampaignTime(script.clock, START_NS)
    clients = len(place.hosts("client"))
    load = fake_load(script, workload(load_pulses=PULSES, clients=clients), with_clients(clients))
    return asyncio.run(send_pulse(load, meters, place, time, FakeTime(offsets_ns or {})))


def test_a_pulse_is_sent_in_the_rhythm_of_its_code_and_dated_by_its_first_packets() -> None:
    script = Script()
    pulse = send(script, [FAST])
    starts_s = [t_s for what, _, t_s in script.log if what == "go"]
    assert [start - starts_s[0] for start in starts_s] == pytest.approx([0.0, 3.5, 5.0, 6.0])
    assert pulse["t_start_s"] == pytest.approx(starts_s[0] + 0.001), "the fake's first packet is 1 ms late"
    assert (pulse["bit_s"], pulse["code"]) == (0.5, "1111100110101")
    assert script.of("end") == ["pulse"] * 4
    assert starts_s[0] >= quiet_s([FAST])


def test_every_client_sends_each_burst_and_its_own_clock_dates_it() -> None:
    script = Script()
    pulse = send(script, [FAST])
    both = Script()
    two = Place({"client": (HERE, LocalHost("there")), "server": (HERE,)}, PLACE.control_addresses)
    same = send(both, [FAST], two, {"here": 0, "there": 2_000_000})
    assert both.of("go") == both.of("end") == ["pulse"] * 8
    # The mean of both: the second one's clock is 2 ms ahead.
    assert same["t_start_s"] == pytest.approx(pulse["t_start_s"] - 0.001)


def test_a_burst_that_comes_too_late_spoils_the_rhythm() -> None:
    script = Script()

    def late(spec) -> None:
        if spec.seed == 7:
            script.clock.now_ns += 2_000_000_000

    script.on_open = late
    with pytest.raises(RunFailed, match=r"began 0\.00 to 1\.\d\d s late"):
        send(script, [FAST])
    assert script.of("end") == ["pulse"] * 4 * PULSE_TRIES


def test_a_rhythm_that_was_lost_once_is_sent_again() -> None:
    script = Script()
    held_up = []

    def late_once(spec) -> None:
        if spec.seed == 7 and not held_up:
            held_up.append(spec.seed)
            script.clock.now_ns += 2_000_000_000

    script.on_open = late_once
    pulse = send(script, [FAST])
    starts_s = [t_s for what, _, t_s in script.log if what == "go"]
    assert len(starts_s) == 8
    assert pulse["t_start_s"] == pytest.approx(starts_s[4] + 0.001)


def test_a_silent_burst_is_a_failure() -> None:
    script = Script()
    script.on_report = lambda _spec, report: report | {"sender": report["sender"] | {"first_packet_ns": None}}
    with pytest.raises(RunFailed, match="sent nothing"):
        send(script, [FAST])


def entry(meter_id: str, lag_s: float, confidence: float = 0.99, u_lag_s: float = 0.01) -> dict:
    return {"meter_id": meter_id, "lag_s": lag_s, "u_lag_s": u_lag_s, "confidence": confidence, "pulses": []}


def test_a_lag_that_did_not_move_stays_what_results_went_by() -> None:
    before = [entry("a", 0.10), entry("b", 0.10), entry("c", 0.10, confidence=0.5)]
    found = [entry("a", 0.115), entry("b", 0.20), entry("c", 0.115), entry("d", 0.3)]
    assert lags(kept(before, found)) == {"a": 0.10, "b": 0.20, "c": 0.115, "d": 0.3}


def test_only_a_sure_lag_counts() -> None:
    assert lags([entry("a", 0.1, confidence=0.89), entry("b", 0.2, confidence=0.9)]) == {"b": 0.2}
    assert words([]) == "no meter saw the sync pulse"
    said = words([entry("a", 0.1, confidence=0.4), entry("b", 0.2)])
    assert "a not aligned (confidence 0.40)" in said and "b lag 0.200 s (u 0.010 s)" in said

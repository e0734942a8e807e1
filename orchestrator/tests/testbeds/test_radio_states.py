# SPDX-License-Identifier: Apache-2.0
"""The radio machines of the emulated link against a second implementation, and that one against arithmetic.

The second is `radio_states_reference`, which takes nothing from the first; the traces are those of
`radio_states_traces`, kept in protocols/contracts/vectors/radio-states.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from radio_states_reference import MACHINES, MS, Outcome, Packet, S, read
from radio_states_traces import FOLDER, TRACES, text

from netjoule.core import programs

# What bytes of a small packet cost over LTE, J: 0.0012 Mb at 0.43839 J/Mb up, at 0.05197 down.
UP_150_J, DOWN_150_J = 0.000526068, 0.000062364
# Of the ARO ladder: 0.1 s of CR, one short and 250 long cycles with 2 ms at 1.68 W, the rest at 1.06 W.
LTE_TAIL_J = 0.1 * 1.2 + (0.002 * 1.68 + 0.018 * 1.06) + 250 * (0.002 * 1.68 + 0.038 * 1.06)
LTE_PROMOTION_J = 0.26 * 1.21


def run(machine: str, *packets: tuple[int, str, int]) -> Outcome:
    """What the reference makes of packets (ms, direction, bytes)."""
    return MACHINES[machine].run([Packet(t_ms * MS, way == "up", size) for t_ms, way, size in packets])


def delays_ms(outcome: Outcome) -> list[float]:
    return [delay / MS for delay in outcome.delays_ns]


def close(seconds: float) -> Any:
    return pytest.approx(seconds, rel=0.01, abs=0.001)


@pytest.mark.parametrize("name", list(TRACES))
def test_the_kept_traces_are_those_that_the_generator_makes(name: str) -> None:
    assert (FOLDER / f"{name}.csv").read_text(encoding="utf-8") == text(name)


@pytest.mark.parametrize("machine", list(MACHINES))
def test_the_traces_bring_a_machine_into_each_of_its_states_and_leave_no_time_out(machine: str) -> None:
    found = {name: MACHINES[machine].run(read(FOLDER / f"{name}.csv")) for name in TRACES}
    states = {state for outcome in found.values() for state in outcome.seconds_by_state}
    if "PSM" in states:
        assert states == {"PSM", "CAM", "CAMH"}
    elif "CR" in states:
        assert states == {"IDLE", "PROMOTION", "CR", "SHORT_DRX", "LONG_DRX"}
    else:
        own = {
            "energybox-teliasonera": {"PROMOTION_IDLE_FACH"},
            "n9-umts": {"PCH", "PROMOTION_IDLE_FACH", "PROMOTION_PCH_FACH"},
        }
        lifted = own.get(machine, {"PROMOTION_IDLE_DCH"})
        assert states == {"IDLE", "FACH", "DCH", "PROMOTION_FACH_DCH"} | lifted
    for outcome in found.values():
        edges = [one.end_ns for one in outcome.intervals]
        assert [one.start_ns for one in outcome.intervals] == [0, *edges[:-1]]
        assert min(outcome.delays_ns) >= 0


def test_wifi_is_awake_for_its_tail_and_high_while_its_window_is_full() -> None:
    one = run("energybox-s2", (1000, "up", 1500))
    assert one.energy_j == pytest.approx(1.0 * 0.03 + 0.22 * 0.25)
    # From the third, at 1.02 s, until the first leaves the window, at 1.05 s: 3,000 bytes are not more.
    three = run("energybox-s2", (1000, "up", 1500), (1010, "down", 1500), (1020, "down", 1500))
    assert three.seconds_by_state == pytest.approx({"PSM": 1.0, "CAM": 0.02 + 0.19, "CAMH": 0.03})
    assert three.energy_j == pytest.approx(0.03 + 0.21 * 0.25 + 0.03 * 0.45)
    # Asleep again from 1.25 s on; 403 mW of ARO whether its window is full or not.
    apart = run("aro-wifi", (1000, "up", 9000), (1250, "down", 60))
    assert apart.energy_j == pytest.approx(0.02 * 1.0 + 0.403 * 0.5)
    assert run("aro-wifi").energy_j == 0


def test_the_access_point_keeps_what_comes_for_a_station_asleep() -> None:
    kept = run("n9-wlan", (50, "down", 100), (60, "down", 100), (400, "down", 100))
    assert delays_ms(kept) == [50, 40, 0]
    assert kept.seconds_by_state == pytest.approx({"PSM": 0.1 + 0.1, "CAM": 0.2 + 0.2})
    assert kept.energy_j == pytest.approx(0.4 * 0.310)
    woken = run("n9-wlan", (50, "down", 100), (70, "up", 100), (250, "down", 100))
    assert delays_ms(woken) == [20, 0, 0]


def test_one_packet_over_lte_costs_a_promotion_and_a_tail() -> None:
    assert pytest.approx(11.05, abs=0.005) == LTE_TAIL_J
    once = run("aro-lte", (0, "up", 150))
    assert once.energy_j == pytest.approx(LTE_PROMOTION_J + LTE_TAIL_J + UP_150_J)
    assert once.seconds_by_state == {"PROMOTION": 0.26, "CR": 0.1, "SHORT_DRX": 0.02, "LONG_DRX": 10.0}
    # Two whole cycles of paging before it; in MobiSys'12 the base is 88 mW more.
    later = run("mobisys12", (2560, "down", 150))
    assert later.energy_j - LTE_PROMOTION_J - LTE_TAIL_J - 0.1 * 0.088 == pytest.approx(
        2 * 0.043 * 0.594 + DOWN_150_J
    )


def test_over_lte_what_comes_down_waits_for_the_next_time_on() -> None:
    # It passes at 260 ms; short DRX is from 360 ms on, long DRX from 380 ms on, in cycles of 40 ms.
    first = (0, "up", 150)
    assert delays_ms(run("aro-lte", first, (100, "down", 150))) == [260, 160]
    assert delays_ms(run("aro-lte", first, (359, "down", 150))) == [260, 0]
    assert delays_ms(run("aro-lte", first, (361, "down", 150))) == [260, 0]
    assert delays_ms(run("aro-lte", first, (365, "down", 150))) == [260, 15]
    assert delays_ms(run("aro-lte", first, (430, "down", 150))) == [260, 30]
    assert delays_ms(run("aro-lte", first, (430, "up", 150))) == [260, 0]
    assert delays_ms(run("aro-lte", first, (430, "down", 150), (440, "up", 150))) == [260, 10, 0]
    # Of the last cycle no time on is left: at 10.38 s it finds the radio idle.
    assert delays_ms(run("aro-lte", first, (10_350, "down", 150))) == [260, 290]
    # Two times on and 58 ms without, then a whole tail.
    waited = run("aro-lte", first, (430, "down", 150))
    cut_j = 0.1 * 1.2 + (0.002 + 0.002 * 2) * 1.68 + (0.018 + 0.038 * 2) * 1.06
    assert waited.energy_j == pytest.approx(LTE_PROMOTION_J + cut_j + LTE_TAIL_J + UP_150_J + DOWN_150_J)


def test_one_packet_over_umts_costs_its_promotions_and_both_tails() -> None:
    assert run("aro-i997", (0, "up", 60)).energy_j == pytest.approx(2 * 0.65 + 4 * 1.30 + 10 * 0.30)
    assert run("aro-inspire", (0, "up", 60)).energy_j == pytest.approx(2 * 0.65 + 4 * 0.60 + 10 * 0.38)
    tails_j = 4.1 * 1.3 + 5.6 * 0.5
    at_once = run("energybox-teliasonera", (1000, "down", 1001))
    assert at_once.energy_j == pytest.approx(1.0 * 0.2 + 1.7 * 0.2 + tails_j)
    by_fach = run("energybox-teliasonera", (1000, "down", 1000))
    assert by_fach.energy_j == pytest.approx(1.0 * 0.2 + 0.43 * 0.2 + 0.65 * 0.5 + tails_j)
    small = run("energybox-teliasonera", (1000, "down", 515))
    assert small.energy_j == pytest.approx(1.0 * 0.2 + 0.43 * 0.2 + 5.6 * 0.5)
    rest_j = 2 * 0.489 + 1800 * 0.0147
    assert run("n9-umts", (0, "up", 470)).energy_j == pytest.approx(1.0 * 0.489 + rest_j)
    large = run("n9-umts", (0, "up", 471))
    assert large.energy_j == pytest.approx(1.5 * 0.489 + 0.1 * 1.470 + 2.9 * 1.085 + rest_j)
    assert delays_ms(large) == [1500]


def test_small_packets_in_fach_fill_a_queue_that_drains() -> None:
    # It passes at 2 s and DCH ends at 6 s; 200 bytes drain in 396 ms, 400 in 884 ms.
    first = (0, "up", 60)
    quick = run("aro-i997", first, (7000, "up", 200), (7100, "up", 200), (7200, "up", 200), (7300, "down", 9))
    assert delays_ms(quick) == [2000, 0, 0, 1500, 1400]
    assert quick.energy_j == pytest.approx(9.5 - 8.8 * 0.30 + 1.5 * 0.80 + 4 * 1.30 + 10 * 0.30)
    slow = run("aro-i997", first, (7000, "up", 200), (7397, "up", 200), (8300, "up", 200))
    assert delays_ms(slow) == [2000, 0, 0, 0]
    both = run("aro-i997", first, (7000, "up", 400), (7100, "down", 400), (7300, "up", 60))
    assert delays_ms(both) == [2000, 0, 0, 0]


def test_what_waited_for_fach_counts_in_its_queue() -> None:
    # 300, then 200 more bytes at 1 s: the second waits for DCH, too, and the third with it.
    lifted = run("n9-umts", (0, "up", 300), (100, "up", 200), (200, "up", 60))
    assert delays_ms(lifted) == [1000, 1400, 1300]
    assert "PROMOTION_FACH_DCH" not in run("n9-umts", (0, "up", 300), (100, "down", 200)).seconds_by_state


@pytest.mark.parametrize("trace", list(TRACES))
@pytest.mark.parametrize("machine", list(MACHINES))
def test_the_program_finds_what_the_reference_finds(machine: str, trace: str) -> None:
    path = FOLDER / f"{trace}.csv"
    words = [programs.find("netjoule-simulate"), "radio-states", "--machine", machine, str(path)]
    told = programs.said_by(words, timeout=60)
    assert told.returncode == 0, told.stderr
    ours, reference = json.loads(told.stdout), MACHINES[machine].run(read(path))
    assert ours["machine"] == machine
    assert ours["energy_j"] == pytest.approx(reference.energy_j, rel=0.01)
    visited = {state: seconds for state, seconds in ours["time_by_state_s"].items() if seconds}
    assert visited == close(reference.seconds_by_state)
    energies = {state: ours["energy_by_state_j"][state] for state in visited}
    assert energies == pytest.approx(reference.energy_by_state_j, rel=0.01, abs=0.001)
    assert ours["delays_s"]["max"] == close(max(reference.delays_ns) / S)

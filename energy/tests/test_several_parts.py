# SPDX-License-Identifier: Apache-2.0
"""Runs of several parts: one series of intervals, whose work counts where, fairness."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flow_runs import FlowInput, FlowRun
from hypothesis import given, settings
from hypothesis import strategies as st

import netjoule_contracts
from netjoule_energy.power.readings import Readings
from netjoule_energy.power.windows import Intervals, Window, measured_span
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.parts import (
    PartInput,
    clients_of,
    idle_clients,
    jain_index,
    joined,
    work_within,
)
from netjoule_energy.run.result import document_of
from netjoule_energy.uncertainty.budget import Accuracy

WINDOWS = {"idle_before": (0.4, 1.4), "measure": (2.0, 4.0), "tail": (4.0, 4.3), "idle_after": (4.5, 5.5)}
STEADY_W = [5.0] * 19 + [7.0] * 21 + [5.0] * 16
"""Readings at 10 Hz: 2 W above idle from 1.9 s to 4 s."""


def intervals(start_s: float, sizes: list[float], length_s: float = 0.1) -> Intervals:
    starts = start_s + length_s * np.arange(len(sizes))
    return Intervals(starts, starts + length_s, np.array(sizes))


def flow(number: int, client: str, of: Intervals, **counts: int) -> FlowInput:
    asked = {
        "flow": number,
        "client": client,
        "transport": "udp",
        "direction": "up",
        "payload_bytes": 1000,
        "offered_rate_mbps": 10.0,
    }
    messages = {"messages_scheduled": 100, "messages_sent": 100, "messages_not_sent": 0} | counts
    receiver = {"messages_received_unique": messages["messages_sent"], "messages_lost": 0, "loss_ratio": 0.0}
    return FlowInput(asked, {"sender": messages, "receiver": receiver}, of)


def one_flow() -> FlowRun:
    """A run at 10 Mb/s, metered at the client."""
    t_s = np.arange(1, len(STEADY_W) + 1) * 0.1 + 0.037
    readings = Readings(t_s, np.array(STEADY_W), np.array([""] * t_s.size, dtype=np.str_), 0.1, 0.0)
    accuracy = Accuracy(0.002, 0.01, known=True)
    run = {
        "run_id": "b01m001-udp-a1",
        "transport": "udp",
        "payload_bytes": 1000,
        "offered_rate_mbps": 10.0,
        "direction": "up",
        "hosts": {"client": "client", "server": "server"},
        "radio_source": "link-model",
        "status": "done",
        "reasons": [],
        "windows": {name: {"t_start_s": a, "t_end_s": b} for name, (a, b) in WINDOWS.items()},
    }
    meter = MeterInput("m1", "client", "measured", None, None, accuracy, readings, None)
    report = {"sender": {"messages_sent": 1, "messages_scheduled": 1}}
    return FlowRun(run, (FlowInput({}, report, intervals(1.4, [125_000.0] * 26)),), (meter,))


def several(*flows: FlowInput) -> FlowRun:
    """The same run with these flows in place of its one."""
    one = one_flow()
    run = one.run | {"flows": [flow.asked for flow in flows]}
    return replace(one, run=run, flows=tuple(flows))


def assess(run: FlowRun, null: FlowRun | None = None) -> dict[str, Any]:
    invalidating = frozenset({"bookkeeping_mismatch"})
    document = document_of(assess_run(*run.lifted(null), np.random.default_rng(5), invalidating))
    netjoule_contracts.validate("result", document)
    return document


# --- one series of intervals -----------------------------------------------------------------------


def test_one_flow_is_left_as_it_is() -> None:
    one = intervals(0.0, [1.0, 2.0])
    assert joined([one]) is one
    assert joined([]).start_s.size == 0


def test_flows_whose_edges_differ_are_cut_at_every_edge() -> None:
    both = joined([intervals(0.0, [10.0, 10.0]), intervals(0.05, [20.0, 40.0])])
    assert both.start_s == pytest.approx([0.05, 0.1, 0.15])
    assert both.end_s == pytest.approx([0.1, 0.15, 0.2])
    assert both.work == pytest.approx([5 + 10, 5 + 10, 5 + 20])


def test_a_flow_that_got_nothing_takes_nothing_away() -> None:
    one, nothing = intervals(0.0, [10.0, 10.0]), intervals(0.0, [])
    assert joined([one, nothing]).work.sum() == 20


def test_a_gap_of_one_flow_is_a_gap_of_all() -> None:
    whole = intervals(0.0, [10.0] * 4)
    torn = Intervals(np.array([0.0, 0.3]), np.array([0.1, 0.4]), np.array([10.0, 10.0]))
    span = measured_span(Window(0.0, 0.4), joined([whole, torn]))
    assert span.window.length_s == pytest.approx(0.1)


def test_rounded_times_make_no_gap() -> None:
    rounded = Intervals(np.array([0.0, 0.100001]), np.array([0.1, 0.2]), np.array([10.0, 10.0]))
    span = measured_span(Window(0.0, 0.2), joined([rounded, intervals(0.0, [5.0, 5.0])]))
    assert span.window.length_s == pytest.approx(0.2)
    assert span.work == pytest.approx(30.0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1e6), min_size=20, max_size=20), min_size=2, max_size=5),
    st.lists(st.floats(0, 0.3), min_size=5, max_size=5),
)
def test_nothing_is_lost_or_made_where_all_have_intervals(
    sizes: list[list[float]], shifts: list[float]
) -> None:
    flows = [intervals(shift, size) for shift, size in zip(shifts, sizes, strict=False)]
    both = joined(flows)
    window = Window(float(both.start_s[0]), float(both.end_s[-1]))
    assert both.work.sum() == pytest.approx(sum(work_within(f, window) for f in flows), abs=1e-3)


# --- results ---------------------------------------------------------------------------------------


def test_the_throughput_of_a_run_is_that_of_all_its_flows() -> None:
    steady, slow = intervals(1.4, [125_000.0] * 26), intervals(1.43, [41_250.0] * 26)
    found = assess(several(flow(1, "client", steady), flow(2, "client", slow)))
    assert found["work"]["work_per_s"] == pytest.approx(10.0 + 3.3)
    assert [p["work_per_s"] for p in found["parts"]] == pytest.approx([10.0, 3.3])
    assert [p["met_ratio"] for p in found["parts"]] == pytest.approx([1.0, 0.33])
    assert found["fairness"]["jain_work"] == pytest.approx(13.3**2 / (2 * (100 + 3.3**2)))
    (node,) = found["nodes"]
    assert "work_per_s" not in node, "one client: its T_A is the run's"
    assert node["ea_j_per_mbit"] == pytest.approx(node["delta_p_w"] / 13.3)


def test_a_client_pays_for_its_own_flows_and_any_other_node_for_all() -> None:
    steady = intervals(1.4, [125_000.0] * 26)
    run = several(flow(1, "client", steady), flow(2, "tablet", steady))
    (meter,) = run.meters
    found = assess(replace(run, meters=(meter, replace(meter, meter_id="m2", node="access_point"))))
    of_client, of_access_point = found["nodes"]
    assert of_client["work_per_s"] == pytest.approx(10.0)
    assert of_client["ea_j_per_mbit"] == pytest.approx(of_client["delta_p_w"] / 10.0)
    assert "work_per_s" not in of_access_point
    assert of_access_point["ea_j_per_mbit"] == pytest.approx(of_access_point["delta_p_w"] / 20.0)


def test_a_starved_client_has_no_energy_per_megabit() -> None:
    steady = intervals(1.4, [125_000.0] * 26)
    run = several(flow(1, "client", intervals(1.4, [0.0] * 26)), flow(2, "tablet", steady))
    (node,) = assess(run)["nodes"]
    assert node["work_per_s"] == 0.0
    assert (node["ea_j_per_mbit"], node["ea_reason"]) == (None, "nothing_received")


def with_idle_tablet(run: FlowRun, power_w: list[float]) -> FlowRun:
    """The run with a meter more, at a client that has no flow in it."""
    (meter,) = run.meters
    readings = replace(meter.readings, power_w=np.array(power_w))
    beside = replace(meter, meter_id="m2", node="tablet", readings=readings)
    return replace(run, meters=(meter, beside), idle_clients=frozenset({"tablet"}))


@pytest.mark.parametrize("extra_w", [0.0, 0.001, 2.0])
def test_a_client_that_takes_no_part_has_power_and_no_energy_per_megabit(extra_w: float) -> None:
    """It may do other work meanwhile: that is no price of what the others moved."""
    power_w = [5.0] * 19 + [5.0 + extra_w] * 21 + [5.0] * 16
    found = assess(with_idle_tablet(one_flow(), power_w))
    client, tablet = found["nodes"]
    assert client["ea_j_per_mbit"] is not None
    assert tablet["delta_p_w"] == pytest.approx(extra_w, abs=1e-9)
    assert (tablet["work_per_s"], tablet["ea_reason"]) == (0.0, "took_no_part")
    priced = ("ea_j_per_mbit", "u95_ea_j_per_mbit", "ea_upper_limit_j_per_mbit", "u95_components", "grade")
    assert {tablet[name] for name in priced} == {None}
    assert (tablet["below_resolution"], tablet["floor"]["reason"]) == (False, "took_no_part")
    assert [reason["code"] for reason in found["reasons"]] == ["took_no_part"]


def test_a_floor_is_none_of_a_client_that_takes_no_part_and_stays_at_the_others() -> None:
    still = [5.0] * len(STEADY_W)
    null_run = one_flow().run | {"run_id": "b01m001-null-a1", "transport": "null"}
    null = replace(with_idle_tablet(one_flow(), still), run=null_run)
    found = assess(with_idle_tablet(one_flow(), still), null)
    assert [node["floor"]["reason"] for node in found["nodes"]] == [None, "took_no_part"]
    of_null = assess(null)
    assert [node["ea_reason"] for node in of_null["nodes"]] == ["null_has_no_throughput", "took_no_part"]
    assert not any("work_per_s" in node for node in of_null["nodes"])


def test_which_clients_take_no_part() -> None:
    roles = {"client": ["client"], "tablet": ["client"], "box": ["client", "access_point"], "x": ["server"]}
    hosts = {name: {"roles": of_host} for name, of_host in roles.items()}
    assert clients_of({"hosts": hosts}) == {"client", "tablet"}
    assert clients_of({}) == set()
    clients = {"client", "tablet"}
    parts = [PartInput({"node": node}, intervals(0.0, [])) for node in ("client", "tablet")]
    assert idle_clients(clients, parts[:1]) == {"tablet"}
    assert idle_clients(clients, parts) == set()


def test_cut_intervals_make_the_throughput_less_sure() -> None:
    steady = intervals(1.4, [125_000.0] * 26)
    alone = assess(one_flow())
    both = assess(several(flow(1, "client", steady), flow(2, "client", steady)))
    both, alone = both["work"], alone["work"]
    assert both["u95_work_per_s"] / both["work_per_s"] > alone["u95_work_per_s"] / alone["work_per_s"]


def test_a_run_with_one_flow_says_nothing_of_flows() -> None:
    assert not {"parts", "fairness"} & set(assess(one_flow()))


def test_books_that_do_not_balance_are_told_of_their_flow() -> None:
    steady = intervals(1.4, [125_000.0] * 26)
    found = assess(several(flow(1, "client", steady), flow(2, "client", steady, messages_not_sent=1)))
    (reason,) = [r for r in found["reasons"] if r["code"] == "bookkeeping_mismatch"]
    assert reason["detail"].startswith("flow 2: scheduled 100")
    assert found["valid"] is False


def test_wake_ups_of_a_run_are_those_of_all_its_senders() -> None:
    def woken(number: int, of: Intervals, **counts: int) -> FlowInput:
        made = flow(number, "client", of)
        return replace(made, report=made.report | {"pacing": counts})

    names = ("wake_ups_per_message", "naps_per_message")
    steady = intervals(1.4, [125_000.0] * 26)
    both = several(woken(1, steady, wake_ups=300, naps=200), woken(2, steady, wake_ups=100, naps=0))
    found = assess(both)
    assert [found["measures"][name] for name in names] == [2.0, 1.0]
    assert [one["measures"][names[0]] for one in found["parts"]] == [3.0, 1.0]
    assert [one["measures"][names[1]] for one in found["parts"]] == [2.0, 0.0]
    one_silent = assess(several(woken(1, steady, wake_ups=300, naps=200), woken(2, steady)))
    assert [one_silent["measures"][name] for name in names] == [None, None]
    assert [one["measures"][names[0]] for one in one_silent["parts"]] == [3.0, None]
    # Null's flows together are set against the run's together.
    still = replace(both.meters[0], readings=replace(both.meters[0].readings, power_w=np.full(56, 5.0)))
    for of_first, warned in ((200, False), (100, True)):
        flows = (woken(1, steady, wake_ups=of_first), woken(2, steady, wake_ups=100))
        null = replace(several(*flows), meters=(still,))
        null = replace(null, run=null.run | {"run_id": "b01m001-null-a1", "transport": "null"})
        reasons = [reason["code"] for reason in assess(both, null)["reasons"]]
        assert ("floor_wake_ups_differ" in reasons) is warned


# --- Jain's index ----------------------------------------------------------------------------------


def test_jains_index_agrees_with_the_shared_vectors() -> None:
    text = (netjoule_contracts.root() / "vectors" / "fairness.json").read_text(encoding="utf-8")
    for case in json.loads(text)["cases"]:
        expected = case["jain_index"]
        found = jain_index(case["shares"])
        assert found == (None if expected is None else pytest.approx(expected, rel=1e-12)), case


def test_an_unknown_share_leaves_no_index() -> None:
    assert jain_index([1.0, None]) is None

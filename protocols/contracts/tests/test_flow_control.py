# SPDX-License-Identifier: Apache-2.0
"""Whether a run of flows and its null run did the same work, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from netjoule_contracts.flow_control import busy_cores, floor_reason, floor_reason_of_all, pacing_mode


def test_the_sender_tells_how_it_was_paced_and_what_was_asked_stands_in() -> None:
    asked = {"pacing": {"mode": "absolute"}}
    assert pacing_mode(asked, {"pacing": {"mode": "spin"}}) == "spin"
    assert pacing_mode(asked, {}) == "absolute"
    assert pacing_mode({}, {"pacing": None}) is None
    flow = {"sender": {"messages_sent": 100, "messages_scheduled": 100}}
    hybrid = {"pacing": {"mode": "hybrid"}}
    assert floor_reason(hybrid, flow, hybrid, flow) is None
    assert floor_reason({"pacing": {"mode": "spin"}}, flow, asked, flow) == "floor_spinning"


def test_the_limits_are_exact() -> None:
    def flow(sent: int = 100, cpu_s: float = 0.0) -> dict[str, Any]:
        counts = {"messages_sent": sent, "messages_scheduled": 100}
        return {"sender": counts | {"cpu_s": cpu_s, "start_ns": 0, "end_ns": 10**9}}

    assert floor_reason({}, flow(99), {}, flow()) is None
    assert floor_reason({}, flow(98), {}, flow()) == "floor_achieved_low"
    assert floor_reason({}, flow(cpu_s=0.9), {}, flow()) is None
    assert floor_reason({}, flow(cpu_s=0.901), {}, flow()) == "floor_core_busy"
    assert floor_reason({}, {}, {}, flow()) == "floor_achieved_low", "nobody knows what was sent"


def flow_doc(*, sent: int = 100, cpu_s: float = 0.1) -> dict[str, object]:
    sender = {
        "messages_scheduled": 100,
        "messages_sent": sent,
        "cpu_s": cpu_s,
        "start_ns": 0,
        "end_ns": 10**9,
    }
    return {"sender": sender}


@pytest.mark.parametrize(
    ("flow", "null_flow", "mode", "reason"),
    [
        (flow_doc(), flow_doc(), "absolute", None),
        (flow_doc(), flow_doc(sent=98), "absolute", "floor_achieved_low"),
        (flow_doc(sent=98), flow_doc(), "absolute", "floor_achieved_low"),
        (flow_doc(), {}, "absolute", "floor_achieved_low"),
        (flow_doc(), flow_doc(), "spin", "floor_spinning"),
        (flow_doc(), flow_doc(cpu_s=0.91), "absolute", "floor_core_busy"),
    ],
)
def test_floor_reasons(
    flow: dict[str, object], null_flow: dict[str, object], mode: str, reason: str | None
) -> None:
    run = {"pacing": {"mode": mode}}
    assert floor_reason(run, flow, run, null_flow) == reason


def test_a_profile_is_held_to_its_whole_schedule_alone() -> None:
    """What a profile asks for in the measure window does not follow from rate and size."""
    window = {"measure": {"t_start_s": 0.0, "t_end_s": 1.0}}
    run = {"offered_rate_mbps": 0.8, "payload_bytes": 1000, "windows": window, "t_first_packet_s": 0.0}
    interval = {"end": "sender", "start_ns": 0, "end_ns": 10**9, "messages": 100}
    flow = flow_doc(sent=98) | {"intervals": [interval]}
    flow["sender"] = {**flow_doc(sent=98)["sender"], "first_packet_ns": 0}  # type: ignore[dict-item]
    assert floor_reason(run, flow, run, flow) is None
    talk = flow | {"profile": {"name": "talk"}}
    assert floor_reason(run, talk, run, flow) == "floor_achieved_low"


def test_busy_cores_needs_times() -> None:
    assert busy_cores({"sender": {"cpu_s": 0.5}}) is None
    assert busy_cores(flow_doc(cpu_s=0.5)) == pytest.approx(0.5)


def test_a_floor_needs_as_many_flows_in_null_and_all_at_work() -> None:
    def part(sent: int = 100) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"sender": {"messages_sent": sent, "messages_scheduled": 100}}

    assert floor_reason_of_all([part(), part()], [part(), part()]) is None
    assert floor_reason_of_all([part(), part(98)], [part(), part()]) == "floor_achieved_low"
    assert floor_reason_of_all([part(), part()], [part(), part(98)]) == "floor_achieved_low"
    assert floor_reason_of_all([part(), part()], [part()]) == "null_run_invalid"


def test_of_several_codes_the_floor_has_the_first_whichever_flow_gives_it() -> None:
    def part(sent: int = 100, cpu_s: float = 0.1, mode: str = "absolute") -> Any:
        counts = {"messages_sent": sent, "messages_scheduled": 100}
        sender = counts | {"cpu_s": cpu_s, "start_ns": 0, "end_ns": 10**9}
        return {}, {"sender": sender, "pacing": {"mode": mode}}

    null = [part(), part()]
    busy, behind, spinning = part(cpu_s=0.95), part(sent=98), part(mode="spin")
    assert floor_reason_of_all([busy, part()], null) == "floor_core_busy"
    assert floor_reason_of_all([busy, behind], null) == "floor_achieved_low"
    assert floor_reason_of_all([behind, busy], null) == "floor_achieved_low"
    assert floor_reason_of_all([busy, spinning], null) == "floor_spinning"
    assert floor_reason_of_all([spinning, behind], null) == "floor_achieved_low"


def test_senders_of_one_host_are_busy_together() -> None:
    def part(client: str, cpu_s: float, host: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        counts = {"messages_sent": 100, "messages_scheduled": 100}
        sender = counts | {"cpu_s": cpu_s, "start_ns": 0, "end_ns": 10**9}
        return {"client": client}, {"sender": sender | ({"host": host} if host else {})}

    idle = [part("a", 0.0), part("b", 0.0)]
    assert floor_reason_of_all([part("a", 0.4), part("a", 0.5)], idle) is None
    assert floor_reason_of_all([part("a", 0.6), part("a", 0.6)], idle) == "floor_core_busy"
    assert floor_reason_of_all(idle, [part("a", 0.6), part("a", 0.6)]) == "floor_core_busy"
    # Two machines have cores of their own; two clients on one machine, as on the emulated testbed, have not.
    assert floor_reason_of_all([part("a", 0.6, "x"), part("b", 0.6, "y")], idle) is None
    assert floor_reason_of_all([part("a", 0.6), part("b", 0.6)], idle) is None
    assert floor_reason_of_all([part("a", 0.6, "x"), part("b", 0.6, "x")], idle) == "floor_core_busy"


def test_hosts_are_told_apart_by_their_boot_where_it_is_known() -> None:
    def part(host: str, boot_id: str | None) -> Any:
        counts = {"messages_sent": 100, "messages_scheduled": 100}
        sender = counts | {"cpu_s": 0.6, "start_ns": 0, "end_ns": 10**9, "host": host, "boot_id": boot_id}
        return {"client": host}, {"sender": sender}

    def busy(*parts: Any) -> str | None:
        return floor_reason_of_all(parts, parts)

    assert busy(part("debian", "boot-1"), part("debian", "boot-2")) is None, "two machines of one name"
    assert busy(part("here", "boot-1"), part("there", "boot-1")) == "floor_core_busy", "one with two names"
    assert busy(part("debian", None), part("debian", None)) == "floor_core_busy"
    assert busy(part("here", None), part("there", None)) is None

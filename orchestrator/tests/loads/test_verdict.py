# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from runner_fakes import flow_report

from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason, first_invalidating, invalidates
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.verdict import judge_flow, kept_by_none

SPEC = FlowSpec("r", "udp", 1440, 3.0, 2.6, "up", 4, 1)
END_NS = 2_600_000_000


def codes(report: dict[str, Any], end_ns: int = END_NS) -> list[str]:
    return [r.code for r in judge_flow(report, end_ns)]


def short_of(report: dict[str, Any], sent: int) -> None:
    """The flow sent so many of 1000 messages, and all of them arrived."""
    report["sender"] |= {"messages_scheduled": 1000, "messages_sent": sent, "messages_not_sent": 1000 - sent}
    report["receiver"] |= {"messages_received_unique": sent, "messages_lost": 0}


def test_a_perfect_flow_gives_no_reason() -> None:
    assert codes(flow_report(SPEC, 0)) == []
    assert codes(flow_report(FlowSpec("r", "null", 1440, 3.0, 2.6, "up", 4, 1), 0)) == []


def test_unbalanced_books_name_the_numbers() -> None:
    reasons = judge_flow(flow_report(SPEC, 0, reconciles=False), END_NS)
    assert [r.code for r in reasons] == ["bookkeeping_mismatch"]
    assert "scheduled 677, sent 677, not sent 0, received 677, lost 0" in reasons[0].detail


def test_unbalanced_books_of_null_have_no_receiver() -> None:
    report = flow_report(FlowSpec("r", "null", 1440, 3.0, 2.6, "up", 4, 1), 0, reconciles=False)
    assert "received None" in judge_flow(report, END_NS)[0].detail


@pytest.mark.parametrize(("sent", "expected"), [(991, []), (989, ["generator_lagged"])])
def test_lagging_is_marked_under_99_percent(sent: int, expected: list[str]) -> None:
    report = flow_report(SPEC, 0)
    short_of(report, sent)
    assert codes(report) == expected


@pytest.mark.parametrize("transport", ["dccp", "dccp-kernel", "tcp", "quic", "quic-datagram"])
def test_congestion_control_that_sends_less_is_data_and_no_lag(transport: str) -> None:
    report = flow_report(FlowSpec("r", transport, 1440, 30.0, 2.6, "up", 4, 1), 0)
    short_of(report, 400)
    # It let the last message through long before the end, and the schedule was served to its end.
    report["sender"]["last_packet_ns"] = END_NS - 900_000_000
    assert codes(report) == ["transport_held_back"]
    assert not invalidates("transport_held_back")


@pytest.mark.parametrize(("held_back", "code"), [(0.6, "transport_held_back"), (0.1, "generator_lagged")])
def test_a_device_slower_than_the_load_is_no_slow_host(held_back: float, code: str) -> None:
    report = flow_report(SPEC, 0)
    short_of(report, 400)
    report["pacing_certificate"] = {"passed": True, "held_back_not_sent_ratio": held_back, "failed": []}
    assert codes(report) == [code]


def test_a_held_back_flow_that_ends_early_is_short_all_the_same() -> None:
    report = flow_report(FlowSpec("r", "dccp", 1440, 30.0, 2.6, "up", 4, 1), 0)
    short_of(report, 400)
    report["sender"]["end_ns"] = END_NS - 900_000_000
    assert codes(report) == ["transport_held_back", "flow_short"]


def test_a_flow_that_ends_before_its_window_is_short() -> None:
    report = flow_report(SPEC, 0)
    report["sender"]["last_packet_ns"] = END_NS - 300_000_000
    assert codes(report) == ["flow_short"]


def test_a_slow_schedule_is_not_short() -> None:
    # 0.031 Mb/s with 1440 B is a message every 0.37 s; its last one leaves that much before the end.
    slow = flow_report(FlowSpec("r", "udp", 1440, 0.031, 2.6, "up", 4, 1), 0)
    slow["sender"]["last_packet_ns"] = END_NS - 370_000_000
    assert codes(slow) == []


def test_an_interrupted_flow_is_short() -> None:
    assert codes(flow_report(SPEC, 0, end_reason="peer_interrupted")) == ["flow_short"]


@pytest.mark.parametrize(("passed", "expected"), [(True, []), (None, []), (False, ["pacing_uncertified"])])
def test_a_certificate_over_its_limits_invalidates_and_names_them(
    passed: bool | None, expected: list[str]
) -> None:
    failed = ["max_error_p99_us 60: it is 71.2000"] if passed is False else []
    report = flow_report(SPEC, 0, pacing_certificate={"passed": passed, "failed": failed})
    assert codes(report) == expected
    for reason in judge_flow(report, END_NS):
        assert reason.detail == failed[0]
        assert invalidates(reason.code)


def test_the_limit_that_no_run_kept_is_told_with_each_figure() -> None:
    p50, p99 = "max_error_p50_us 5: it is", "max_error_p99_us 60: it is"
    early = "messages_early 0: it is 1"
    assert kept_by_none([[f"{p50} 9", f"{p99} 70"], [f"{p99} 80"]]) == ("max_error_p99_us 60", ("70", "80"))
    assert kept_by_none([[f"{p99} 70", f"{p99} 90"], [early, f"{p99} 80"]]) == (
        "max_error_p99_us 60",
        ("70", "80"),
    )
    nothing = "max_error_p99_us 60: nothing left, so there is no figure"
    assert kept_by_none([[nothing]]) == ("max_error_p99_us 60", ("nothing left, so there is no figure",))
    for failed in ([], [[]], [[f"{p99} 70"], []], [[f"{p50} 9"], [f"{p99} 70"]]):
        assert kept_by_none(failed) is None


def test_a_generator_without_a_certificate_is_not_judged_by_one() -> None:
    assert codes(flow_report(SPEC, 0, pacing_certificate=None)) == []


def test_codes_are_those_of_the_contract() -> None:
    assert invalidates("idle_drift")
    assert not invalidates("below_resolution")
    with pytest.raises(RunFailed, match="'made_up' is not a code"):
        invalidates("made_up")


def test_the_first_invalidating_reason_decides() -> None:
    reasons = [{"code": c, "detail": c} for c in ("below_resolution", "meter_gap", "idle_drift")]
    assert first_invalidating(reasons) == Reason("meter_gap", "meter_gap")
    assert first_invalidating(reasons[:1]) is None

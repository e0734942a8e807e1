# SPDX-License-Identifier: Apache-2.0
"""What flow reports tell as work and measures, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from netjoule_contracts.flow_work import achieved_ratio, books, loss_ratio, summed


@pytest.mark.parametrize(
    ("sender", "receiver", "count"),
    [
        ((10, 9, 1), (8, 1), 0),
        ((10, 9, 0), (8, 1), 1),
        ((10, 9, 1), (8, 2), 1),
        ((10, 9, 2), (8, 2), 2),
        ((10, 9, 1), None, 0),
        ((None, 9, None), (9, 0), 0),
    ],
)
def test_bookkeeping(
    sender: tuple[int | None, int, int | None], receiver: tuple[int, int] | None, count: int
) -> None:
    names = ("messages_scheduled", "messages_sent", "messages_not_sent")
    flow = {"sender": dict(zip(names, sender, strict=True)), "receiver": None}
    if receiver is not None:
        flow["receiver"] = {"messages_received_unique": receiver[0], "messages_lost": receiver[1]}
    assert len(books(flow)) == count


def test_ratios_are_empty_when_unknown() -> None:
    assert achieved_ratio({}) is None
    assert achieved_ratio({"sender": {"messages_sent": 9, "messages_scheduled": 10}}) == 0.9
    assert loss_ratio({"receiver": None}) is None


def counts(**changed: int) -> dict[str, Any]:
    messages = {"messages_scheduled": 100, "messages_sent": 100, "messages_not_sent": 0} | changed
    receiver = {"messages_received_unique": messages["messages_sent"], "messages_lost": 0, "loss_ratio": 0.0}
    return {"sender": messages, "receiver": receiver}


def test_counts_of_a_run_are_the_sums_of_its_flows() -> None:
    reports = [counts(), counts(messages_sent=50, messages_not_sent=50)]
    reports[1]["receiver"]["messages_lost"] = 15
    assert summed(reports)["sender"]["messages_sent"] == 150
    assert summed(reports)["receiver"]["loss_ratio"] == pytest.approx(0.1)
    assert summed([reports[0], {"sender": {}, "receiver": None}])["receiver"] is None

# SPDX-License-Identifier: Apache-2.0
"""Flows from the lab's client over the radio and the access point to the server."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from guest_lab import COMMAND_S, GuestLab

from netjoule.core import programs

SECONDS = 20
OFFERED = "1M"
MESSAGE_BYTES = 1380
SERVER, CONTROL = "10.78.0.2", "10.0.2.23:5301"
# A busy host starves the guest: what arrives shows that the flow works, not what it could carry.
LEAST_MESSAGES = 100


@contextlib.contextmanager
def sending(lab: GuestLab, transport: str, seconds: int = SECONDS) -> Iterator[subprocess.Popen[str]]:
    """A flow whose events can be read; begins with the first of them. The server ends with the block."""
    program = programs.find("netjoule-traffic")
    serve = [program, "serve", "--bind", SERVER, "--control-bind", CONTROL.partition(":")[0]]
    with lab.running("server", *serve, "--json", "--exit-with-stdin") as server:
        assert server.stdout is not None
        assert "listening" in server.stdout.readline()
        send = [program, "send", "--transport", transport, "--to", SERVER, "--control", CONTROL]
        send += ["-b", OFFERED, "-l", str(MESSAGE_BYTES), "-t", str(seconds), "--json"]
        with lab.running("client", *send) as sender:
            yield sender


def report_of(sender: subprocess.Popen[str]) -> dict[str, Any]:
    """The report of a flow, at its end."""
    assert sender.stdout is not None
    events = [json.loads(line) for line in sender.stdout]
    assert sender.wait(COMMAND_S) == 0
    report: dict[str, Any] = next(event for event in events if event["event"] == "report")
    return report


def flow(lab: GuestLab, transport: str) -> dict[str, Any]:
    """One flow from client to server; its report."""
    with sending(lab, transport) as sender:
        return report_of(sender)


def judge_flow(report: dict[str, Any]) -> None:
    """Every message is accounted for, and enough of them arrived."""
    sender, receiver = report["sender"], report["receiver"]
    assert sender["messages_sent"] == receiver["messages_received_unique"] + receiver["messages_lost"]
    assert receiver["messages_received_unique"] >= LEAST_MESSAGES


def carried_by_radio(lab: GuestLab, host: str) -> int:
    """Packets received on the radio so far."""
    return int(
        json.loads(lab.ask(host, "ip", "-s", "-j", "link", "show", "wlan0"))[0]["stats64"]["rx"]["packets"]
    )

# SPDX-License-Identifier: Apache-2.0
"""Transports of the kernel that this host may lack, over Debian's kernel in the guest: `make test-guest`."""

import json
import subprocess
import sys
from typing import Any

import pytest

import netjoule_contracts as contracts
from netjoule.core import programs

pytestmark = pytest.mark.guest

LIMIT_S = 400
# Not set -e: every flow says what became of it.
FLOWS = r"""
modprobe sctp
modprobe sch_netem
ip link set lo up
"$1" transports --json
mkfifo /tmp/events
"$1" serve --bind 127.0.0.1 --json >/tmp/events &
server=$!
{ read listening; cat >/dev/null & } </tmp/events
for direction in "" -R; do
  for options in "sctp" "sctp --no-ordered --lifetime-ms 900" "mptcp" "mptcp --congestion-control reno"; do
    "$1" send --to 127.0.0.1 -b 1M -l 1000 -t 1 --json $direction --transport $options |
      grep '"event":"report"'
  done
done
tc qdisc add dev lo root netem delay 100ms
"$1" send --to 127.0.0.1 -b 1M -l 1000 -t 1 --json --transport sctp | grep '"event":"report"'
kill $server
"""


@pytest.fixture(scope="module")
def told() -> list[Any]:
    """What the guest's transports are, then the report of every flow."""
    words = ["guest", "run", "--", "sh", "-c", FLOWS, "sh", str(programs.find("netjoule-traffic"))]
    command = [sys.executable, "-m", "netjoule", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_guest_has_what_this_host_may_lack(told: list[Any]) -> None:
    available = {entry["name"]: entry["available"] for entry in told[0]}
    assert (available["sctp"], available["mptcp"]) == (True, True)


def test_every_flow_arrives_whole_and_runs_as_chosen(told: list[Any]) -> None:
    reports = told[1:-1]
    assert [(r["transport"], r["direction"]) for r in reports] == [
        (transport, direction)
        for direction in ("up", "down")
        for transport in ("sctp", "sctp", "mptcp", "mptcp")
    ]
    for report in told[1:]:
        report.pop("event")
        contracts.validate("flow_report", report)
        assert report["reconciles"]
        assert report["receiver"]["messages_received_unique"] > 0
    far = told[-1]["receiver"]
    assert (far["messages_lost"], far["one_way_delay_ms"]["p50"] >= 100) == (0, True), (
        "a handshake takes 200 ms"
    )
    for plain, chosen, *_ in (reports[:4], reports[4:]):
        assert plain["receiver"]["messages_lost"] == 0
        assert plain["sender"]["transport_stats"]["ordered_data_chunks_sent"] > 0
        assert plain["receiver"]["arrival_stamp_source"] in ("kernel", "mixed")
        seen = chosen["sender"]["transport_stats"]
        assert (seen["ordered"], seen["lifetime_ms"]) == (False, 900)
        assert seen["unordered_data_chunks_sent"] > 0
    for plain, chosen in (reports[2:4], reports[6:8]):
        assert plain["sender"]["transport_stats"]["mptcp_fell_back_to_tcp"] is False
        assert chosen["sender"]["transport_stats"]["congestion_control"] == "reno"
        assert plain["receiver"]["messages_lost"] == 0

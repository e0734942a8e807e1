# SPDX-License-Identifier: Apache-2.0
"""Launch times (so_txtime) over Debian's kernel in the guest, whose fq obeys them: `make test-guest`."""

import json
import subprocess
import sys
from typing import Any

import pytest

import netjoule_contracts as contracts
from netjoule.core import programs

pytestmark = pytest.mark.guest

LIMIT_S = 400
MESSAGES = 1_000
FAST_MESSAGES = 2_000
# A thousand messages in two seconds over a cable between two namespaces, and two thousand in less than one:
# several for each call. Not set -e: every flow says what became of it.
FLOWS = r"""
modprobe -a veth sch_fq sch_etf
ip netns add far
ip link add near0 type veth peer name far0 netns far
ip address add 10.61.0.1/24 dev near0
ip -n far address add 10.61.0.2/24 dev far0
ip link set near0 up
ip -n far link set far0 up
ip -n far link set lo up
mkfifo /tmp/events
ip netns exec far "$1" serve --bind 10.61.0.2 --json >/tmp/events &
server=$!
{ read listening; cat >/dev/null & } </tmp/events
program=$1
flow() {
  "$program" send --to 10.61.0.2 -l 1000 --pacing so_txtime --json "$@" >/tmp/said
  echo "{\"exit\": $?}"
  grep -E '"event":"(report|error)"' /tmp/said
}
tc qdisc replace dev near0 root pfifo
flow -b 4M -t 2
tc qdisc replace dev near0 root fq
tc -n far qdisc replace dev far0 root fq
flow -b 4M -t 2 --pacing-limit min_achieved_ratio=1
flow -b 4M -t 2 -R
flow -b 4M -t 2 --pacing-limit max_error_us=0
flow -b 20M -t 0.8
tc qdisc replace dev near0 root etf clockid CLOCK_TAI delta 200000
ping -c 1 -W 1 10.61.0.2 >/dev/null 2>&1
echo "{\"exit\": $?}"
kill $server
"""


@pytest.fixture(scope="module")
def told() -> list[dict[str, Any]]:
    """Exit code and last event of every flow in turn."""
    words = ["guest", "run", "--", "sh", "-c", FLOWS, "sh", str(programs.find("netjoule-traffic"))]
    command = [sys.executable, "-m", "netjoule", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_fq_the_host_lacks_what_keeps_launch_times(told: list[dict[str, Any]]) -> None:
    assert [answer["exit"] for answer in told[:10:2]] == [3, 0, 0, 4, 0]
    assert told[1]["code"] == "host_lacks"
    assert "near0: its queueing discipline is pfifo, and so_txtime needs fq" in told[1]["message"]


def test_fq_keeps_every_launch_time_and_its_stamps_say_so(told: list[dict[str, Any]]) -> None:
    for report in told[3:9:2]:
        report.pop("event")
        contracts.validate("flow_report", report)
        certificate = report["pacing_certificate"]
        assert certificate["error_basis"] == "launch_time_measured"
        sent = report["sender"]["messages_sent"]  # a guest that is late leaves some out
        assert sent > MESSAGES / 2
        assert (certificate["departures"], certificate["departures_not_stamped"]) == (sent, 0)
        assert certificate["messages_early"] == 0
        assert sent < MESSAGES or certificate["achieved_ratio"] == 1
        assert report["sender"]["departure_delay_us"]["stamped"] == sent
        assert report["receiver"]["messages_received_unique"] == sent
        # One kernel, one clock: nothing arrives before its launch, which is the time in its header.
        assert report["receiver"]["one_way_delay_ms"]["min"] >= 0
    assert [told[place]["direction"] for place in (3, 5, 7)] == ["up", "down", "up"]


def test_no_stamp_is_lost_where_several_messages_share_a_call(told: list[dict[str, Any]]) -> None:
    certificate = told[9]["pacing_certificate"]
    assert certificate["departures"] == told[9]["sender"]["messages_sent"]
    assert certificate["departures"] > FAST_MESSAGES / 2
    assert (certificate["departures_not_stamped"], certificate["messages_early"]) == (0, 0)
    # Fewer wake-ups than messages: they did share calls.
    assert told[9]["pacing"]["wake_ups"] < FAST_MESSAGES / 2


def test_etf_lets_nothing_out_that_has_no_launch_time(told: list[dict[str, Any]]) -> None:
    # Not even address resolution: so a flow could not open, and etf is refused as any other discipline.
    assert told[10]["exit"] != 0


def test_the_certificate_is_of_when_messages_left_not_of_when_they_were_handed_over(
    told: list[dict[str, Any]],
) -> None:
    kept, judged = told[3]["pacing_certificate"], told[7]["pacing_certificate"]
    assert (kept["passed"], judged["passed"]) == (True, False)
    # Every message was handed over in time; no kernel's timer is exact to the nanosecond.
    assert judged["error_us"]["max"] > 0
    assert judged["failed"][0].startswith("max_error_us 0: it is")

# SPDX-License-Identifier: Apache-2.0
"""`make bench`: netjoule-traffic against iperf3 on one raw veth pair; the running link against its model;
the meter logger's CPU; DCCP against UDP, and in the guest against the kernel's DCCP.

Everything is a ratio of figures taken in one run, interleaved; absolute figures of one machine say little.
The result is printed and written to docs/benchmarks.md with host and commit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import dccp
import guest
import host
import meters
import relay
from generators import Flow, Iperf3, NetjouleTraffic
from tables import Section, markdown, text
from veth import enter_sandbox, make_pair

REPO = Path(__file__).resolve().parents[2]
RATES_MBPS = [0.031, 0.049, 0.25, 0.5, 1, 2, 4, 8, 12, 18, 24, 30]  # the span of table-i
SIZES_BYTES = [64, 1440]


def main() -> int:
    """Run the benches named on the command line (all by default)."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only", choices=["cpu", "pps", "fidelity", "relay", "meters", "dccp", "guest"], action="append"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one repeat, short flows, four rates: a look, not a result"
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    enter_sandbox(sys.argv)
    make_pair()
    ours, theirs = NetjouleTraffic.find(REPO), Iperf3.find()
    seconds, repeats = (2.0, 1) if options.quick else (10.0, 3)
    rates = [0.031, 1, 10, 30] if options.quick else RATES_MBPS
    benches = {
        "cpu": lambda: cpu_per_packet(ours, theirs, seconds, repeats),
        "pps": lambda: greatest_rate(ours, theirs, seconds, repeats),
        "fidelity": lambda: fidelity(ours, theirs, seconds, rates),
        "relay": lambda: relay.section(REPO),
        "meters": lambda: meters.section(10.0 if options.quick else 60.0),
        "guest": lambda: guest.section(REPO),
    }
    several = {"dccp": lambda: dccp.sections(REPO, ours, seconds, repeats)}
    sections: list[Section] = []
    for name in options.only or [*benches, *several]:
        for section in several[name]() if name in several else [benches[name]()]:
            print(text(section), flush=True)
            sections.append(section)
    if options.write:
        path = REPO / "docs" / "benchmarks.md"
        page = path.read_text(encoding="utf-8") if path.exists() else ""
        page = markdown(sections, host.description(REPO, theirs.version), page)
        path.write_text(page, encoding="utf-8")
        print("written: docs/benchmarks.md")
    return 0 if all(s.passed is not False for s in sections) else 1


def cpu_per_packet(ours: NetjouleTraffic, theirs: Iperf3, seconds: float, repeats: int) -> Section:
    """CPU seconds per million datagrams of 64 bytes at 30 Mb/s, each side, medians of interleaved repeats."""
    flow = Flow(payload_bytes=64, rate_mbps=30, seconds=seconds)
    arms = {
        "netjoule-traffic, absolute, window 0": lambda: ours.run(flow),
        "netjoule-traffic, absolute, window 50 us": lambda: ours.run(flow, "--window-us", "50"),
        "netjoule-traffic, absolute, window 200 us": lambda: ours.run(flow, "--window-us", "200"),
        f"iperf3 {theirs.version}": lambda: theirs.run(flow),
    }
    taken = {name: [] for name in arms}
    for _ in range(repeats):
        for name, run in arms.items():
            taken[name].append(run())
    reference = _median([o.sender_cpu_s_per_million for o in taken[f"iperf3 {theirs.version}"]])
    rows = []
    for name, outcomes in taken.items():
        sender = _median([o.sender_cpu_s_per_million for o in outcomes])
        receiver = _median([o.receiver_cpu_s_per_million for o in outcomes])
        received = _median([o.received_pps for o in outcomes])
        rows.append(
            [name, f"{sender:.2f}", f"{receiver:.2f}", f"{received:,.0f}", f"{sender / reference:.2f}"]
        )
    return Section(
        title="CPU seconds per million datagrams, UDP 64 B at 30 Mb/s (58.6 kpps)",
        columns=["generator", "sender CPU s/M", "receiver CPU s/M", "received pps", "sender against iperf3"],
        rows=rows,
        note="A CPU second is user plus system time of the whole process, start-up included. "
        "Compare at the received rate beside it.",
    )


def greatest_rate(ours: NetjouleTraffic, theirs: Iperf3, seconds: float, repeats: int) -> Section:
    """Greatest datagrams per second of 64 bytes, one sender thread, no offloads."""
    flow = Flow(payload_bytes=64, rate_mbps=None, seconds=seconds)
    arms = {"netjoule-traffic": lambda: ours.run(flow), f"iperf3 {theirs.version}": lambda: theirs.run(flow)}
    taken = {name: [] for name in arms}
    for _ in range(repeats):
        for name, run in arms.items():
            taken[name].append(run())
    reference = _median([o.received_pps for o in taken[f"iperf3 {theirs.version}"]])
    rows = []
    for name, outcomes in taken.items():
        sent, received = _median([o.sent_pps for o in outcomes]), _median([o.received_pps for o in outcomes])
        loss = 100 * (1 - received / sent) if sent else 0.0
        rows.append([name, f"{sent:,.0f}", f"{received:,.0f}", f"{loss:.2f}", f"{received / reference:.2f}"])
    return Section(
        title="Greatest datagrams per second, UDP 64 B, saturated",
        columns=["generator", "sent pps", "received pps", "loss %", "received against iperf3"],
        rows=rows,
        note="Every message of netjoule-traffic carries its own sequence number and time and is counted.",
    )


def fidelity(ours: NetjouleTraffic, theirs: Iperf3, seconds: float, rates: list[float]) -> Section:
    """Sent against scheduled messages at each rate and size; pass: within max(1 message, 0.5 %)."""
    rows, passed = [], True
    for size in SIZES_BYTES:
        for rate in rates:
            flow = Flow(payload_bytes=size, rate_mbps=rate, seconds=seconds)
            mine, other = ours.run(flow), theirs.run(flow)
            off = mine.sent - mine.scheduled
            good = abs(off) <= max(1, 0.005 * mine.scheduled)
            passed = passed and good
            wanted = flow.messages
            rows.append(
                [
                    f"{size}",
                    f"{rate:g}",
                    f"{mine.scheduled:,}",
                    f"{off:+d}",
                    "yes" if good else "NO",
                    f"{other.sent - wanted:+,.0f}",
                ]
            )
    return Section(
        title=f"Sent against scheduled messages over {seconds:g} s, UDP",
        columns=[
            "payload B",
            "Mb/s",
            "scheduled",
            "sent - scheduled",
            "within max(1, 0.5 %)",
            f"iperf3 {theirs.version}: sent - asked",
        ],
        rows=rows,
        note="Limit: |sent - scheduled| <= max(1 message, 0.5 %).",
        passed=passed,
    )


def _median(values: list[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FileNotFoundError, subprocess.SubprocessError, RuntimeError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        sys.exit(3 if isinstance(problem, FileNotFoundError) else 1)

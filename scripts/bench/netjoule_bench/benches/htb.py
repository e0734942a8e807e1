# SPDX-License-Identifier: Apache-2.0
"""A router that follows the load: as the running link has it, and as the kernel's HTB whose rate is set anew.

In both a client sends over netjoule-link to a namespace that forwards to a server. Either the link's path has
the router, or that namespace: HTB over a short packet queue, whose rate a loop here changes over netlink. The
loop's rule is written a second time, from the definition: what two programs agree on is no slip of one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule_bench.repeats import shown
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.tables import Section, at_most

RATES_MBPS = tuple(range(1, 11))
DELTA_S, WEIGHT = 1e-3, 0.25
QUEUES = {10: 10, 100: 42}
"""Packets by RTT in ms, as in the topology troubled-marriage."""
FLOWS = {10: 1, 100: 2}
"""At the same time in each arm. Over 100 ms a flow loses a packet each 13 s: its mean takes long to know."""
MOST_PERCENT, MOST_FAST_PERCENT, FAST_MS = 3.0, 5.0, 10
_WARM_UP_S = 20
_FRAME = 1514 / 1500
"""HTB counts frames, the link IP packets."""
_LINK, _HTB = "link", "HTB"
_CLIENT, _SERVER = "10.79.0.2", "10.79.0.1"


@dataclass(frozen=True)
class Seen:
    """Mean service rate and throughput of one flow, Mb/s."""

    rate_mbps: float
    goodput_mbps: float


def section(repo: Path, *, quick: bool) -> Section:
    """Both arms, and both round-trip times, side by side: a machine's own noise meets all of them then."""
    measure_s, rounds = (10, 1) if quick else (120, 3)
    rows, verdicts = [], []
    for interval_ms in (10, 50) if quick else (10, 50, 100, 1000):
        seen = [one for _ in range(rounds) for one in _flows(repo, interval_ms, measure_s)]
        for rtt_ms in QUEUES:
            link, htb = (_mean([one for cell, one in seen if cell == (arm, rtt_ms)]) for arm in (_LINK, _HTB))
            name = f"RTT {rtt_ms} ms, mRCI {interval_ms} ms"
            figures = (link.rate_mbps, htb.rate_mbps, link.goodput_mbps, htb.goodput_mbps)
            rows.append([name, *(shown(value) for value in figures)])
            most = MOST_FAST_PERCENT if interval_ms == FAST_MS else MOST_PERCENT
            for what, own, other in (
                ("service rate", link.rate_mbps, htb.rate_mbps),
                ("throughput", link.goodput_mbps, htb.goodput_mbps),
            ):
                verdicts.append(at_most(f"{what} apart, %: {name}", 100 * abs(own / other - 1), most))
    return Section(
        "A router that follows the load: the running link's and the kernel's HTB",
        ["cell", "rate Mb/s, link", "HTB", "throughput Mb/s, link", "HTB"],
        rows,
        f"practRA under the kernel's Reno, {measure_s} s after {_WARM_UP_S} s; {rounds} flows over 10 ms, "
        f"{rounds * FLOWS[100]} over 100 ms. HTB has no pause at a change of its rate, and a packet that "
        "waits for its turn keeps the rate before.",
        verdicts=verdicts,
    )


def _mean(seen: list[Seen]) -> Seen:
    return Seen(
        statistics.mean(one.rate_mbps for one in seen), statistics.mean(one.goodput_mbps for one in seen)
    )


def _flows(repo: Path, interval_ms: int, measure_s: int) -> list[tuple[tuple[str, int], Seen]]:
    """Flows in each arm at each round-trip time, all at the same time, each over a testbed of its own."""
    cells = [(arm, rtt_ms) for rtt_ms, flows in FLOWS.items() for arm in (_LINK, _HTB) for _ in range(flows)]
    with contextlib.ExitStack() as stack:
        setups = [
            stack.enter_context(_testbed(repo, number, *cell, interval_ms))
            for number, cell in enumerate(cells)
        ]
        lasts_s = _WARM_UP_S + measure_s
        argv = ["iperf3", "-c", _SERVER, "-C", "reno", "-t", str(lasts_s), "-O", str(_WARM_UP_S), "-J"]
        flows = [
            stack.enter_context(Running(setup.client, argv, longest_s=4.0 * lasts_s)) for setup in setups
        ]
        time.sleep(_WARM_UP_S)
        before = [setup.rate.total() for setup in setups]
        time.sleep(measure_s - 1)
        after = [setup.rate.total() for setup in setups]
        ended = [json.loads(flow.finish().text) for flow in flows]
    rates_mbps = [
        (mbit - mbit_before) / (time_s - before_s)
        for (time_s, mbit), (before_s, mbit_before) in zip(after, before, strict=True)
    ]
    goodputs_mbps = [one["end"]["sum_received"]["bits_per_second"] / 1e6 for one in ended]
    return list(zip(cells, map(Seen, rates_mbps, goodputs_mbps), strict=True))


@dataclass
class Rate:
    """The integral of a service rate over time."""

    mbit: float = 0.0
    time_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, rate_mbps: float, span_s: float) -> None:
        """Served at this rate for so long."""
        with self.lock:
            self.mbit += rate_mbps * span_s
            self.time_s += span_s

    def total(self) -> tuple[float, float]:
        """So long, s, and what could have been served in it, Mb."""
        with self.lock:
            return self.time_s, self.mbit


@dataclass(frozen=True)
class _Setup:
    client: str
    rate: Rate


@contextlib.contextmanager
def _testbed(repo: Path, number: int, arm: str, rtt_ms: int, interval_ms: int) -> Iterator[_Setup]:
    """Namespaces client, gate and server of an arm, and what limits the way between the last two."""
    client, gate, server = (f"bench{number}-{name}" for name in ("client", "gate", "server"))
    ended = threading.Event()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        for netns in (client, gate, server):
            _ip("netns", "add", netns)
            stack.callback(_ip, "netns", "del", netns)
            _ip("-n", netns, "link", "set", "lo", "up")
        config = Path(name) / "link.json"
        config.write_text(json.dumps(_link_config(Path(name), (client, gate), arm, rtt_ms, interval_ms)))
        program = str(repo / "target" / "release" / "netjoule-link")
        stack.enter_context(Running(None, [program, "run", "--keep", "--config", str(config)])).wait_for_line(
            '"ready"'
        )
        _forward(gate, server)
        rate = Rate()
        stack.callback(ended.set)
        if arm == _HTB:
            _start(stack, _govern, gate, QUEUES[rtt_ms], interval_ms / 1e3, rate, ended)
        else:
            _start(stack, _listen, Path(name) / "link.sock", rate, ended)
        stack.enter_context(Running(server, ["iperf3", "-s", "-1", "--forceflush"])).wait_for_line(
            "listening"
        )
        yield _Setup(client, rate)


def _start(stack: contextlib.ExitStack, work: Any, *arguments: Any) -> None:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    ended = arguments[-1]
    stack.callback(thread.join, 5.0)
    stack.callback(ended.set)


def _link_config(
    folder: Path, ends: tuple[str, str], arm: str, rtt_ms: int, interval_ms: int
) -> dict[str, Any]:
    """The client's access, all delay, and in one arm the router at the end."""
    router = {
        "rate_mbps": 10,
        "queue_packets": QUEUES[rtt_ms],
        "direction": "up",
        "scaling": {"kind": "practra", "interval_ms": interval_ms},
    }
    elements: list[dict[str, Any]] = [{"rate_mbps": 100, "delay_ms": rtt_ms / 2}]
    client, gate = ends
    base = {"schema_version": 2, "preset": "ideal-216", "seed": 1, "stats_socket": str(folder / "link.sock")}
    return base | {
        "stations": [
            {
                "name": "client",
                "netns": f"/run/netns/{client}",
                "ifname": "wlan0",
                "addresses": [f"{_CLIENT}/24"],
            }
        ],
        "wired": [
            {
                "name": "server",
                "netns": f"/run/netns/{gate}",
                "ifname": "link0",
                "addresses": [f"{_SERVER}/24"],
                "elements": elements + [router] * (arm == _LINK),
            }
        ],
    }


def _forward(gate: str, server: str) -> None:
    """The gate gives its address to the server behind it, and forwards between the two."""
    _ip("link", "add", "out0", "netns", gate, "type", "veth", "peer", "name", "in0", "netns", server)
    _ip("-n", gate, "addr", "flush", "dev", "link0")
    _ip("-n", gate, "addr", "add", "10.80.0.1/24", "dev", "out0")
    _ip("-n", server, "addr", "add", f"{_SERVER}/32", "dev", "lo")
    _ip("-n", server, "addr", "add", "10.80.0.2/24", "dev", "in0")
    for netns, device in ((gate, "out0"), (server, "in0")):
        _ip("-n", netns, "link", "set", device, "up")
        offloads = ["ethtool", "-K", device, "gro", "off", "gso", "off", "tso", "off"]
        _ip("netns", "exec", netns, *offloads)
    _ip("-n", gate, "route", "add", f"{_CLIENT}/32", "dev", "link0")
    _ip("-n", gate, "route", "add", f"{_SERVER}/32", "via", "10.80.0.2")
    _ip("-n", server, "route", "add", f"{_CLIENT}/32", "via", "10.80.0.1", "src", _SERVER)
    for name in ("ip_forward=1", "conf.all.rp_filter=0", "conf.link0.rp_filter=0"):
        _ip("netns", "exec", gate, "sysctl", "-qw", f"net.ipv4.{name}")


def _listen(path: Path, rate: Rate, ended: threading.Event) -> None:
    """Add up what the link tells of its router."""
    with socket.socket(socket.AF_UNIX) as stats:
        stats.connect(str(path))
        with stats.makefile() as lines:
            for line in lines:
                if ended.is_set():
                    return
                told = json.loads(line)
                if told["kind"] == "router":
                    rate.add(told["mean_rate_mbps"], (told["t_end_ns"] - told["t_start_ns"]) / 1e9)


def _govern(gate: str, queue: int, interval_s: float, rate: Rate, ended: threading.Event) -> None:
    """Set HTB's rate at ticks, as practRA says."""
    from pyroute2 import IPRoute, netns

    netns.setns(gate)  # of this thread alone
    with IPRoute() as kernel:
        (index,) = kernel.link_lookup(ifname="out0")
        kernel.tc("add", "htb", index, "1:", default=0x10010)
        _set_rate(kernel, index, RATES_MBPS[-1], "add-class")
        kernel.tc("add", "pfifo", index, "20:", parent=0x10010, limit=queue - 1)
        rule = PractRa(interval_s, 0.9 * queue * 0.012 / 10)
        now_s = due_s = time.monotonic()
        while not ended.is_set():
            due_s += interval_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            before_s, now_s = now_s, time.monotonic()
            rate.add(RATES_MBPS[rule.at], now_s - before_s)
            if rule.tick(*_counted(kernel, index)):
                _set_rate(kernel, index, RATES_MBPS[rule.at], "change-class")


def _set_rate(kernel: Any, index: int, rate_mbps: int, command: str) -> None:
    rate = f"{round(1e3 * _FRAME * rate_mbps)}kbit"
    burst = {"burst": 1600, "cburst": 1600, "quantum": 1600}
    kernel.tc(command, "htb", index, 0x10010, rate=rate, ceil=rate, parent=0x10000, **burst)


def _counted(kernel: Any, index: int) -> tuple[float, float]:
    """Mb of IP that have come so far, dropped ones included, and Mb that wait."""
    for told in kernel.get_qdiscs(index=index):
        if told["handle"] == 0x200000:
            stats = told.get_attr("TCA_STATS2")
            basic, queued = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
            waits = queued["backlog"]
            came = basic["bytes"] + waits + 1514 * queued["drops"]
            return came * 8e-6 / _FRAME, waits * 8e-6 / _FRAME
    raise RuntimeError("the queue below HTB is gone")


@dataclass
class PractRa:
    """The rule of Nedevschi et al. (NSDI 2008) as Panarello et al. (AJEEE 13:1, 2016) have it.

    Attributes:
        interval_s: between two ticks, also the window of the estimate.
        d_s: the queueing delay that it keeps.
        at: index of the rate.
    """

    interval_s: float
    d_s: float
    at: int = len(RATES_MBPS) - 1
    came_mbit: float | None = None
    estimate_mbps: float | None = None

    def tick(self, came_mbit: float, waits_mbit: float) -> bool:
        """Whether the rate changes; `came_mbit`: since the start."""
        if self.came_mbit is None:
            self.came_mbit = came_mbit
            return False
        sample_mbps = (came_mbit - self.came_mbit) / self.interval_s
        self.came_mbit = came_mbit
        old = sample_mbps if self.estimate_mbps is None else self.estimate_mbps
        self.estimate_mbps = (1 - WEIGHT) * old + WEIGHT * sample_mbps
        rate = RATES_MBPS[self.at]
        if self.at + 1 < len(RATES_MBPS):
            soon_s = (DELTA_S * self.estimate_mbps + waits_mbit) / RATES_MBPS[self.at + 1]
            if waits_mbit / rate > self.d_s or soon_s > self.d_s - DELTA_S:
                self.at += 1
                return True
        if self.at > 0 and waits_mbit == 0 and self.estimate_mbps < RATES_MBPS[self.at - 1]:
            self.at -= 1
            return True
        return False


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)

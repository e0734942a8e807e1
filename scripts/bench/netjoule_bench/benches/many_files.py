# SPDX-License-Identifier: Apache-2.0
"""10,000 files of 16 KB over the path sydney: netjoule-transfer against aria2 and curl, 64 connections each.

Clients, nginx, access point and path are those of campaigns of transfers; all speak TLS. Ours drops what
comes; the others save it on a tmpfs, where it is held to what was served once they have ended.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import LocalHost, NetnsHost
from netjoule.loads.transfer.clients import ours
from netjoule.loads.transfer.clients.arms import CLIENTS
from netjoule.loads.transfer.clients.task import MOST_CONNECTIONS, Task
from netjoule.loads.transfer.downloads import Download, OwnDownload, PeerDownload, Run
from netjoule.loads.transfer.servers.server import SOFTWARE, Order, WebServer
from netjoule.loads.transfer.servers.site import Site
from netjoule.loads.transfer.session import differs, megabits
from netjoule.loads.transfer.settings import DEFAULT_CONGESTION_CONTROL
from netjoule.testbeds.emulated.config import clients, link_config, wired
from netjoule.topology.topology import Topology, load
from netjoule_bench.generators.netjoule_traffic import built
from netjoule_bench.repeats import interleaved, interval, ratio
from netjoule_bench.tables import Section, at_least, by_arm

_SIZES = dict.fromkeys(("mean_bytes", "min_bytes", "max_bytes"), 16 << 10)
DATASET = json.dumps({"name": "16-kb", "groups": [{"kind": "small", "files_n": 10_000, **_SIZES}]})
QUICK_FILES = 640
ROUNDS = 3
STREAMS = 4
"""On each connection of HTTP/2: 4 MiB are asked for at once then, and 3.6 MB are one product of the path."""
HTTP_1, HTTP_2 = "netjoule-transfer, HTTP/1.1", f"netjoule-transfer, HTTP/2, {STREAMS} streams each"
PEERS = {"aria2 -j64": "aria2-best", "curl -Z --parallel-immediate": "curl-Z-best"}
LEAST_OF_PEERS, LEAST_OF_HTTP_1 = 1.0, 1.2
_SERVER, _TOPOLOGY = "nginx", "testbed/topologies/transfers.yaml"
_READY_S, _LONGEST_S = 30.0, 300.0
Arm = Callable[[], Awaitable[Download]]
"""Makes a download ready."""


def section(repo: Path, *, quick: bool) -> Section:
    """One row for each client and HTTP version."""
    topology, program = load(repo / _TOPOLOGY), str(built(repo, ours.PROGRAM))
    files, rounds = (QUICK_FILES, 1) if quick else (None, ROUNDS)
    fill = ours.fill(ours.Knobs(DATASET, 1, files), program)
    (client,), (server,) = (
        [NetnsHost(spot.host, spot.netns_file) for spot in spots(topology)] for spots in (clients, wired)
    )
    ports = SOFTWARE[_SERVER].http_port, SOFTWARE[_SERVER].https_port
    near, far = (topology.test_address(host.name, "ipv4") for host in (client, server))
    order = Order(_SERVER, Site(far, *ports), fill, near, DEFAULT_CONGESTION_CONTROL)
    with asyncio.Runner() as runner, _path(repo, topology, runner):
        web = runner.run(WebServer.started(server, order))
        try:
            arms = {**_of_others(client, web), **_ours(client, web, program, files)}
            runs = {name: partial(_run, runner, arm, web.files) for name, arm in arms.items()}
            return judged(interleaved(runs, rounds))
        finally:
            runner.run(web.stop())


@contextmanager
def _path(repo: Path, topology: Topology, runner: asyncio.Runner) -> Iterator[None]:
    """The topology's client and server, each in its namespace, and the link between them."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for spot in (*clients(topology), *wired(topology)):
            _ip("netns", "add", spot.netns)
            stack.callback(_ip, "netns", "del", spot.netns)
            _ip("-n", spot.netns, "link", "set", "lo", "up")
        config = Path(folder) / "link.json"
        config.write_text(json.dumps(link_config(topology, Path(folder) / "link.sock")), encoding="utf-8")
        argv = [str(built(repo, "netjoule-link")), "run", "--config", str(config)]
        link = runner.run(LocalHost("link").start(argv, name="netjoule-link"))
        stack.callback(lambda: runner.run(link.stop()))
        runner.run(link.expect("ready", _READY_S))
        link.prefer()  # it must not wait for the programs whose bytes it carries
        yield


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _of_others(host: NetnsHost, server: WebServer) -> dict[str, Arm]:
    fixed = {"fill": server.order.fill, "interface": None, "timeout_s": _LONGEST_S, "quiet_s": 0.0}
    arms: dict[str, Arm] = {}
    for name, value in PEERS.items():
        client = CLIENTS[value]
        assert client.invocation is not None
        request = {**fixed, "version_argv": [client.program, "--version"]}
        invocation = client.invocation(_task(server, "1.1"))
        arms[name] = partial(PeerDownload.ready, host, invocation, request, server, repeat=1)
    return arms


def _ours(host: NetnsHost, server: WebServer, program: str, files: int | None) -> dict[str, Arm]:
    arms: dict[str, Arm] = {}
    for name, http, streams in ((HTTP_1, "1.1", 1), (HTTP_2, "2", STREAMS)):
        options = {"concurrency": MOST_CONNECTIONS, "streams": streams}
        knobs = ours.Knobs(DATASET, 1, files, to="nowhere", options=options)
        argv = ours.argv(ours.FIXED, _task(server, http), knobs, program)
        arms[name] = partial(OwnDownload.ready, host, argv, server, repeat=1)
    return arms


def _task(server: WebServer, http: str) -> Task:
    return Task(server.order.site.url(tls=True), server.files, http, tls=True)


def _run(runner: asyncio.Runner, arm: Arm, files: Mapping[str, int]) -> Run:
    return runner.run(_fetched(arm, sum(files.values())))


async def _fetched(arm: Arm, wanted_bytes: int) -> Run:
    """One transfer. Raises RunFailed when a file did not come whole."""
    download = await arm()
    try:
        await download.go()
        runs = await download.runs(_LONGEST_S)
    finally:
        await download.end()
    if (reason := differs(runs, wanted_bytes)) is not None:
        raise RunFailed(reason.detail, code=reason.code)
    return runs[0]


def _rate_mbps(run: Run) -> float:
    return megabits(run["bytes"]) / (1e-9 * float(run["end_ns"] - run["start_ns"]))


def judged(taken: Mapping[str, Sequence[Run]]) -> Section:
    """The section from what all rounds took; pure."""
    rates = {name: [_rate_mbps(run) for run in runs] for name, runs in taken.items()}
    best = [max(of_round) for of_round in zip(*(rates[name] for name in PEERS), strict=True)]
    against, gain = ratio(rates[HTTP_1], best), ratio(rates[HTTP_2], rates[HTTP_1])
    return by_arm(
        "10,000 files of 16 KB over sydney, 64 connections",
        taken,
        {
            "rate Mb/s": lambda runs: interval([_rate_mbps(run) for run in runs], ".2f"),
            "CPU s": lambda runs: interval([run["cpu_s"] for run in runs], ".2f"),
            "connections opened": lambda runs: interval([run["connections_opened_n"] for run in runs], ".0f"),
        },
        arms="client",
        note="nginx with TLS and CUBIC behind the emulated access point, as campaigns of transfers have it; "
        "aria2 and curl as their arms aria2-best and curl-Z-best. Over HTTP/1.1 a round trip of 290 ms for "
        "each answer makes 45 s at least. Ours drops bytes once their length and signatures are checked, the "
        "others save them on a tmpfs and are checked later. In brackets the least and the greatest round.",
        verdicts=[
            at_least(
                "10,000 files: rate against the best of aria2 and curl, HTTP/1.1", against, LEAST_OF_PEERS
            ),
            at_least("10,000 files: rate of HTTP/2 against HTTP/1.1, both ours", gain, LEAST_OF_HTTP_1),
        ],
    )

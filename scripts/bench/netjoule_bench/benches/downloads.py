# SPDX-License-Identifier: Apache-2.0
"""A file of 1 GB to nowhere: netjoule-transfer against curl, and over HTTP/3 against libcurl in Python.

Real servers (nginx; Caddy for HTTP/3) in the receiver's namespace on one core, the client on another. All
check the length alone; ours that checks the signature in each MiB, too, is shown beside.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from netjoule.hosts.host import NetnsHost
from netjoule.loads.transfer.servers.server import SOFTWARE, Order, WebServer
from netjoule.loads.transfer.servers.site import Site
from netjoule_bench.generators.netjoule_traffic import built
from netjoule_bench.repeats import interleaved, interval, ratio
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import RECEIVER_ADDRESS, RECEIVER_NETNS, SENDER_NETNS
from netjoule_bench.tables import Section, Verdict, at_least, at_most, by_arm

DATASET = "1gb"
ROUNDS = 9
CURL_CFFI = ".setup/curl-cffi"
"""Where scripts/bench.sh puts it, in the checkout."""
OURS, CURL, CFFI = "netjoule-transfer", "curl", "curl_cffi"
LEAST_PLAIN_RATE, MOST_PLAIN_CPU = 0.8, 1.25
MOST_HTTP3_OF_CFFI, MOST_HTTP3_OF_HTTP2 = 0.4, 2.2
_CLIENT = Path(__file__).parents[1] / "generators" / "curl_cffi_client.py"


@dataclass(frozen=True)
class Fetched:
    """What a program took for the file."""

    bytes: int
    time_s: float
    cpu_s: float

    @property
    def rate_mbps(self) -> float:
        """Of file bytes, start of the program included."""
        return 8e-6 * self.bytes / self.time_s

    @property
    def cpu_s_per_100_mb(self) -> float:
        """100 MB are 10^8 bytes."""
        return 1e8 * self.cpu_s / self.bytes


def section(repo: Path, *, quick: bool) -> Section:
    """One row for each client and HTTP version."""
    return asyncio.run(_section(repo, 1 if quick else ROUNDS))


async def _section(repo: Path, rounds: int) -> Section:
    program = str(built(repo, OURS))
    fill = [program, "dataset", DATASET, "--out", "."]
    host = NetnsHost("server", Path("/run/netns") / RECEIVER_NETNS)
    servers: dict[str, WebServer] = {}
    with tempfile.TemporaryDirectory() as folder, _on_core(-1):
        try:
            for name in ("nginx", "caddy"):
                ports = SOFTWARE[name].http_port, SOFTWARE[name].https_port
                order = Order(name, Site(RECEIVER_ADDRESS, *ports), fill)
                servers[name] = await WebServer.started(host, order)
                (Path(folder) / f"{name}.pem").write_text(servers[name].ca_pem)
            with _on_core(0):
                return judged(interleaved(_arms(repo, program, servers, Path(folder)), rounds))
        finally:
            for server in servers.values():
                await server.stop()


@contextmanager
def _on_core(index: int) -> Iterator[None]:
    """What is started meanwhile runs on this core of those that this process may use."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[index]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _arms(
    repo: Path, program: str, servers: Mapping[str, WebServer], folder: Path
) -> dict[str, Callable[[], Fetched]]:
    ours = [program, "get", "--to", "nowhere", "--algorithm", "fixed", "--json"]
    curl = ["curl", "-q", "-sS", "--fail", "-o", "/dev/null", "-w", "%{size_download}"]
    arms: dict[str, Callable[[], Fetched]] = {}
    for name, server, tls, version in (
        ("HTTP/1.1", "nginx", False, "1.1"),
        ("HTTP/1.1, TLS", "nginx", True, "1.1"),
        ("HTTP/2, TLS", "nginx", True, "2"),
    ):
        url, ca_file = _url(servers[server], tls=tls), str(folder / f"{server}.pem")
        by_ours = [*ours, "--http", version, *(["--ca-file", ca_file] if tls else [])]
        by_curl = [*curl, f"--http{version}", *(["--cacert", ca_file] if tls else [])]
        arms[f"{OURS}, {name}"] = partial(_by_ours, [*by_ours, url])
        arms[f"{CURL}, {name}"] = partial(_by_another, [*by_curl, url])
        if not tls:
            signed = [*by_ours, "--dataset", DATASET, "--from", url.rpartition("/")[0]]
            arms[f"{OURS}, {name}, signatures checked"] = partial(_by_ours, signed)
    url, ca_file = _url(servers["caddy"], tls=True), str(folder / "caddy.pem")
    arms[f"{OURS}, HTTP/3"] = partial(_by_ours, [*ours, "--http", "3", "--ca-file", ca_file, url])
    if (repo / CURL_CFFI).is_dir():
        path = {**os.environ, "PYTHONPATH": str(repo / CURL_CFFI)}
        for way, client in (("requests", CFFI), ("bare", f"{CFFI}, bare libcurl")):
            argv = [sys.executable, str(_CLIENT), way, url, ca_file]
            arms[f"{client}, HTTP/3"] = partial(_by_another, argv, path)
    return arms


def _url(server: WebServer, *, tls: bool) -> str:
    """Of the one file that it serves."""
    (name,) = server.files
    site = server.order.site
    return f"https://{site.tls}/{name}" if tls else f"http://{site.plain}/{name}"


def _by_ours(argv: list[str]) -> Fetched:
    text, time_s, cpu_s = _taken(argv, None)
    return Fetched(json.loads(text)["bytes"], time_s, cpu_s)


def _by_another(argv: list[str], environment: Mapping[str, str] | None = None) -> Fetched:
    text, time_s, cpu_s = _taken(argv, environment)
    return Fetched(int(text), time_s, cpu_s)


def _taken(argv: list[str], environment: Mapping[str, str] | None) -> tuple[str, float, float]:
    began_s = time.monotonic()
    with Running(SENDER_NETNS, argv, environment=environment) as client:
        ended = client.finish()
    return ended.text.strip().splitlines()[-1], time.monotonic() - began_s, ended.cpu_s


def judged(taken: Mapping[str, Sequence[Fetched]]) -> Section:
    """The section from what all rounds took; pure."""
    return by_arm(
        "A file of 1 GB to nowhere over a veth pair, one connection",
        taken,
        {
            "rate Mb/s": lambda rounds: interval([one.rate_mbps for one in rounds], ",.0f"),
            "CPU s per 100 MB": lambda rounds: interval([one.cpu_s_per_100_mb for one in rounds], ".3f"),
        },
        arms="client",
        note="Start of the program included. All check the length, and no more where nothing is said. "
        "Server (nginx; Caddy for HTTP/3) and client on a core each. curl_cffi as its users call it, as a "
        "streamed response; bare libcurl is its C code with a callback in Python for each piece. "
        "In brackets the least and the greatest round." + ("" if _of(taken, CFFI) else f" No {CFFI} here."),
        verdicts=[*_against_curl(taken), *_http3(taken)],
    )


def _of(taken: Mapping[str, Sequence[Fetched]], client: str, http: str = "HTTP/3") -> Sequence[Fetched]:
    return taken.get(f"{client}, {http}", [])


def _against_curl(taken: Mapping[str, Sequence[Fetched]]) -> Iterator[Verdict]:
    for http, least, most in (
        ("HTTP/1.1", LEAST_PLAIN_RATE, MOST_PLAIN_CPU),
        ("HTTP/1.1, TLS", 1.0, 1.0),
        ("HTTP/2, TLS", 1.0, 1.0),
    ):
        ours, curl = (_of(taken, client, http) for client in (OURS, CURL))
        rate = ratio([one.rate_mbps for one in ours], [one.rate_mbps for one in curl])
        yield at_least(f"rate against curl's, {http}", rate, least)
        yield at_most(f"CPU per 100 MB against curl's, {http}", _cpu_ratio(ours, curl), most)


def _http3(taken: Mapping[str, Sequence[Fetched]]) -> Iterator[Verdict]:
    ours, cffi, http2 = _of(taken, OURS), _of(taken, CFFI), _of(taken, OURS, "HTTP/2, TLS")
    against = _cpu_ratio(ours, cffi) if cffi else None
    yield at_most(f"CPU per 100 MB against {CFFI}'s, HTTP/3", against, MOST_HTTP3_OF_CFFI)
    own = _cpu_ratio(ours, http2)
    yield at_most("CPU per 100 MB of HTTP/3 against HTTP/2, both ours", own, MOST_HTTP3_OF_HTTP2)


def _cpu_ratio(own: Sequence[Fetched], reference: Sequence[Fetched]) -> float | None:
    return ratio([one.cpu_s_per_100_mb for one in own], [one.cpu_s_per_100_mb for one in reference])

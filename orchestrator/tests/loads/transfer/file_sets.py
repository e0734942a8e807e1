# SPDX-License-Identifier: Apache-2.0
"""Files of data sets, servers on free ports, files fetched from them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from netjoule.core import programs
from netjoule.hosts.host import LocalHost
from netjoule.loads.transfer.clients import ours
from netjoule.loads.transfer.clients.arms import CLIENTS
from netjoule.loads.transfer.clients.task import Task
from netjoule.loads.transfer.downloads import PeerDownload
from netjoule.loads.transfer.servers.server import Order, WebServer
from netjoule.loads.transfer.servers.site import Site

HERE = LocalHost("here")


def fill(files: int, dataset: str = "html-1") -> list[str]:
    """Program and arguments that write so many files of a set."""
    return ours.fill(ours.Knobs(dataset, 1, files=files), programs.find(ours.PROGRAM))


def free_ports(count: int) -> list[int]:
    """Ports that nobody has just now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def order(software: str, filled: Sequence[str], **changes: Any) -> Order:
    """A server of this host."""
    site = Site("127.0.0.1", *free_ports(2))
    return Order(**{"software": software, "site": site, "fill": filled} | changes)


@asynccontextmanager
async def serving(software: str, filled: Sequence[str]) -> AsyncIterator[WebServer]:
    """A server of this host that is up."""
    server = await WebServer.started(HERE, order(software, filled))
    try:
        yield server
    finally:
        await server.stop()


async def fetched(
    server: WebServer,
    client: str,
    filled: Sequence[str],
    *,
    http: str = "1.1",
    tls: bool = False,
    repeat: int = 1,
    timeout_s: float = 60.0,
) -> list[dict[str, Any]]:
    """Transfers of all files by a peer."""
    task = Task(server.order.site.url(tls=tls), server.files, http, tls)
    make = CLIENTS[client].invocation
    assert make is not None
    request = {
        "fill": list(filled),
        "version_argv": [CLIENTS[client].program, "--version"],
        "interface": "lo",
        "timeout_s": timeout_s,
        "quiet_s": 0.0,
    }
    download = await PeerDownload.ready(HERE, make(task), request, server, repeat=repeat)
    try:
        await download.go()
        return [dict(run) for run in await download.runs(timeout_s)]
    finally:
        await download.end()

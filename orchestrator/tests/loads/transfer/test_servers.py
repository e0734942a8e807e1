# SPDX-License-Identifier: Apache-2.0
"""Real web servers on this host: they serve all that they are given, and nothing of them stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from file_sets import HERE, fetched, fill, order, serving

from netjoule.core.errors import RunFailed
from netjoule.loads.transfer.servers.server import SOFTWARE, WebServer

MANY = fill(1500)
FEW = fill(3)
SPOKEN = [
    (name, http, tls)
    for name, one in SOFTWARE.items()
    for http in one.http_versions
    for tls in (False, True)
    if http != "3" and (tls or http == "1.1")
]


def listening(port: int) -> bool:
    """Whether anybody listens on a port of TCP."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and theirs."""
    children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(one for child in children for one in descendants(child))]


def of_server(server: WebServer) -> list[int]:
    """Processes of a web server, without what supervises it."""
    name = SOFTWARE[server.order.software].recipe(server.order.site).program
    started = descendants(os.getpid())
    return [pid for pid in started if Path(f"/proc/{pid}/comm").read_text().strip() == name]


@pytest.mark.parametrize(("software", "http", "tls"), SPOKEN)
def test_1500_files_arrive_whole(software: str, http: str, tls: bool) -> None:
    async def run() -> None:
        async with serving(software, MANY) as server:
            assert len(server.files) == 1500
            (told,) = await fetched(server, "curl-Z-best", MANY, http=http, tls=tls)
            assert (told["files_verified_n"], told["failures"]) == (1500, [])
            assert told["bytes"] == sum(server.files.values())
            assert told["http_version"] == http
            # Apache closes a connection after 100 requests; how many more curl opens, haste decides.
            least = 15 if (software, http) == ("apache", "1.1") else 1
            assert least <= told["connections_opened_n"] <= 1500

    asyncio.run(run())


@pytest.mark.parametrize("software", SOFTWARE)
def test_a_server_tells_its_version_and_ends_without_leaving_anything(software: str) -> None:
    async def run() -> None:
        others = descendants(os.getpid())
        async with serving(software, FEW) as server:
            site = server.order.site
            assert server.version[0].isdigit()
            assert "BEGIN CERTIFICATE" in server.ca_pem
            assert listening(site.http_port) and listening(site.https_port)
            pids = set(descendants(os.getpid())) - set(others)
            assert pids
            assert "netjoule" not in Path("/proc/self/mounts").read_text()
        assert not listening(site.http_port)
        assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []

    asyncio.run(run())


@pytest.mark.parametrize("software", SOFTWARE)
def test_a_server_runs_as_an_ordinary_user(software: str) -> None:
    async def run() -> None:
        async with serving(software, FEW) as server:
            pids = of_server(server)
            assert pids
            assert all(Path(f"/proc/{pid}").stat().st_uid != 0 for pid in pids)

    asyncio.run(run())


@pytest.mark.parametrize("software", SOFTWARE)
def test_a_server_that_is_killed_is_noticed_and_can_be_started_again(software: str) -> None:
    async def run() -> None:
        wanted = order(software, FEW)
        server = await WebServer.started(HERE, wanted)
        os.kill(min(of_server(server)), signal.SIGKILL)
        await asyncio.wait_for(asyncio.shield(server.ended), 10)
        await server.stop()
        assert not listening(wanted.site.http_port)
        again = await WebServer.started(HERE, wanted)
        try:
            (told,) = await fetched(again, "curl", FEW)
            assert told["files_verified_n"] == 3
        finally:
            await again.stop()

    asyncio.run(run())


def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    async def run() -> None:
        async with serving("nginx", FEW) as server:
            with pytest.raises(RunFailed, match=r"the server ended with code 1: .*in use") as caught:
                await WebServer.started(HERE, order("nginx", FEW, site=server.order.site))
            assert caught.value.code == "web_server_failed"

    asyncio.run(run())


def test_the_wrong_certificate_and_a_file_that_is_not_there_are_told() -> None:
    async def run() -> None:
        async with serving("caddy", FEW) as server, serving("nginx", FEW) as other:
            own, server.ca_pem = server.ca_pem, other.ca_pem
            with pytest.raises(RunFailed, match="curl ended with code 60") as caught:
                await fetched(server, "curl", FEW, tls=True)
            server.ca_pem = own
            assert caught.value.code == "transfer_failed"
            server.files["none.bin"] = 9
            with pytest.raises(RunFailed, match=r"curl ended with code 22: .*404"):
                await fetched(server, "curl", FEW)

    asyncio.run(run())


@pytest.mark.parametrize("software", SOFTWARE)
def test_ranges_are_served_with_a_strong_tag(software: str) -> None:
    async def run() -> str:
        async with serving(software, FEW) as server:
            url = f"http://{server.order.site.plain}/{next(iter(server.files))}"
            argv = ["curl", "-q", "-s", "-D", "-", "-o", "/dev/null", "-r", "0-9", url]
            return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    headers = asyncio.run(run()).lower()
    assert "206 partial content" in headers
    assert "content-range: bytes 0-9/" in headers
    assert 'etag: "' in headers
    assert "content-encoding" not in headers


@pytest.mark.netns
@pytest.mark.parametrize("software", SOFTWARE)
def test_the_route_to_the_client_has_the_congestion_control_while_the_server_is_up(software: str) -> None:
    enter = "import sys; from netjoule.hosts.sandbox import run_inside; sys.exit(run_inside(sys.argv[1:]))"
    script = Path(__file__).with_name("pinned_route.py")
    argv = [sys.executable, "-c", enter, sys.executable, script, software]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    assert [route.split()[-2:] for route in told["up"]] == [["congctl", "reno"]]
    assert told["after"] == []

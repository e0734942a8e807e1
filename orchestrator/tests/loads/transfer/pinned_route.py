# SPDX-License-Identifier: Apache-2.0
"""Inside a sandbox: a server pins the congestion control of its route to a client. Prints the routes."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from file_sets import fill

from netjoule.hosts.host import NetnsHost
from netjoule.loads.transfer.servers.server import Order, WebServer
from netjoule.loads.transfer.servers.site import Site


def ip(*argv: str) -> str:
    return subprocess.run(["ip", *argv], check=True, capture_output=True, text=True).stdout


def routes() -> list[str]:
    return [line.strip() for line in ip("-n", "server", "route").splitlines() if line.startswith("10.9.0.2")]


async def main() -> None:
    for name in ("client", "server"):
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
    ip("link", "add", "veth", "netns", "client", "type", "veth", "peer", "name", "veth", "netns", "server")
    for name, address in (("client", "10.9.0.2/24"), ("server", "10.9.0.1/24")):
        ip("-n", name, "link", "set", "veth", "up")
        ip("-n", name, "address", "add", address, "dev", "veth")
    host = NetnsHost("server", Path("/run/netns/server"))
    site = Site("10.9.0.1", 8080, 8443)
    wanted = Order(sys.argv[1], site, fill(1), client="10.9.0.2", congestion_control="reno")
    server = await WebServer.started(host, wanted)
    up = routes()
    await server.stop()
    print(json.dumps({"up": up, "after": routes()}))


asyncio.run(main())

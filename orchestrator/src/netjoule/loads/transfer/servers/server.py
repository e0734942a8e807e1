# SPDX-License-Identifier: Apache-2.0
"""A web server that is up on a host: started, ready, told of its version and certificate, ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Process, ProcessEnded, Server
from netjoule.hosts.python_program import python_program
from netjoule.loads.transfer.host_programs import located, version_in
from netjoule.loads.transfer.private_folder import FOLDER, within
from netjoule.loads.transfer.servers import apache, caddy, nginx, supervisor
from netjoule.loads.transfer.servers.site import NAME, Recipe, Site

FOLDER_BYTES = 256 * 2**20
"""Of sparse files a MiB takes 4 KiB: enough for 60 GB of them."""
READY_TIMEOUT_S = supervisor.READY_S + 40.0
"""Of the supervisor: beside the server's start it makes the files and the certificates."""
FAILED = "web_server_failed"


@dataclass(frozen=True, slots=True)
class Software:
    """A web server that there is.

    Attributes:
        http_versions: that it speaks with TLS; all speak plain HTTP/1.1.
        http_port: where it listens in a campaign, a port of its own: all may be up at once.
        https_port: likewise.
    """

    recipe: Callable[[Site], Recipe]
    http_versions: Sequence[str]
    http_port: int
    https_port: int


SOFTWARE: Mapping[str, Software] = {
    "apache": Software(apache.recipe, apache.HTTP_VERSIONS, 8080, 8443),
    "nginx": Software(nginx.recipe, nginx.HTTP_VERSIONS, 9080, 9443),
    "caddy": Software(caddy.recipe, caddy.HTTP_VERSIONS, 7080, 7443),
}
"""By name, which is a value of the factor server."""


@dataclass(frozen=True, slots=True)
class Order:
    """A web server that is wanted.

    Attributes:
        software: by its name in SOFTWARE.
        fill: program and arguments that write what is served, and manifest.json, into its working directory.
        client: address that responses go to, whose route has the congestion control; "" pins nothing.
    """

    software: str
    site: Site
    fill: Sequence[str]
    client: str = ""
    congestion_control: str = ""

    def request(self, program: str, recipe: Recipe) -> dict[str, Any]:
        """What supervisor.py is told; `program`: path of the server's, or its name."""
        pinned = {"to": self.client, "congestion_control": self.congestion_control}
        return {
            "folder": FOLDER,
            "fill": list(self.fill),
            "configuration": dict(recipe.configuration),
            "names": [NAME, self.site.address],
            "argv": [program, *recipe.arguments],
            "version_argv": [program, *recipe.version_arguments],
            "environment": dict(recipe.environment),
            "address": self.site.address,
            "http_port": self.site.http_port,
            "https_port": self.site.https_port,
            "route": pinned if self.client and self.congestion_control else None,
        }


class WebServer(Server):
    """A web server that answers.

    Attributes:
        order: that it was started by.
        version: of its software.
        ca_pem: certificate of the test CA that its own is of.
        files: bytes of each file that it serves, by name, in the order of the manifest.
    """

    def __init__(self, process: Process, order: Order, ready: Mapping[str, Any]) -> None:
        """`ready`: the supervisor's event."""
        super().__init__(process)
        self.order = order
        self.version = version_in(ready["version"])
        self.ca_pem = str(ready["ca_pem"])
        self.files = {str(file["name"]): int(file["size_bytes"]) for file in ready["files"]}

    @classmethod
    async def started(cls, host: Host, order: Order) -> WebServer:
        """Start it; return when it answers. Raises RunFailed when it does not, HostLacks without it."""
        recipe = SOFTWARE[order.software].recipe(order.site)
        argv = within(FOLDER_BYTES, await python_program(host, supervisor))
        program = located(host, recipe.program)
        process = await host.start(argv, name=f"the web server {order.software}")
        try:
            await process.write_line(json.dumps(order.request(program, recipe)))
            ready = await process.expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await process.stop()
            if isinstance(error, ProcessEnded):
                raise RunFailed(error.what, where=f"host {host.name}", code=error.code or FAILED) from error
            raise
        return cls(process, order, ready)

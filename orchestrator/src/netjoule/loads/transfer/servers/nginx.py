# SPDX-License-Identifier: Apache-2.0
"""nginx as Debian configures it, but that it compresses nothing, logs no access, knows no file types."""

from __future__ import annotations

from netjoule.loads.transfer.private_folder import FOLDER
from netjoule.loads.transfer.servers.site import CERTIFICATE, FILES, KEY, STATE, Recipe, Site

HTTP_VERSIONS = ("1.1", "2")


def recipe(site: Site) -> Recipe:
    """How it is started."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"  {kind}_temp_path {STATE}/{kind};" for kind in kinds)
    configuration = f"""\
daemon off;
worker_processes auto;
pid {STATE}/nginx.pid;
error_log {STATE}/error.log;
events {{
  worker_connections 768;
}}
http {{
  sendfile on;
  tcp_nopush on;
  default_type application/octet-stream;
  access_log off;
{temporary}
  root {FILES};
  server {{
    listen {site.plain};
  }}
  server {{
    listen {site.tls} ssl http2;
    ssl_certificate {CERTIFICATE};
    ssl_certificate_key {KEY};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
  }}
}}
"""
    return Recipe(
        program="nginx",
        # Its error log from the first line on: the one that it is built with belongs to root.
        arguments=("-e", f"{STATE}/error.log", "-p", FOLDER, "-c", f"{FOLDER}/nginx.conf"),
        configuration={"nginx.conf": configuration},
        version_arguments=("-v",),
    )

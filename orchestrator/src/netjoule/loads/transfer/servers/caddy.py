# SPDX-License-Identifier: Apache-2.0
"""Caddy with a file server and nothing else: no administration port, no certificates of its own making."""

from __future__ import annotations

import json
from typing import Any

from netjoule.loads.transfer.private_folder import FOLDER
from netjoule.loads.transfer.servers.site import CERTIFICATE, FILES, KEY, STATE, Recipe, Site

HTTP_VERSIONS = ("1.1", "2", "3")


def recipe(site: Site) -> Recipe:
    """How it is started."""
    serve = {
        "automatic_https": {"disable": True},
        "routes": [{"handle": [{"handler": "file_server", "root": FILES}]}],
    }
    configuration: dict[str, Any] = {
        "admin": {"disabled": True, "config": {"persist": False}},
        "storage": {"module": "file_system", "root": STATE},
        "logging": {"logs": {"default": {"level": "WARN"}}},
        "apps": {
            "http": {
                "servers": {
                    "plain": {**serve, "listen": [site.plain], "protocols": ["h1"]},
                    "tls": {
                        **serve,
                        "listen": [site.tls],
                        "protocols": ["h1", "h2", "h3"],
                        "tls_connection_policies": [{}],
                    },
                }
            },
            "tls": {"certificates": {"load_files": [{"certificate": CERTIFICATE, "key": KEY}]}},
        },
    }
    return Recipe(
        program="caddy",
        arguments=("run", "--config", f"{FOLDER}/caddy.json"),
        configuration={"caddy.json": json.dumps(configuration, indent=2)},
        version_arguments=("version",),
        environment={"HOME": STATE, "XDG_DATA_HOME": STATE, "XDG_CONFIG_HOME": STATE},
    )

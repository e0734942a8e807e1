# SPDX-License-Identifier: Apache-2.0
"""The flow that recorded logs of other generators are taken for."""

from typing import Any

from netjoule.hosts.host import LocalHost
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.generators.base import Endpoints

HERE = LocalHost("here")
ENDS = Endpoints(HERE, HERE, "10.77.0.1", "10.79.0.1", 5301)
HOSTS = {"client": "laptop", "server": "rack"}


def spec(transport: str, **changes: Any) -> FlowSpec:
    """Half a second upwards at 3 Mb/s, unless told otherwise."""
    values: dict[str, Any] = {
        "payload_bytes": 1440,
        "offered_rate_mbps": 3.0,
        "duration_s": 0.5,
        "direction": "up",
    } | changes
    return FlowSpec(run_id="r", transport=transport, ip_version=4, seed=1, **values)

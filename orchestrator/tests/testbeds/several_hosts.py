# SPDX-License-Identifier: Apache-2.0
"""Brings an emulated testbed up in a sandbox and prints, as JSON, who is there and how far apart they are.

Arguments: topology document, folder for a campaign.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from runner_fakes import START_NS, new_campaign

from netjoule.hosts import sandbox
from netjoule.store.session import Session
from netjoule.testbeds.emulated.testbed import EmulatedTestbed
from netjoule.topology.hosts import WIRED_ROLES
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition

# A port that nobody listens on answers a SYN at once.
ROUND_TRIP = """
import socket, sys, time
best = 1e9
for _ in range(5):
    with socket.socket() as one:
        start = time.perf_counter()
        try:
            one.connect((sys.argv[1], 9))
        except ConnectionRefusedError:
            best = min(best, time.perf_counter() - start)
print(1e3 * best)
"""


async def round_trips_ms(bed: EmulatedTestbed, addresses: dict[str, str]) -> dict[str, float]:
    """Between each two hosts of which one is behind the access point, "ONE OTHER"."""
    found = {}
    for one, other in combinations(bed.hosts, 2):
        process = await bed.hosts[one].start(
            [sys.executable, "-c", ROUND_TRIP, addresses[other]], name="round trip"
        )
        found[f"{one} {other}"] = float(await process.next_line())
        await process.stop()
    return found


async def main(where: Path, out: Path) -> None:
    topology = Topology.from_document(json.loads(where.read_text()), where="test")
    with new_campaign(out, where=topology) as campaign, TemporaryDirectory(dir="/run") as folder:
        async with AsyncExitStack() as stack:
            bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), Path(folder), stack)
            await bed.bring_up()
            place = bed.place
            test, control = dict(place.test_addresses), dict(place.control_addresses)
            before_ms = await round_trips_ms(bed, test)
            asked = Condition("a", {}, "r1", 1, 1, testbed={"path.origin-a": "far"})
            told = {
                "roles": {
                    role: [host.name for host in place.hosts(role)] for role in ("client", *WIRED_ROLES)
                },
                "before_ms": before_ms,
                "in_force": await bed.apply(asked),
                "after_ms": await round_trips_ms(bed, test),
                "control_ms": await round_trips_ms(bed, control),
            }
    print(json.dumps(told))


if __name__ == "__main__":
    if sandbox.inside() is None:
        sys.exit(sandbox.run_inside([sys.executable, *sys.argv]))
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))

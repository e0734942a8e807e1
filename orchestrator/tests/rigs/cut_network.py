# SPDX-License-Identifier: Apache-2.0
"""A campaign on two rigs, one of them behind a cable that is cut for longer than a worker may be silent.

`python cut_network.py FOLDER` runs it in a sandbox: scheduler, campaign and rig1 on one host, rig2 on
another, TLS between them. The rack is slow, so that its block is not at its end when another takes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
sys.path.insert(0, str(Path(__file__).parents[3] / "scripts" / "bench"))

import sshd  # noqa: E402
from test_cluster import TTL_S, by_hand, flying, made_certificate  # noqa: E402

from netjoule.hosts import sandbox  # noqa: E402

HERE, THERE = "192.0.2.1", "192.0.2.2"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def lay_cable() -> None:
    """Between this host and the namespace rack."""
    ip("netns", "add", "rack")
    ip("link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", "rack")
    for inside, address in (((), HERE), (("-n", "rack"), THERE)):
        ip(*inside, "address", "add", f"{address}/24", "dev", "cable")
        ip(*inside, "link", "set", "cable", "up")
        ip(*inside, "link", "set", "lo", "up")


def wait_for(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def cut(campaign: Path) -> None:
    """As soon as the campaign knows that the rack has a block, and until another has taken it."""
    status = campaign / "status.csv"
    wait_for(lambda: status.exists() and ",rig2," in status.read_text())
    ip("link", "set", "cable", "down")
    wait_for(lambda: list(campaign.glob(".blocks/*-2")))
    ip("link", "set", "cable", "up")


def main(folder: Path) -> None:
    """Tell it."""
    os.environ |= made_certificate(folder)
    os.environ |= {"NETJOULE_LOCKS": str(folder), "FAKE_RUN_S": "0.5"}
    os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = f"{TTL_S:g}s"
    lay_cable()
    address = f"tls://{HERE}:{sshd.free_port()}"
    there = (THERE, ("ip", "netns", "exec", "rack", "env", "FAKE_RUN_S=20"))
    with by_hand(address, {"rig2": there}), flying(folder / "c", 4, address) as campaign:
        assert campaign.stdout is not None
        campaign.stdout.readline()
        cut(folder / "c")
        said, _ = campaign.communicate(timeout=120)
    sys.stdout.write(said)
    sys.exit(campaign.returncode)


if __name__ == "__main__":
    if sandbox.inside() is None:
        sys.exit(sandbox.run_inside([sys.executable, *sys.argv]))
    main(Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a raw veth pair, in a sandbox that ends with this process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

SENDER_NETNS, RECEIVER_NETNS = "sender", "receiver"
RECEIVER_ADDRESS = "10.78.0.2"
_INSIDE = "NETJOULE_BENCH_INSIDE"


@dataclass(frozen=True)
class Route:
    """From one network namespace to an address in another."""

    sender_netns: str
    receiver_netns: str
    receiver_address: str


VETH = Route(SENDER_NETNS, RECEIVER_NETNS, RECEIVER_ADDRESS)


def enter_sandbox(argv: list[str]) -> None:
    """Run the same command again in new mount, PID and network namespaces; nothing outlives it.

    Without root a user namespace comes on top (``unshare -Ur``).
    """
    if os.environ.get(_INSIDE):
        return
    user = [] if os.geteuid() == 0 else ["-Ur"]
    command = ["unshare", *user, "-nmpf", "--kill-child", "--mount-proc", sys.executable, *argv]
    os.execvpe("unshare", command, os.environ | {_INSIDE: "1"})


def make_pair() -> None:
    """Build both namespaces with one veth end each, addresses set and links up."""
    _run("mount -t tmpfs tmpfs /run")
    for name in (SENDER_NETNS, RECEIVER_NETNS):
        _run(f"ip netns add {name}")
        _run(f"ip -n {name} link set lo up")
    _run(f"ip link add va netns {SENDER_NETNS} type veth peer name vb netns {RECEIVER_NETNS}")
    _run(f"ip -n {SENDER_NETNS} addr add 10.78.0.1/24 dev va")
    _run(f"ip -n {RECEIVER_NETNS} addr add {RECEIVER_ADDRESS}/24 dev vb")
    _run(f"ip -n {SENDER_NETNS} link set va up")
    _run(f"ip -n {RECEIVER_NETNS} link set vb up")


def inside(netns: str, command: list[str]) -> list[str]:
    """``command`` as it is run in ``netns``."""
    return ["ip", "netns", "exec", netns, *command]


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)

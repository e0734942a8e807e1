# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a raw veth pair, in a sandbox that ends with this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SENDER_NETNS, RECEIVER_NETNS = "sender", "receiver"
RECEIVER_ADDRESS = "10.78.0.2"
RECEIVER_DEVICE = "vb"
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

    Without root a user namespace comes on top (``unshare -Ur``). The kernel ends every process of a PID
    namespace with its first one, and namespaces with their last process, so this holds even for SIGKILL.
    """
    if os.environ.get(_INSIDE):
        # The first process of a PID namespace ignores signals that it has no handler for.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return
    user = [] if os.geteuid() == 0 else ["-Ur"]
    command = ["unshare", *user, "-nmpf", "--kill-child", "--mount-proc", sys.executable, *argv]
    os.execvpe("unshare", command, os.environ | {_INSIDE: "1"})


@contextmanager
def pair() -> Iterator[None]:
    """Both namespaces with one veth end each, addresses set and links up; deleted at the end."""
    _run("mount -t tmpfs tmpfs /run")
    names = (SENDER_NETNS, RECEIVER_NETNS)
    try:
        for name in names:
            _run(f"ip netns add {name}")
            _run(f"ip -n {name} link set lo up")
        peer = f"peer name {RECEIVER_DEVICE} netns {RECEIVER_NETNS}"
        _run(f"ip link add va netns {SENDER_NETNS} type veth {peer}")
        _run(f"ip -n {SENDER_NETNS} addr add 10.78.0.1/24 dev va")
        _run(f"ip -n {RECEIVER_NETNS} addr add {RECEIVER_ADDRESS}/24 dev {RECEIVER_DEVICE}")
        _run(f"ip -n {SENDER_NETNS} link set va up")
        _run(f"ip -n {RECEIVER_NETNS} link set {RECEIVER_DEVICE} up")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


@contextmanager
def software_segmentation() -> Iterator[None]:
    """Meanwhile the sender's device cuts no UDP trains: the kernel does it before it hands them over."""
    _segmentation("off")
    try:
        yield
    finally:
        _segmentation("on")


def _segmentation(state: str) -> None:
    command = ["ethtool", "-K", "va", "tx-udp-segmentation", state]
    subprocess.run(inside(SENDER_NETNS, command), check=True, stdout=subprocess.DEVNULL)


def inside(netns: str, command: list[str]) -> list[str]:
    """``command`` as it is run in ``netns``."""
    return ["ip", "netns", "exec", netns, *command]


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)

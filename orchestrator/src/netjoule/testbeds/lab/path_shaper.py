# SPDX-License-Identifier: Apache-2.0
"""Runs on a lab's server: what it sends to the client gets a path's delay, loss and rate, and loses them.

One file of Python 3.9 and its library, copied to the host. One JSON object a line. On stdin first {to,
controller}, addresses of the client and of who controls, then {commands} for each path. On stdout ``ready``
with the interface, which then has a queue of ours, ``path`` when commands were run, or ``error`` and the end.
When stdin ends, or at SIGTERM, the interface gets back the kernel's own queue; the host's keeper sees to that
when its controller is gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

HANDLE = "4e4a:"
_SBIN = "/usr/sbin:/sbin"  # where an ordinary user's PATH does not lead


class Failed(Exception):
    """What went wrong, in a sentence."""


def run(*argv: str) -> str:
    """What a short program prints. Raises Failed with the last line of what it complains of."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise Failed(f"cannot start {argv[0]}: {error.strerror}; install the package iproute2") from error
    if done.returncode:
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["without an error message"])[
            -1
        ]
        raise Failed(f"'{' '.join(argv)}' ended with code {done.returncode}: {last}")
    return done.stdout.decode("utf-8", "replace")


def device_to(address: str) -> str:
    """Interface by which packets to an address leave."""
    return str(json.loads(run("ip", "-json", "route", "get", address))[0]["dev"])


def take(device: str) -> None:
    """Put a queue of ours that does nothing on an interface. Raises Failed where that cannot be done."""
    for queue in json.loads(run("tc", "-json", "qdisc", "show", "dev", device) or "[]"):
        handle = queue["handle"] if queue.get("root") else "0:"  # 0: is the kernel's own
        if handle == HANDLE:  # of one that was killed
            give_back(device)
        elif handle != "0:":
            remedy = f"take it away ('tc qdisc del dev {device} root'), or leave path out"
            raise Failed(f"{device} has a queue of its own already ({queue['kind']} {handle}): {remedy}")
    try:
        run("tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "netem", "limit", "100000")
    except Failed as error:
        raise Failed(
            f"its kernel cannot delay packets ({error}): 'modprobe sch_netem' where it has that module,"
            " or leave path out"
        ) from error


def give_back(device: str) -> None:
    """The kernel's own queue again."""
    run("tc", "qdisc", "del", "dev", device, "root")


def say(event: str, **fields: Any) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def shape() -> None:
    """Set each path that stdin tells. Raises Failed."""
    first = json.loads(sys.stdin.readline())
    device = device_to(first["to"])
    if device == device_to(first["controller"]):
        raise Failed(f"{device} leads to the controller, too: give the control network another interface")
    take(device)
    try:
        say("ready", device=device)
        for line in sys.stdin:
            for command in json.loads(line)["commands"]:
                run(*command)
            say("path")
    finally:
        give_back(device)


def main() -> int:
    """Shape until stdin ends; the exit code."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), _SBIN])
    try:
        shape()
    except Failed as error:
        say("error", message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

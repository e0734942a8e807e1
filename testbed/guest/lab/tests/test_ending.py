# SPDX-License-Identifier: Apache-2.0
"""However `netjoule guest lab` is ended, nothing of it stays: no QEMU, no port, no key."""

import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from guest_lab import PROGRAMS

from netjoule.testbeds.guest.lab import ONE_TIME, TOPOLOGY

STARTED_WITHIN_S = 120.0
ENDS_WITHIN_S = 60.0


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def forwarded_port(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """A port of this host that QEMU listens on, which says that it runs."""
    ends_s = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < ends_s and process.poll() is None:
        if (folder / TOPOLOGY).exists() and (text := (folder / TOPOLOGY).read_text()):
            port = int(yaml.safe_load(text)["hosts"]["server"]["ssh"]["port"])
            if listening(port):
                return port
        time.sleep(0.1)
    raise AssertionError("the lab does not start; its words are above")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.guest
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, "input"])
def test_nothing_is_left(how: signal.Signals | str, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    command = [str(PROGRAMS / "netjoule"), "guest", "lab", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        port = forwarded_port(folder, process)
        (qemu,) = children(process.pid)
        ended = os.pidfd_open(qemu)
        assert process.stdin is not None
        if isinstance(how, signal.Signals):
            process.send_signal(how)
        else:
            process.stdin.close()
        code = process.wait(ENDS_WITHIN_S)
        # Readable once the process has ended.
        assert select.select([ended], [], [], ENDS_WITHIN_S)[0]
        os.close(ended)
    assert not listening(port)
    if how != signal.SIGKILL:
        assert code == 0
        assert not [name for name in ONE_TIME if (folder / name).exists()]

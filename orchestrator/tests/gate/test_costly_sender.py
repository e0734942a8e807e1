# SPDX-License-Identifier: Apache-2.0
"""The sender that costs more on purpose: each message takes so much more CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import costly_sender

# Sends itself messages and tells how long that took, and the CPU time of it.
SENDER = """
import socket, time
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
began, before = time.monotonic(), time.process_time()
for _ in range(2000):
    one.send(b"x"); other.recv(9)
    one.sendmsg([b"x"]); other.recv(9)
print(time.monotonic() - began, time.process_time() - before)
"""


def took_s(**environment: str) -> tuple[float, float]:
    words = [sys.executable, "-IS", "-c", SENDER]
    said = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=True)
    took, cpu = map(float, said.stdout.split())
    return took, cpu


def test_each_message_takes_so_much_more(tmp_path: Path) -> None:
    library = costly_sender.made(tmp_path, 100_000)
    assert took_s()[1] < 0.2  # of 4,000 messages
    took, cpu = took_s(LD_PRELOAD=str(library))
    assert took >= 0.4
    assert 0.2 < cpu < 1.0  # less where other work has had the core meanwhile: the sender goes by the clock

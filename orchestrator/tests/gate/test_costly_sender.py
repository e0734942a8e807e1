# SPDX-License-Identifier: Apache-2.0
"""The sender that costs more on purpose: each message takes so much more CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import costly_sender

# Sends itself messages and tells the CPU time of it.
SENDER = """
import socket, time
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
before = time.process_time()
for _ in range(2000):
    one.send(b"x"); other.recv(9)
    one.sendmsg([b"x"]); other.recv(9)
print(time.process_time() - before)
"""


def cpu_s(**environment: str) -> float:
    words = [sys.executable, "-IS", "-c", SENDER]
    said = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=True)
    return float(said.stdout)


def test_each_message_takes_so_much_more(tmp_path: Path) -> None:
    library = costly_sender.made(tmp_path, 100_000)
    assert cpu_s() < 0.2  # of 4,000 messages
    assert 0.4 <= cpu_s(LD_PRELOAD=str(library)) < 1.0

# SPDX-License-Identifier: Apache-2.0
"""Runs a shell command in a process group that ends with whoever started this program, however that ends.

`python -m netjoule.gate.build_command FD COMMAND`: FD is the reading end of a pipe whose other end the
starter holds. Output goes where this program's goes; the exit code is the command's, 128 + n after signal n.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

KILLED = 128 + signal.SIGKILL


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _watch(lifeline: int, group: int) -> None:
    """End the command when the starter's end closes."""
    os.read(lifeline, 1)
    _end(group)


def main(lifeline: int, command: str) -> int:
    """Run it to its end; nothing that it started goes on behind it."""
    child = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, process_group=0)
    threading.Thread(target=_watch, args=(lifeline, child.pid), daemon=True).start()
    code = child.wait()
    _end(child.pid)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))

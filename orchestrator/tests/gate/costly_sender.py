# SPDX-License-Identifier: Apache-2.0
"""A sender that costs more than the real one, on purpose: the product has no switch for it.

`made(folder, share)` writes a program that stands in for netjoule-traffic. It becomes the real one; beside a
sender there is then a process that uses, while the sender uses CPU time, `share` of it on top, in the same
network namespace, where the emulated device of form cpu finds it. Nothing is used while the sender waits.
"""

from __future__ import annotations

import sys
from pathlib import Path

from netjoule.core import programs

SHARE_OF_5_PERCENT = 0.065
"""Of the sender's CPU time: at 64 B and 30 Mb/s on laptop-cpu four fifths of E.

Nine blocks of the workload gate on a busy host of two cores: 6.0 % (0.0 to 12.3) more E than the real one;
0.306 W (standard error 0.023) of 5.77 W, which is 5.3 %, at equal CPU time of the senders.
"""

_PROGRAM = '''#!{python} -ISE
import ctypes, glob, os, signal, sys, time

SHARE, REAL = {share!r}, {real!r}
LOOK_S, WAITING_S = 0.01, 0.2


def used_s(pid):
    """CPU time of all threads of a process."""
    total = 0
    for file in glob.glob("/proc/%d/task/*/schedstat" % pid):
        try:
            with open(file) as opened:
                total += int(opened.read().split()[0])
        except OSError:
            pass
    return total * 1e-9


def burn_beside(sender):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the sender
    os.closerange(0, 1024)
    os.nice(19)  # what the sender is due comes first
    seen, owed = used_s(sender), 0.0
    while os.getppid() == sender:
        now = used_s(sender)
        used, seen = now - seen, now
        own = time.process_time()
        owed = min(owed + SHARE * used, 1.0)
        while time.process_time() - own < owed:
            pass
        owed -= time.process_time() - own
        time.sleep(LOOK_S if used > 1e-3 else WAITING_S)


if sys.argv[1:2] == ["send"]:
    sender = os.getpid()
    if os.fork() == 0:
        try:
            burn_beside(sender)
        finally:
            os._exit(0)
os.execv(REAL, [REAL, *sys.argv[1:]])
'''


def made(folder: Path, share: float = SHARE_OF_5_PERCENT) -> Path:
    """Write the program into a folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "netjoule-traffic"
    real = programs.find("netjoule-traffic")
    path.write_text(_PROGRAM.format(python=sys.executable, share=share, real=real))
    path.chmod(0o755)
    return path

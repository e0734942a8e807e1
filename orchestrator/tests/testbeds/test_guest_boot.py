# SPDX-License-Identifier: Apache-2.0
"""Real boots: `make test-guest`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

NETJOULE = (sys.executable, "-m", "netjoule")
LIMIT_S = 400


def guest(*words: str, cwd: Path | None = None, text: bool = True) -> subprocess.CompletedProcess:
    command = [*NETJOULE, "guest", "run", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=text, timeout=LIMIT_S, check=False)


LOOK_AROUND = r"""
pwd
echo to-stderr >&2
echo inside >shared/from-guest
echo changed >../outside-file
cat ../outside-file
modprobe dccp_ipv4 dccp_ipv6 && grep -q DCCP /proc/net/protocols && echo dccp
modprobe -a sch_netem mac80211_hwsim && ls /sys/class/net
[ -e /lib/firmware/regulatory.db ] && echo regulatory
ls /sys/class/net | grep -vxE 'lo|hwsim0|wlan[01]' | grep . && echo unexpected network
# Some of these are just being started when the command ends: neither they nor the others may hold its output.
for program in cksum md5sum sha1sum sha256sum sha512sum wc; do $program /dev/zero & done
sleep 1000 &
exit 7
"""


def test_a_command_sees_the_host_and_cannot_change_it(tmp_path):
    here = tmp_path / "here"
    (here / "shared").mkdir(parents=True)
    (tmp_path / "outside-file").write_text("as it was\n")
    ended = guest("--rw", str(here / "shared"), "--", "sh", "-c", LOOK_AROUND, cwd=here)
    assert ended.returncode == 7, ended.stderr
    assert ended.stdout.split() == [
        str(here),
        "changed",
        "dccp",
        "hwsim0",
        "lo",
        "wlan0",
        "wlan1",
        "regulatory",
    ]
    assert ended.stderr.splitlines()[-1] == "to-stderr"
    assert (here / "shared" / "from-guest").read_text() == "inside\n"
    assert (tmp_path / "outside-file").read_text() == "as it was\n"


def test_output_is_binary_and_whole_and_a_signal_is_an_exit_code(tmp_path):
    every_byte = bytes(range(256)) * 4096
    (tmp_path / "bytes").write_bytes(every_byte)
    ended = guest("--", "sh", "-c", "cat bytes; kill -KILL $$", cwd=tmp_path, text=False)
    assert ended.returncode == 128 + signal.SIGKILL, ended.stderr
    assert ended.stdout == every_byte


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    ended = guest("--timeout", "15", "--", "sh", "-c", "echo begun; sleep 1000", cwd=tmp_path)
    assert ended.returncode == 124
    assert ended.stdout == "begun\n"
    assert "did not end within 15 s" in ended.stderr


def machines_of(parent: int) -> list[int]:
    """QEMU processes that were started by a process."""
    listed = subprocess.run(
        ["ps", "--ppid", str(parent), "-o", "pid=,comm="], capture_output=True, text=True, check=False
    ).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "qemu" in line]


def wait_for(what, limit_s: float = 60.0):
    end_s = time.monotonic() + limit_s
    while not (found := what()):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_run_that_is_stopped(tmp_path, how):
    before = set(Path("/tmp").iterdir())
    command = [*NETJOULE, "guest", "run", "--accel", "tcg", "--", "sleep", "1000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as ours:
        (machine,) = wait_for(lambda: machines_of(ours.pid))
        os.kill(ours.pid, how)
        assert ours.wait(30) != 0
    wait_for(lambda: not Path(f"/proc/{machine}").exists())
    left = {path.name for path in set(Path("/tmp").iterdir()) - before if "netjoule" in path.name}
    assert left == set()
    assert list(tmp_path.iterdir()) == []


REAL_FLOWS = r"""
modprobe -a sctp dccp_ipv4 dccp_ipv6
exec "$1" -B -m pytest -p no:cacheprovider -k real_flow -rs orchestrator/tests/loads/test_generators_logs.py
"""


def test_other_generators_flow_on_a_kernel_with_sctp_and_dccp():
    here = Path(__file__).parents[3]
    ended = guest("--memory", "1536", "--", "sh", "-c", REAL_FLOWS, "sh", sys.executable, cwd=here)
    assert ended.returncode == 0, ended.stdout
    assert "SKIPPED" not in ended.stdout

# SPDX-License-Identifier: Apache-2.0
"""What a lab's controller may go through, told in one campaign. Runs inside `two_host_lab.py`.

While the first flow is under way the SSH connections break, and a second campaign asks for the hosts; after
its result the controller is killed, other commands ask for the hosts, their governor is changed, and the
campaign is resumed. FOLDER/story.json tells what was seen.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tiny_campaign import netjoule
from two_host_lab import RECORD, provisioned

FLOWING_PACKETS = 200


def sessions(namespace: str) -> list[int]:
    """sshd's processes that serve a connection there."""
    return [pid for pid, line in programs(namespace).items() if "sshd: " in line and "listener" not in line]


def programs(namespace: str) -> dict[int, str]:
    """Command lines of what runs there."""
    said = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    lines = {}
    for pid in map(int, said.stdout.split()):
        with contextlib.suppress(FileNotFoundError):
            lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return lines


def told(campaign: "subprocess.Popen[str]", event: str, **fields: str) -> dict[str, Any]:
    """The next event of this kind that the campaign tells."""
    assert campaign.stdout is not None
    for line in campaign.stdout:
        said = json.loads(line)
        if said.get("event") == event and fields.items() <= said.items():
            return dict(said)
    raise AssertionError(f"the campaign ended with {campaign.wait()} before it said {event}")


def wait_for_traffic() -> None:
    """Return in the middle of a flow."""
    words = ["ip", "-n", "client", "-stats", "-json", "link", "show", "cable"]
    while True:
        said = subprocess.run(words, capture_output=True, check=True)
        if json.loads(said.stdout)[0]["stats64"]["tx"]["packets"] > FLOWING_PACKETS:
            return
        time.sleep(0.05)


def seen(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    return {"code": done.returncode, "said": done.stderr}


def main(folder: Path) -> None:
    run = ["run", str(folder / "workload.yaml"), "--testbed", str(folder / "lab.yaml"), "--no-verify"]
    out = folder / "campaign"
    argv = [sys.executable, "-m", "netjoule", *run, "--out", str(out), "--seed", "1", "--json"]
    story: dict[str, Any] = {}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as campaign:
        told(campaign, "run_started")
        wait_for_traffic()
        broken = [*sessions("client"), *sessions("server")]
        for pid in broken:
            os.kill(pid, signal.SIGKILL)
        story["broken_connections"] = len(broken)
        second = [*run[:-1], "--out", str(folder / "second")]  # one that would compare the hosts
        story["others"] = {"run": seen(netjoule(*second))}
        story["first_result"] = told(campaign, "run_result")
        campaign.send_signal(signal.SIGKILL)
    lab = ["--testbed", str(folder / "lab.yaml")]
    story["others"]["doctor"] = seen(netjoule("doctor", *lab))
    story["others"]["provision"] = seen(netjoule("provision", "--limit", "client", *lab))
    provisioned(RECORD | {"governor": "powersave"})
    resumed = netjoule("resume", str(out), "--no-verify", "--json")
    story["resumed"] = seen(resumed)
    checked = netjoule("check", str(out))
    story["checked"] = {"code": checked.returncode, "said": checked.stdout}
    of_lab = ("sshd", "counted_power.py")
    story["left"] = [
        line
        for name in ("client", "server")
        for line in programs(name).values()
        if not any(program in line for program in of_lab)
    ]
    (folder / "story.json").write_text(json.dumps(story))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

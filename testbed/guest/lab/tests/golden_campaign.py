# SPDX-License-Identifier: Apache-2.0
"""The campaign of results/golden/guest-hwsim: provisioned, run and analysed by the real commands.

`python golden_campaign.py OUT` boots a lab in /tmp/guest-lab and makes it anew.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guest_lab import PLAYBOOK, PROGRAMS, ROOT, GuestLab, booted
from provisioned import radios

from netjoule.core import programs
from netjoule.testbeds.guest.lab import template

NETWORK = "ht40-wpa2"
WORKLOAD = ROOT / "testbed/guest/lab/golden.yaml"
RECORD = ROOT / "testbed/guest/lab/record.yml"
FOLDER = Path("/tmp/guest-lab")  # it appears in campaign.json
SEED = 1
WATTS = 8.0
FLIGHT_S = 1800


@contextlib.contextmanager
def emulated_meter(link: Path) -> Iterator[None]:
    """A WT210 that reads a constant power until the block ends."""
    argv = [str(PROGRAMS / "netjoule-meters"), "emulate", "wt210", "--power-w", str(WATTS)]
    with subprocess.Popen([*argv, "--link", str(link)], stdout=subprocess.PIPE, text=True) as meter:
        assert meter.stdout is not None
        assert json.loads(meter.stdout.readline())["resource"]
        try:
            yield
        finally:
            meter.terminate()


def netjoule(*words: str) -> subprocess.CompletedProcess[str]:
    """The command to its end; its words pass through on stderr."""
    argv = [str(PROGRAMS / "netjoule"), *words]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, timeout=FLIGHT_S)


def provision(lab: GuestLab) -> dict[str, Any]:
    """Set the radios up, compare them with the topology, record the hosts; what it came to."""
    topology = lab.topology(NETWORK)
    facts = {}
    for name, entry, playbook in (
        ("provision", "main", PLAYBOOK),
        ("verify", "verify", PLAYBOOK),
        ("record", "main", RECORD),
    ):
        outcome = lab.play(topology, entry, playbook=playbook)
        assert not outcome.failures, outcome.failures
        facts[name] = {"tasks": outcome.tasks, "changed": outcome.changed, "seconds": round(outcome.seconds)}
    return {"network": dict(template()["networks"][NETWORK]), "plays": facts, "radio": radios(lab)}


def fly(lab: GuestLab, out: Path) -> None:
    """Run the workload, analyse it."""
    # As role traffic_host installs it; the guest sees this host's files.
    program = programs.find("netjoule-traffic")
    lab.ask("client", "ln", "-sf", str(Path(program).resolve()), "/usr/local/bin/netjoule-traffic")
    with emulated_meter(lab.folder / "client-power.tty"):
        ended = netjoule(
            "run", str(WORKLOAD), "--testbed", str(lab.folder / f"{NETWORK}.yaml"), "--out", str(out),
            "--seed", str(SEED), "--no-verify", "--json",
        )  # fmt: skip
    assert ended.returncode == 0
    assert netjoule("analyse", str(out)).returncode == 0


def trim(out: Path) -> None:
    """Drop what is there twice or can be drawn again, so that the repository can keep the rest."""
    shutil.rmtree(out / "figures", ignore_errors=True)
    (out / ".lock").unlink(missing_ok=True)
    (out / ".testbed").unlink(missing_ok=True)


def main(out: Path) -> None:
    """Boot, provision, run, trim."""
    with booted(FOLDER) as lab:
        facts = provision(lab)
        fly(lab, out)
    (out / "provisioning.json").write_text(json.dumps(facts, indent=2) + "\n")
    trim(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""The current folder may be a stranger's, of any name: no command takes code or settings from it.

All this where nothing but ASCII can be printed.
"""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer
import yaml
from lab_topology import LAB
from tiny_campaign import written

from netjoule.cli.app import app

NETJOULE = str(Path(sys.executable).with_name("netjoule"))
IMPORTED = "import pathlib; pathlib.Path({sprung!r}).touch(); raise SystemExit(99)\n"
SOURCED = "file.create('{sprung}'); quit(status = 99L)\n"
STARTED = "#!/bin/sh\ntouch '{sprung}'; exit 99\n"
TRAPS = {
    **dict.fromkeys(
        [
            *("json.py", "yaml.py", "subprocess.py", "sitecustomize.py", "usercustomize.py", "conftest.py"),
            *("netjoule/__init__.py", "netjoule_meters/__init__.py", "netjoule_contracts/__init__.py"),
            *("library/command.py", "filter_plugins/trap.py", "callback_plugins/trap.py"),
            *("inventory_plugins/trap.py", "plugins/callback/netjoule_events.py"),
        ],
        IMPORTED,
    ),
    **dict.fromkeys([".Rprofile", "Rprofile.site", "analysis-r/exec/analyse.R", "exec/analyse.R"], SOURCED),
    **dict.fromkeys(
        [
            *("Rscript", "netjoule-traffic", "netjoule-meters", "netjoule-device", "ansible-playbook", "git"),
            *("testbed/guest/init", "testbed/guest/session", "target/release/netjoule-traffic"),
        ],
        STARTED,
    ),
    ".Renviron": "R_PROFILE_USER=.Rprofile\nR_PROFILE=.Rprofile\n",
    "ansible.cfg": "[defaults]\nfilter_plugins = filter_plugins\ncallback_plugins = callback_plugins\n"
    "callbacks_enabled = trap\nlibrary = library\ninventory_plugins = inventory_plugins\n",
    "pyproject.toml": "not TOML",
    "workloads/demo.yaml": "not: a workload",
    "testbed-topology.yaml": "not: a topology",
    "ansible/site.yml": "- hosts: localhost\n  tasks: [{{command: touch {sprung}}}]\n",
}
SPRUNG = "sprung"


@pytest.fixture
def trapped(campaign_dir: Path) -> Iterator[Path]:
    """A campaign's folder, full of traps and current."""
    folder = campaign_dir.parent / "Übung" / "ä"
    folder.parent.mkdir()
    campaign_dir = campaign_dir.rename(folder)
    for name, text in TRAPS.items():
        place = campaign_dir / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(sprung=str(campaign_dir / SPRUNG)))
        place.chmod(0o755)
    return campaign_dir


def commands() -> set[str]:
    """Every command that there is, those of a group by both words."""
    group = typer.main.get_command(app)
    names = set()
    for name, one in group.commands.items():
        names |= {f"{name} {verb}" for verb in getattr(one, "commands", {})} or {name}
    return names


def start(words: Sequence[str], folder: Path, code: int) -> None:
    """Run a command to its end; nothing of the folder may have been obeyed."""
    ended = subprocess.run(
        [NETJOULE, *words],
        cwd=folder,
        env=os.environ | {"RACK_PASSPHRASE": "correct horse", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="ascii",
        timeout=600,
        check=False,
    )
    assert not (folder / SPRUNG).exists(), ended.stderr
    if ended.returncode == 4 and words[0] == "selftest":
        code = 4  # a busy host keeps no schedule
    assert ended.returncode == code, ended.stderr


def rack(folder: Path) -> None:
    """A lab none of whose hosts answers."""
    document = copy.deepcopy(LAB)
    for port, host in enumerate(document["hosts"].values(), start=1):
        host |= {"control_address": "127.0.0.1", "ssh": {"port": port}}
    (folder / "rack.yaml").write_text(yaml.safe_dump(document))


def tiny(folder: Path) -> None:
    """A campaign of seconds on the emulated testbed."""
    meter = {"meter_id": "client", "node": "client", "adapter": "wt210", "resource": "emulated"}
    settings = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.05}
    (folder / "tiny").mkdir()
    written(folder / "tiny", [meter | {"device": {"model": "constant"}, "settings": settings}])


# What each is started with, and its exit code: a trap that is obeyed may also end it otherwise.
STARTS: dict[str, tuple[list[str], int]] = {
    "analyse": (["."], 0),
    "report": (["."], 0),
    "table-iv": (["."], 4),
    "plan": (["demo", "--mde", "3%", "--pilot", "."], 4),
    "demo": (["--out", "."], 2),  # refused when R has been tried
    "check": (["."], 0),
    "compare": ([".", "."], 4),
    "history": ([], 0),
    "publish": (["."], 0),
    "import": (["iperf3.json", "--out", "imported"], 0),
    "savings": (["--campaign", "."], 4),
    "coursework start": (["new", "--golden"], 0),
    "coursework check": (["."], 4),
    "doctor": ([], 0),
    "provision": (["--testbed", "rack.yaml"], 1),
    "selftest": (["tiny/workload.yaml", "--time-s", "0.1"], 0),
    "meters": (["--help"], 0),
    "glossary": ([], 0),
    "run": (["tiny/workload.yaml", "--testbed", "tiny/topology.yaml", "--out", "tiny/out"], 0),
    "gate": (
        [
            *("--base", "MODE=a", "--head", "MODE=b", "--workload", "tiny/workload.yaml"),
            *("--testbed", "tiny/topology.yaml", "--out", "gated"),
        ],
        4,  # refused without a pilot, when R has been tried
    ),
    "resume": (["tiny/out", "--json"], 0),  # with the table that run ends with, R would be another's
    "quick": (["udp", "-b", "1M", "-t", "1", "--out", "quick", "--json"], 0),
    "measure": (["--blocks", "1", "-t", "1", "--out", "measured", "--json", "--", "true"], 0),
}
CAMPAIGNS = ("run", "resume", "quick", "measure")
NEED_A_GUEST = {"guest run", "guest lab", "guest prepare"}


def test_every_command_is_started() -> None:
    assert {*STARTS} | NEED_A_GUEST == commands()


@pytest.mark.parametrize("command", [name for name in STARTS if name not in CAMPAIGNS])
def test_nothing_of_the_current_folder_is_obeyed(trapped: Path, command: str) -> None:
    words, code = STARTS[command]
    rack(trapped)
    tiny(trapped)
    shutil.copy(next((Path(__file__).parents[1] / "data/iperf3").glob("*.json")), trapped / "iperf3.json")
    start([*command.split(), *words], trapped, code)


@pytest.mark.netns
def test_nothing_of_the_current_folder_is_obeyed_by_a_campaign(trapped: Path) -> None:
    tiny(trapped)
    for command in CAMPAIGNS:
        words, code = STARTS[command]
        start([command, *words], trapped, code)


@pytest.mark.guest
def test_nothing_of_the_current_folder_is_obeyed_by_a_guest(trapped: Path) -> None:
    start(["guest", "run", "--", "true"], trapped, 0)

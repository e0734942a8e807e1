# SPDX-License-Identifier: Apache-2.0
"""The path of a lab: the commands for a server's kernel, and the program there that runs and undoes them.

Stand-ins for ip and tc write down what they are asked. Golden commands are rewritten with
NETJOULE_REWRITE_GOLDEN=1.
"""

import copy
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_topology import LAB

from netjoule import loads
from netjoule.core.errors import UsageError
from netjoule.core.programs import shipped
from netjoule.loads import load_of
from netjoule.testbeds.lab import path_shaper
from netjoule.testbeds.lab.server_path import commands
from netjoule.topology.paths import asked_paths
from netjoule.topology.topology import Topology

GOLDEN = Path(__file__).parents[1] / "data/lab_path_commands.txt"
STUDIES = yaml.safe_load(shipped("testbed/topologies/transfers.yaml").read_text())
OURS = [{"kind": "netem", "handle": path_shaper.HANDLE, "root": True}]
KERNELS = [{"kind": "mq", "handle": "0:", "root": True}, {"kind": "fq", "handle": "0:", "parent": ":1"}]
TAKE = f"qdisc add dev eth1 root handle {path_shaper.HANDLE} netem limit 100000"
GIVE_BACK = "qdisc del dev eth1 root"


def rack(**elements: dict[str, Any]) -> dict[str, Any]:
    """A lab with these elements, and a preset of each."""
    presets = {"path": {name: {"elements": [name]} for name in elements}}
    return copy.deepcopy(LAB) | {"elements": elements, "presets": presets}


def test_the_commands_for_the_paths_of_the_studies_are_the_reviewed_ones() -> None:
    document = rack(**STUDIES["elements"])
    Topology.from_document(document, where="test")
    lines = []
    for name in STUDIES["elements"]:
        ((element,),) = asked_paths(document, {"path": name}).values()
        lines += [f"# {name}", *map(shlex.join, commands("eth1", element))]
    found = "\n".join(lines) + "\n"
    if os.environ.get("NETJOULE_REWRITE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


def test_a_path_without_rate_has_no_bottleneck_and_one_with_loss_loses() -> None:
    assert [shlex.join(one) for one in commands("eth1", {"delay_ms": 5, "loss_ratio": 0.001})] == [
        f"tc {GIVE_BACK}",
        "tc qdisc add dev eth1 root handle 4e4a: netem limit 100000 delay 10000us loss 0.1%",
    ]


def test_what_a_kernels_queues_cannot_do_is_refused() -> None:
    bursts = {"mean_burst_ms": 1, "cycle_ms": 10, "rate_mbps": 5}
    with pytest.raises(UsageError, match="a path of a lab is one element of delay, rate, loss and queue"):
        Topology.from_document(rack(own={"rate_mbps": 10, "bursts": bursts}), where="test")


def calls(folder: Path) -> list[str]:
    """What tc was asked for."""
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def test_flows_which_may_go_the_other_way_get_no_path_of_a_lab(tmp_path: Path) -> None:
    workload = yaml.safe_load(shipped("workloads/flow/demo.yaml").read_text())
    workload["factors"]["path"] = [{"rtt_ms": 59}]
    file = tmp_path / "flows.yaml"
    file.write_text(yaml.safe_dump(workload))
    load = load_of(loads.read(file), Topology.from_document(copy.deepcopy(LAB), where="test"))
    with pytest.raises(UsageError, match="a lab's server delays what it sends, and flows may go"):
        load.require_fit()


def started(folder: Path, tc: str, queues: Any) -> "subprocess.Popen[str]":
    """The program between stand-ins; `tc`: shell, after what is asked is written down."""
    (folder / "queues").write_text(json.dumps(queues))
    ways = 'case "$4" in 10.*) echo \'[{"dev": "eth1"}]\' ;; *) echo \'[{"dev": "eth0"}]\' ;; esac'
    show = f'case "$1" in -json) cat {folder}/queues; exit ;; esac\necho "$*" >>{folder}/calls\n{tc}'
    for name, body in (("ip", ways), ("tc", show)):
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return subprocess.Popen(
        [sys.executable, "-I", path_shaper.__file__],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def shaped(folder: Path, lines: list[Any], tc: str, queues: Any) -> tuple[list[Any], list[str]]:
    """What the program says, and what tc was asked for meanwhile."""
    with started(folder, tc, queues) as program:
        out, _ = program.communicate("".join(json.dumps(line) + "\n" for line in lines), timeout=60)
    said = [json.loads(line) for line in out.splitlines()]
    return said, calls(folder)


ABOUT = {"to": "10.77.0.2", "controller": "192.0.2.1"}


def test_a_path_is_set_and_the_kernels_own_queue_given_back(tmp_path: Path) -> None:
    path = {"commands": commands("eth1", {"delay_ms": 5})}
    said, asked = shaped(tmp_path, [ABOUT, path], "", OURS)
    assert said == [{"event": "ready", "device": "eth1"}, {"event": "path"}]
    wanted = [shlex.join(one[1:]) for one in path["commands"]]
    assert asked == [GIVE_BACK, TAKE, *wanted, GIVE_BACK]  # first what one that was killed has left


def test_the_hosts_keeper_ends_it_when_the_controller_is_gone(tmp_path: Path) -> None:
    with started(tmp_path, "", KERNELS) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(ABOUT) + "\n")
        program.stdin.flush()
        assert program.stdout.readline()
        program.terminate()
    assert calls(tmp_path) == [TAKE, GIVE_BACK]


@pytest.mark.parametrize(
    ("about", "tc", "queues", "words", "asked"),
    [
        (
            ABOUT,
            "echo Error: Specified qdisc kind is unknown. >&2; exit 2",
            KERNELS,
            f"its kernel cannot delay packets ('tc {TAKE}' ended with code 2: Error: Specified qdisc kind is"
            " unknown.): 'modprobe sch_netem' where it has that module, or leave path out",
            [TAKE],
        ),
        (
            ABOUT,
            "",
            [{"kind": "cake", "handle": "8001:", "root": True}],
            "eth1 has a queue of its own already (cake 8001:): take it away ('tc qdisc del dev eth1 root'),"
            " or leave path out",
            [],
        ),
        (
            ABOUT | {"controller": "10.77.0.9"},
            "",
            KERNELS,
            "eth1 leads to the controller, too: give the control network another interface",
            [],
        ),
    ],
)
def test_what_cannot_be_delayed_is_told_and_left_alone(
    tmp_path: Path, about: Any, tc: str, queues: Any, words: str, asked: list[str]
) -> None:
    assert shaped(tmp_path, [about], tc, queues) == ([{"event": "error", "message": words}], asked)

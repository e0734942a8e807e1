# SPDX-License-Identifier: Apache-2.0
"""Transports describe themselves, and everything follows; one that a host lacks is refused beforehand."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import synthetic
from lab_topology import LAB as RACK

import netjoule_contracts as contracts
from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks
from netjoule.diagnostics import doctor
from netjoule.hosts.ssh import Answer
from netjoule.loads.flow import host_support, transports
from netjoule.loads.flow.host_support import TRANSPORTS
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology.topology import Topology

EMULATED: Topology = synthetic.topology()
NO_SCTP = "this kernel has no SCTP: Protocol not supported (os error 93)"


def host_with(folder: Path, monkeypatch: pytest.MonkeyPatch, **reasons: str) -> None:
    """A netjoule-traffic that has every transport but those that come with a reason."""
    found = [{"name": n, "available": n not in reasons, "reason": reasons.get(n)} for n in transports.names()]
    said(folder, monkeypatch, json.dumps(found))


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    path = folder / "netjoule-traffic"
    (folder / "answer").write_text(answer)
    path.write_text(f'#!/bin/sh\n[ "$*" = "transports --json" ] || exit 9\ncat {folder}/answer\n')
    path.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(folder))


def workload(*names: str) -> FlowSettings:
    return FlowSettings.of(synthetic.workload(transports=[*names, "udp"]))


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask this host itself: what a sandbox is, other tests show."""
    monkeypatch.setattr(host_support.sandbox, "inside", lambda: "root")


# -- descriptions -----------------------------------------------------------------------------------


FRISBEE = {
    "name": "frisbee",
    "label": "Frisbee",
    "kind": "datagram",
    "congestion_controlled": True,
    "host_dependent": True,
    "launch_times": True,
    "options": [
        {"name": "spin", "description": "it turns", "value": {"type": "boolean"}, "default": False},
    ],
    "greatest_message": {
        "per_packet": [{"with": {}, "overhead_bytes": {"ipv4": 100, "ipv6": 120}, "greatest_mtu_bytes": None}]
    },
}
USE = """
import synthetic
import netjoule_contracts as contracts
from netjoule.loads.flow.host_support import TRANSPORTS
from netjoule.loads.flow import transports
from netjoule.loads.flow.abilities import ABILITIES
from netjoule.loads.flow.settings import FlowSettings
wanted = synthetic.workload(transports=["frisbee", "udp"], transport_options={"frisbee": {"spin": True}})
assert "frisbee" in transports.names()
assert "frisbee" in ABILITIES["netjoule-traffic"].transports
settings = FlowSettings.of(wanted)
print(settings.options_of("frisbee"), list(TRANSPORTS.needed(settings)))
print(transports.greatest_message("frisbee", 6, 1500, {}), transports.label("frisbee"))
print("frisbee" in transports.which("congestion_controlled"))
print(FlowSettings.of(synthetic.workload(transports=["frisbee"], pacing="so_txtime")).paces[0].mode)
"""


def test_a_transport_that_is_added_to_the_contract_is_known_everywhere(tmp_path: Path) -> None:
    """One entry more, which the registry writes: workload, limits, plan and verdict take it."""
    folder = tmp_path / "contracts"
    shutil.copytree(contracts.root(), folder, ignore=shutil.ignore_patterns("python", "tests", "vectors"))
    document = json.loads((folder / "transports.json").read_text())
    document["transports"].append(FRISBEE)
    (folder / "transports.json").write_text(json.dumps(document))
    found = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env=os.environ | {"NETJOULE_CONTRACTS": str(folder), "PYTHONPATH": found},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["{'spin': True} ['frisbee']", "1380 Frisbee", "True", "so_txtime"], (
        done.stderr
    )


def test_what_a_kernel_may_lack_is_host_dependent() -> None:
    assert transports.which("host_dependent") == {"mptcp", "sctp", "dccp-kernel"}
    assert transports.label("quic-datagram") == "QUIC datagram"
    assert transports.label("frisbee") == "frisbee"


def test_a_transport_without_options_takes_none() -> None:
    assert "null" not in transports.which("options")
    offered = contracts.schema("workload_flow")["properties"]["transport_options"]["properties"]
    assert set(offered) == transports.which("options")


def test_the_seldom_options_are_for_the_command_line_only() -> None:
    offered = contracts.schema("workload_flow")["properties"]["transport_options"]["properties"]
    assert set(offered["dccp"]["properties"]) == {"ccid", "carrier", "ecn"}


# -- hosts ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("outside")
def test_what_the_host_lacks_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_with(tmp_path, monkeypatch, sctp=NO_SCTP)
    TRANSPORTS.require(workload("mptcp"), EMULATED)
    with pytest.raises(HostLacks, match="transport sctp cannot be used: this kernel has no SCTP") as caught:
        TRANSPORTS.require(workload("sctp"), EMULATED)
    assert caught.value.exit_code == 3
    assert "leave sctp out" in str(caught.value)


def test_what_every_host_has_needs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_support, "_answer", lambda *_, **__: pytest.fail("nothing is asked"))
    TRANSPORTS.require(workload("tcp", "quic"), EMULATED)


def test_the_kernels_dccp_is_left_to_its_carriers() -> None:
    assert list(TRANSPORTS.needed(workload("dccp-kernel"))) == []


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("answer", ["not JSON", '{"sctp": true}', "[{}]"])
def test_a_program_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    said(tmp_path, monkeypatch, answer)
    with pytest.raises(HostLacks, match="does not tell its transports; build it again"):
        TRANSPORTS.require(workload("sctp"), EMULATED)


@pytest.mark.usefixtures("outside")
def test_plan_ends_with_exit_3_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    host_with(tmp_path, monkeypatch, sctp=NO_SCTP)
    file = tmp_path / "w.yaml"
    file.write_text(json.dumps(synthetic.workload(transports=["sctp", "udp"]).document))
    assert run_command(["plan", str(file)]) == 3
    assert NO_SCTP in capsys.readouterr().err


def test_plan_on_a_lab_leaves_open_what_only_its_hosts_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host_with(tmp_path, monkeypatch, sctp=NO_SCTP)
    rack, file = tmp_path / "rack.yaml", tmp_path / "w.yaml"
    rack.write_text(json.dumps(RACK))
    file.write_text(json.dumps(synthetic.workload(transports=["sctp", "udp"]).document))
    words = "sctp needs SCTP in the kernel: laptop and tower will be asked when the campaign begins"
    assert run_command(["plan", str(file), "--testbed", str(rack)]) == 0
    assert f"transports {words}\n" in capsys.readouterr().out


class Host:
    """Answers one question."""

    name = "laptop"
    programs = {"netjoule-traffic": "/cache/netjoule-traffic"}  # noqa: RUF012

    def __init__(self, said: Answer) -> None:
        self.said = said

    async def ask(self, argv: list[str]) -> Answer:
        assert argv == ["/cache/netjoule-traffic", "transports", "--json"]
        return self.said


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Answer(0, '[{"name": "sctp", "available": true}]', ""), None),
        (
            Answer(0, json.dumps([{"name": "sctp", "available": False, "reason": NO_SCTP}]), ""),
            "^host laptop: transport sctp cannot be used: this kernel has no SCTP",
        ),
        (Answer(2, "", "no such verb"), r"does not tell its transports \(no such verb\)"),
    ],
)
def test_a_labs_hosts_are_asked_themselves(said: Answer, words: str | None) -> None:
    host: Any = Host(said)
    if words is None:
        asyncio.run(TRANSPORTS.require_on(host, workload("sctp")))
    else:
        with pytest.raises(HostLacks, match=words):
            asyncio.run(TRANSPORTS.require_on(host, workload("sctp")))
    nobody: Any = None
    asyncio.run(TRANSPORTS.require_on(nobody, workload("tcp")))


# -- doctor -----------------------------------------------------------------------------------------


def test_doctor_says_which_kernel_transports_there_are_and_why_not_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_with(tmp_path, monkeypatch, sctp=NO_SCTP)
    found = {f.name: f for f in doctor._kernel_transports()}
    assert set(found) == {"mptcp", "sctp"}
    assert (found["mptcp"].ok, found["mptcp"].seen) == (True, "yes")
    assert (found["sctp"].ok, found["sctp"].needed, found["sctp"].seen) == (False, False, NO_SCTP)


def test_doctor_lists_the_congestion_controls_that_a_workload_may_choose(tmp_path: Path) -> None:
    (tmp_path / "tcp_available_congestion_control").write_text("reno cubic bbr\n")
    (tmp_path / "tcp_allowed_congestion_control").write_text("reno cubic\n")
    found = doctor._congestion_controls(tmp_path)
    assert (found.ok, found.seen) == (True, "reno, cubic; only for root: bbr")
    assert not doctor._congestion_controls(tmp_path / "nowhere").ok

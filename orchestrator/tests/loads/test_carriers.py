# SPDX-License-Identifier: Apache-2.0
"""DCCP's carriers: a workload that needs one which the host lacks is refused before the first packet."""

import json
from pathlib import Path

import pytest
import synthetic
from lab_topology import LAB as RACK

from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks
from netjoule.loads.flow import host_support
from netjoule.loads.flow.host_support import CARRIERS
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

ALL = ("udp", "raw", "kernel")


def host_with(folder: Path, monkeypatch: pytest.MonkeyPatch, **reasons: str) -> None:
    """A netjoule-traffic that has every carrier but those that come with a reason."""
    found = [{"name": n, "available": n not in reasons, "reason": reasons.get(n)} for n in ALL]
    said(folder, monkeypatch, json.dumps(found))


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int = 0) -> None:
    path = folder / "netjoule-traffic"
    (folder / "answer").write_text(answer)
    path.write_text(f'#!/bin/sh\n[ "$*" = "carriers --json" ] || exit 9\ncat {folder}/answer\nexit {code}\n')
    path.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(folder))


def workload(transport: str, **options: object) -> Workload:
    more = {"transport_options": {transport: options}} if options else {}
    return synthetic.workload(transports=[transport, "udp"], **more)


LAB: Topology = synthetic.topology()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask this host itself: what a sandbox is, other tests show."""
    monkeypatch.setattr(host_support.sandbox, "inside", lambda: "root")


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("wanted", "reasons", "words"),
    [
        (
            workload("dccp-kernel"),
            {"kernel": "no DCCP in it; use --transport dccp"},
            "dccp-kernel needs the kernel's DCCP: no DCCP in it; use transport dccp with",
        ),
        (workload("dccp", carrier="raw"), {"raw": "no CAP_NET_RAW"}, r"protocol 33\): no CAP_NET_RAW"),
    ],
)
def test_what_the_host_lacks_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Workload, reasons: dict[str, str], words: str
) -> None:
    host_with(tmp_path, monkeypatch)
    CARRIERS.require(FlowSettings.of(wanted), LAB)
    host_with(tmp_path, monkeypatch, **reasons)
    with pytest.raises(HostLacks, match=words) as caught:
        CARRIERS.require(FlowSettings.of(wanted), LAB)
    assert caught.value.exit_code == 3
    assert "use transport dccp with carrier udp" in str(caught.value)


def test_udp_needs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_support, "_answer", lambda *_, **__: pytest.fail("nothing is asked"))
    CARRIERS.require(FlowSettings.of(workload("dccp")), LAB)
    CARRIERS.require(FlowSettings.of(synthetic.workload()), LAB)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(("answer", "code"), [("[]", 1), ("not JSON", 0), ('{"udp": true}', 0), ("[{}]", 0)])
def test_a_program_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    said(tmp_path, monkeypatch, answer, code)
    with pytest.raises(HostLacks, match=r"does not tell its DCCP carriers; build it again"):
        CARRIERS.require(FlowSettings.of(workload("dccp-kernel")), LAB)


@pytest.mark.usefixtures("outside")
def test_a_carrier_that_the_program_does_not_list_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(tmp_path, monkeypatch, "[]")
    with pytest.raises(HostLacks, match="netjoule-traffic does not know it"):
        CARRIERS.require(FlowSettings.of(workload("dccp", carrier="raw")), LAB)


@pytest.mark.netns
def test_an_emulated_testbed_is_asked_inside_its_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the sandbox init is the parent of the program: only there is it process 1.
    said(tmp_path, monkeypatch, '[{"name": "raw", "available": true}]')
    script = tmp_path / "netjoule-traffic"
    script.write_text(f'#!/bin/sh\n[ "$PPID" = 1 ] || exit 9\ncat {tmp_path}/answer\n')
    assert CARRIERS.ask(in_sandbox=True) == [host_support.Support("raw", True, "")]
    with pytest.raises(HostLacks):
        CARRIERS.ask()


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("command", ["plan", "run"])
def test_plan_and_run_end_with_exit_3_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    host_with(tmp_path, monkeypatch, kernel="Linux 6.18 has none: it was removed in 6.16")
    file, out = tmp_path / "w.yaml", tmp_path / "out"
    file.write_text(json.dumps(workload("dccp-kernel").document))
    words = [command, str(file), *(["--out", str(out)] if command == "run" else [])]
    assert run_command(words) == 3
    assert "it was removed in 6.16" in capsys.readouterr().err
    assert not out.exists()


def test_plan_on_a_lab_leaves_open_what_only_its_hosts_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the controller lacks."""
    host_with(tmp_path, monkeypatch, kernel="Linux 6.18 has none", raw="no CAP_NET_RAW")
    rack, file = tmp_path / "rack.yaml", tmp_path / "w.yaml"
    rack.write_text(json.dumps(RACK))
    file.write_text(json.dumps(workload("dccp-kernel").document))
    words = "dccp-kernel needs the kernel's DCCP: laptop and tower will be asked when the campaign begins"
    assert run_command(["plan", str(file), "--testbed", str(rack)]) == 0
    assert f"carriers   {words}\n" in capsys.readouterr().out
    assert run_command(["plan", str(file), "--testbed", str(rack), "--json"]) == 0
    (told,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert told["carriers"] == [words]
    file.write_text(json.dumps(synthetic.workload().document))
    assert run_command(["plan", str(file), "--testbed", str(rack)]) == 0
    assert "carriers" not in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""What a campaign asks of a lab's hosts before its first packet: control network, DCCP, records, builds."""

import asyncio
import copy
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
import synthetic
from golden_sentences import raises
from lab_topology import LAB

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.hosts.ssh import Answer
from netjoule.loads.flow.host_support import CARRIERS
from netjoule.loads.flow.settings import FlowSettings
from netjoule.testbeds.lab import binaries
from netjoule.testbeds.lab.binaries import build_for
from netjoule.testbeds.lab.control_network import control_number, require_control_off_the_radio
from netjoule.testbeds.lab.host_facts import host_record, joined
from netjoule.topology.topology import Topology

RACK = Topology.from_document(copy.deepcopy(LAB), where="test")
CONTROLLER, SERVER = "192.0.2.9", "192.0.2.2"


class Host:
    """Says what it is told to when it is asked."""

    def __init__(self, name: str, answers: Mapping[str, Answer]) -> None:
        self.name = name
        self.programs = {binaries.PROGRAM: "/cache/netjoule-traffic"}
        self.controller_address = CONTROLLER
        self.answers = answers

    async def ask(self, argv: list[str]) -> Answer:
        return self.answers[" ".join(argv)]


def ways(**devices: str) -> dict[str, Answer]:
    """Answers of ip (iproute2 6.1) by the interfaces to controller and server."""
    to = {"controller": CONTROLLER, "server": SERVER}
    said = {}
    for peer, device in devices.items():
        route = [
            {"dst": to[peer], "dev": device, "prefsrc": "192.0.2.11", "flags": [], "uid": 0, "cache": []}
        ]
        said[f"ip -json route get {to[peer]}"] = Answer(0, json.dumps(route) + "\n", "")
    return said


def reach(name: str, answers: Mapping[str, Answer]) -> None:
    host = Host(name, answers)
    asyncio.run(require_control_off_the_radio(RACK, host, {"the server": SERVER}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("controller", "server", "way"),
    [("wlp2s0", "eth0", f"the controller ({CONTROLLER})"), ("eth0", "wlp2s0", f"the server ({SERVER})")],
)
def test_control_traffic_over_the_test_radio_is_refused(controller: str, server: str, way: str) -> None:
    with pytest.raises(UsageError) as caught:
        reach("laptop", ways(controller=controller, server=server))
    assert str(caught.value) == (
        f"host laptop: its way to {way} is the test radio wlp2s0: control traffic would be measured with"
        " the flows; connect it by cable and name its address there as control_address"
    )


def test_control_traffic_by_cable_passes_also_where_a_way_is_not_known() -> None:
    reach("laptop", ways(controller="eth0", server="eth0"))
    unreachable = Answer(2, "", "RTNETLINK answers: Network is unreachable")
    reach("laptop", ways(controller="eth0") | {f"ip -json route get {SERVER}": unreachable})
    reach("tower", {})  # has no radio, so is not asked


def test_the_bridge_of_an_access_point_is_its_radio() -> None:
    document = copy.deepcopy(LAB)
    document["wifi"]["forwarding"] = "bridging"
    del document["hosts"]["ap"]["radio"]["addresses"], document["hosts"]["ap"]["wired"]["addresses"]
    for host in document["hosts"].values():
        host.pop("routes", None)
    document["hosts"]["tower"]["test_addresses"] = {"ipv4": "10.77.0.2", "ipv6": "fd77::2"}
    bridging = Topology.from_document(document, where="test")
    host = Host("ap", ways(controller="br-netjoule"))
    with raises(UsageError):
        asyncio.run(require_control_off_the_radio(bridging, host, {}))  # type: ignore[arg-type]
    asyncio.run(require_control_off_the_radio(RACK, host, {}))  # type: ignore[arg-type]


def test_a_host_without_ip_is_told() -> None:
    with raises(HostLacks):
        reach("laptop", {f"ip -json route get {CONTROLLER}": Answer(127, "", "sh: 1: ip: not found")})


# -- a control address that is a name -----------------------------------------------------------------

NAME = "tower.control.example"
ASKED = f"getent ahosts {NAME}"


def named(text: str = NAME) -> Topology:
    document = copy.deepcopy(LAB)
    document["hosts"]["tower"]["control_address"] = text
    return Topology.from_document(document, where="test")


def number_of(where: Topology, answers: Mapping[str, Answer]) -> str:
    return asyncio.run(control_number(where, "tower", Host("laptop", answers)))  # type: ignore[arg-type]


def getent(*addresses: str) -> dict[str, Answer]:
    """As glibc 2.36 prints it."""
    kinds = (("STREAM", f" {NAME}"), ("DGRAM", ""), ("RAW", ""))
    lines = [f"{address:15} {kind}{name}\n" for address in addresses for kind, name in kinds]
    return {ASKED: Answer(0, "".join(lines), "")}


@pytest.fixture
def controller_knows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that the controller has for any name; none to begin with."""
    known: list[str] = []

    def found(name: str, *_: object, **__: object) -> list[object]:
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in known]

    monkeypatch.setattr("netjoule.testbeds.lab.control_network.socket.getaddrinfo", found)
    return known


@pytest.mark.parametrize(
    ("said", "number"),
    [
        (getent("192.0.2.2"), "192.0.2.2"),
        (getent("fd00::2", "192.0.2.2"), "fd00::2"),
        (getent("::1", "127.0.1.1", "fe80::1", "192.0.2.2"), "192.0.2.2"),
    ],
)
def test_a_control_address_is_what_its_name_means_on_the_host_that_goes_there(
    controller_knows: list[str], said: Mapping[str, Answer], number: str
) -> None:
    controller_knows.append("198.51.100.7")
    assert number_of(named(), said) == number


@pytest.mark.parametrize("said", [Answer(2, "", ""), Answer(127, "", "getent: not found"), Answer(0, "", "")])
def test_a_name_that_only_the_controller_knows_is_its_number(
    controller_knows: list[str], said: Answer
) -> None:
    controller_knows.append(SERVER)
    assert number_of(named(), {ASKED: said}) == SERVER


def test_a_number_is_not_looked_up() -> None:
    assert number_of(named("192.0.2.2"), {}) == "192.0.2.2"
    assert number_of(named("fd00::2"), {}) == "fd00::2"


@pytest.mark.parametrize("known", [[], ["127.0.1.1"]])
def test_a_name_that_nobody_knows_is_one_sentence(controller_knows: list[str], known: list[str]) -> None:
    controller_knows.extend(known)
    with pytest.raises(UsageError) as caught:
        number_of(named(), {ASKED: Answer(2, "", "")})
    assert str(caught.value) == (
        "host tower: its control_address 'tower.control.example' is a name that neither laptop nor the"
        " controller resolves; write its number there, or add the name to /etc/hosts of both"
    )


def asked_for_carriers(said: Answer) -> None:
    host = Host("laptop", {"/cache/netjoule-traffic carriers --json": said})
    wanted = FlowSettings.of(synthetic.workload(transports=["dccp-kernel", "udp"]))
    asyncio.run(CARRIERS.require_on(host, wanted))  # type: ignore[arg-type]


def test_a_labs_hosts_are_asked_for_dccp_not_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name: pytest.fail(f"{name} of the controller was asked"))
    asked_for_carriers(Answer(0, '[{"name": "kernel", "available": true, "reason": null}]', ""))
    lacks = (
        '[{"name": "kernel", "available": false, "reason": "Linux 6.18 has none: it was removed in 6.16"}]'
    )
    with raises(HostLacks):
        asked_for_carriers(Answer(0, lacks, ""))
    asyncio.run(CARRIERS.require_on(Host("laptop", {}), FlowSettings.of(synthetic.workload())))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said", [Answer(2, "", "no such verb"), Answer(0, '{"udp": true}', ""), Answer(0, "[{}]", "")]
)
def test_a_program_that_does_not_tell_its_carriers_is_named(said: Answer) -> None:
    with raises(HostLacks):
        asked_for_carriers(said)


def test_a_record_that_is_none_is_told_and_a_missing_one_is_not() -> None:
    def record(said: Answer) -> object:
        return asyncio.run(host_record(Host("ap", {"cat /run/netjoule/host.json": said})))

    assert record(Answer(1, "", "cat: /run/netjoule/host.json: No such file or directory")) is None
    for text in ("", "[]", '{"kernel": "6.1"}'):
        with raises(RunFailed):
            record(Answer(0, text, ""))


def test_a_host_has_another_entry_only_when_it_was_found_changed() -> None:
    quiet = {"governor": "powersave", "kernel": "6.1"}
    entries, changes = joined([], 1, {"a": quiet, "b": quiet})
    assert [(e["host"], e["session"]) for e in entries] == [("a", 1), ("b", 1)]
    assert joined(entries, 2, {"a": quiet}) == (entries, [])
    assert changes == []
    entries, changes = joined(entries, 3, {"a": quiet, "b": quiet | {"governor": "performance"}})
    assert [(e["host"], e["session"], e["governor"]) for e in entries[2:]] == [("b", 3, "performance")]
    assert changes == ["host b: governor was 'powersave', is 'performance'"]


# -- builds ------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree at commit abc with the controller's own build, of 2026-01-01, and one of `make dist`."""
    (tmp_path / "scripts").mkdir()
    at_commit(tmp_path, "abc")
    for folder in ("target", "dist/here", "dist/other"):
        built(tmp_path / folder / binaries.PROGRAM, 1767225600)
    for machine in ("here", "other"):
        (tmp_path / "dist" / machine / "commit").write_text("abc\n")
    monkeypatch.setattr(programs, "find", lambda name: str(tmp_path / "target" / name))
    monkeypatch.setattr(binaries.platform, "machine", lambda: "here")
    return tmp_path


def built(program: Path, at_s: int) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch()
    os.utime(program, (at_s, at_s))


def at_commit(tree: Path, commit: str) -> None:
    script = tree / "scripts" / "rust-commit.sh"
    script.write_text(f"#!/bin/sh\necho {commit}\n")
    script.chmod(0o755)


def chosen(machine: str, tree: Path) -> tuple[str, str]:
    build = build_for(machine, tree)
    assert build is not None
    return str(build.path.parent.relative_to(tree)), build.words


@pytest.mark.parametrize("machine", ["here", "other"])
def test_a_static_build_of_these_sources_is_pushed_and_named(tree: Path, machine: str) -> None:
    assert chosen(machine, tree) == (f"dist/{machine}", f"dist/{machine} of commit abc")


def test_a_host_of_another_machine_gets_the_build_of_each_program(tree: Path) -> None:
    assert build_for("other", tree, "netjoule-transfer") is None  # `make dist` of a former commit has none
    static = tree / "dist/other/netjoule-transfer"
    built(static, 1767225600)
    build = build_for("other", tree, "netjoule-transfer")
    assert build is not None
    assert build.path == static


def test_an_older_static_build_gives_way_to_the_controllers_own(tree: Path) -> None:
    built(tree / "target" / binaries.PROGRAM, 1767225660)
    at_commit(tree, "def")
    words = "the controller's own, of 2026-01-01T00:01:00Z: later than dist/here"
    assert chosen("here", tree) == ("target", words)


@pytest.mark.parametrize("machine", ["here", "other"])
@pytest.mark.parametrize(("noted", "said"), [("abc", "abc"), ("abc-dirty", "abc-dirty"), (None, "unknown")])
def test_a_static_build_of_other_sources_is_refused(
    tree: Path, machine: str, noted: str | None, said: str
) -> None:
    at_commit(tree, "def")
    place = tree / "dist" / machine / "commit"
    place.write_text(noted) if noted else place.unlink()
    words = f"dist/{machine}/netjoule-traffic: it is built from commit {said}, the sources here are of def"
    with pytest.raises(HostLacks, match=f"^{words}; 'make dist' builds it anew$"):
        build_for(machine, tree)


def test_without_make_dist_only_an_equal_machine_gets_a_build(tree: Path) -> None:
    for machine in ("here", "other"):
        (tree / "dist" / machine / binaries.PROGRAM).unlink()
    assert chosen("here", tree) == ("target", "the controller's own, of 2026-01-01T00:00:00Z")
    assert build_for("other", tree) is None
    assert build_for("other", None) is None


def test_provisioning_is_told_what_campaigns_run_and_why_not(tree: Path) -> None:
    def told() -> dict[str, tuple[str, str]]:
        return {
            machine: (build["path"].removeprefix(f"{tree}/"), build["problem"])
            for machine, build in binaries.builds(tree).items()
        }

    static = {machine: (f"dist/{machine}/{binaries.PROGRAM}", "") for machine in ("here", "other")}
    assert told() == static
    at_commit(tree, "def")
    built(tree / "target" / binaries.PROGRAM, 1767225660)
    problem = (
        "dist/other/netjoule-traffic: it is built from commit abc, the sources here are of def;"
        " 'make dist' builds it anew"
    )
    assert told() == {"here": (f"target/{binaries.PROGRAM}", ""), "other": ("", problem)}


def test_the_commit_of_the_sources_is_the_scripts(tree: Path) -> None:
    assert programs.rust_commit(tree) == "abc"
    (tree / "scripts" / "rust-commit.sh").unlink()
    assert programs.rust_commit(tree) == ""

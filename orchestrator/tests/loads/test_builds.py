# SPDX-License-Identifier: Apache-2.0
"""Builds of netjoule-traffic as arms, at both ends; and what a folder is as a build of each load."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from flows import ENDS, spec
from runner_fakes import PLACE, TIMING, FakeGenerator, Script, topology

from netjoule import loads
from netjoule.core.errors import HostLacks, UsageError
from netjoule.design import run_table
from netjoule.hosts.host import Host
from netjoule.loads.flow.builds import Build
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic
from netjoule.loads.flow.load import SERVER_PORT, FlowLoad
from netjoule.workload.workload import Workload

FACTORS: dict[str, Any] = {
    "transport": ["udp", "tcp"],
    "payload_bytes": [64],
    "offered_rate_mbps": [3],
    "build": ["base", "head", "plain"],
}
SAYS_ITSELF = """#!/bin/sh
[ "$1" = --version ] && { echo netjoule-traffic 9.8.7; exit; }
echo "$0 $1 $(echo "$@" | grep -oE ':530[0-9]|--port [0-9]+' | head -n 1) $MODE" >>%s
echo '{"event":"listening"}'; echo '{"event":"ready"}'; read word
"""


def flows(builds: dict[str, Any], **changes: Any) -> Workload:
    value = {
        "schema_version": 2,
        "name": "builds",
        "load": "flow",
        "arm": "build",
        "factors": FACTORS,
        "flow": {"builds": builds},
        "blocks": 1,
        "timing": TIMING,
    }
    return loads.made(value | changes, where="test")


def program(folder: Path, log: Path) -> Path:
    """A netjoule-traffic that writes down how it was started."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "netjoule-traffic"
    path.write_text(SAYS_ITSELF % log)
    path.chmod(0o755)
    return path


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    """Builds with a program of their own, and with an environment."""
    base, head = (program(tmp_path / name, tmp_path / "log") for name in ("base", "head"))
    return {
        "base": {"programs": str(base)},
        "head": {"programs": str(head), "environment": {"MODE": "new"}},
    }


# --- flows ------------------------------------------------------------------------------------------


def test_builds_are_arms_without_a_control_run_and_transports_are_cells(told: dict[str, Any]) -> None:
    found = flows(told)
    assert found.arms == ("base", "head", "plain")
    assert found.control is None
    assert {cell["transport"] for cell in found.cells} == {"udp", "tcp"}
    assert {row.condition(found, 1).factors["build"] for row in run_table.expand(found, 1)} == set(found.arms)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flow": {"builds": {"other": {}}}}, "flow.builds.other: no run has this build"),
        ({"flow": {}}, "base and head and plain are the same"),
        ({"flow": {"builds": {"base": {"programs": "bin/x"}}}}, "bin/x is no absolute path"),
        ({"flow": {"builds": {"base": {"program": "/x"}}}}, "flow.builds.base.program"),
        ({"flow": {"generator": "iperf3"}, "factors": FACTORS | {"build": ["base"]}}, "iperf3 has no builds"),
        ({"control": True}, "a control run has one build"),
    ],
)
def test_builds_that_no_run_could_have_are_refused(
    told: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        flows(told, **changes)


def test_a_program_that_is_not_there_is_told_before_anything_runs(
    told: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "head/netjoule-traffic").chmod(0o644)
    with pytest.raises(HostLacks, match="build head has no program at"):
        FlowLoad(flows(told), topology()).require_programs()


def test_every_build_is_tried_for_the_meters_ranges(told: dict[str, Any]) -> None:
    tried = [one.factors["build"] for one in FlowLoad(flows(told), topology()).heaviest()]
    assert tried == ["base", "head", "plain"]


def test_sender_and_server_of_a_run_are_of_its_build(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "installed", tmp_path / "log")
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path / "installed"))
    asked = flows(told)
    rows = [row for row in run_table.expand(asked, 1) if row.cell["transport"] == "udp"]

    async def both_ends() -> dict[str, str]:
        load, versions = FlowLoad(asked, topology()), {}
        for row in [*rows, *rows]:
            session = await load.open(row.condition(asked, 1), PLACE, 1.0)
            versions |= session.versions
            await session.end()
        await load.close()
        return versions

    versions = asyncio.run(both_ends())
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    where = {
        name: str(tmp_path / folder)
        for name, folder in zip(asked.arms, ("base", "head", "installed"), strict=True)
    }
    ports = {name: SERVER_PORT + place for place, name in enumerate(asked.arms)}
    for name in asked.arms:
        own = [line[1:] for line in lines if line[0].startswith(where[name])]
        mode = ["new"] if name == "head" else []
        assert sorted(own) == sorted(
            [
                ["send", f":{ports[name]}", *mode],
                ["send", f":{ports[name]}", *mode],
                ["serve", "--port", f"{ports[name]}", *mode],
            ]
        ), "one server of each build, and two senders"
    for name, said in versions.items():
        content = (Path(where[name.rpartition(" ")[2]]) / "netjoule-traffic").read_bytes()
        assert said == f"9.8.7, sha256 {hashlib.sha256(content).hexdigest()}"
    assert list(versions) == [f"netjoule-traffic of build {row.arm}" for row in rows]


def test_a_campaign_without_builds_is_as_before() -> None:
    script = Script()
    load = FlowLoad(
        flows({}, arm="transport", flow={}, factors={k: v for k, v in FACTORS.items() if k != "build"}),
        topology(),
        lambda *_: FakeGenerator(script),
    )

    async def open_one() -> dict[str, str]:
        (first, *_) = load.heaviest()
        session = await load.open(first, PLACE, 1.0)
        await load.close()
        return dict(session.versions)

    assert asyncio.run(open_one()) == {"netjoule-traffic": "0.1.0"}


class Lab:
    """A lab's host: files are copied to it, programs answer."""

    name, machine = "sta", "aarch64"

    def __init__(self, status: int = 0) -> None:
        self.status, self.started, self.files = status, list[list[str]](), dict[str, bytes]()

    async def put_once(self, data: bytes, stem: str, suffix: str = "", *, executable: bool = False) -> str:
        assert executable
        place = str(PurePosixPath("/cache") / f"{stem}-{len(self.files)}{suffix}")
        self.files[place] = data
        return place

    async def ask(self, argv: list[str]) -> Any:
        self.started.append(argv)
        return cast(Any, type("Answer", (), {"status": self.status, "out": "", "err": "Exec format error\n"}))


def test_a_labs_host_gets_a_copy_of_a_builds_program(told: dict[str, Any]) -> None:
    host = Lab()
    build = Build("head", told["head"]["programs"])
    argv = asyncio.run(build.on(cast(Host, host)))
    assert argv == ["env", "--", "/cache/netjoule-traffic-0"]
    assert host.files["/cache/netjoule-traffic-0"] == Path(told["head"]["programs"]).read_bytes()


def test_a_labs_host_that_cannot_run_a_build_is_named(told: dict[str, Any]) -> None:
    host = Lab(status=126)
    with pytest.raises(HostLacks, match="build head does not run on this aarch64 host") as caught:
        asyncio.run(Build("head", told["head"]["programs"]).require_on(host))
    assert "sta" in str(caught.value)
    asyncio.run(Build("plain").require_on(host))
    assert len(host.started) == 1, "the installed program is provided by the testbed"


def test_a_build_that_says_no_version_is_told(tmp_path: Path) -> None:
    path = tmp_path / "netjoule-traffic"
    path.write_text("#!/bin/sh\nexit 7\n")
    path.chmod(0o755)
    with pytest.raises(HostLacks, match=r"build head: .* --version fails"):
        asyncio.run(NetjouleTraffic(Build("head", str(path))).version())


def test_a_program_that_has_gone_is_told_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(HostLacks, match="no program at"):
        asyncio.run(NetjouleTraffic(Build("head", str(tmp_path / "gone"))).version())
    with pytest.raises(HostLacks, match="cannot start"):
        asyncio.run(NetjouleTraffic(Build("head", str(tmp_path / "gone"))).open(spec("udp"), ENDS))


# --- what a folder or a program is as a build -------------------------------------------------------


@pytest.mark.parametrize("place", ["", "target/release", "bin"])
def test_a_flows_program_is_found_where_builds_put_it(tmp_path: Path, place: str) -> None:
    path = program(tmp_path / place, tmp_path / "log")
    found = loads.build_settings({"load": "flow"}, tmp_path, {"A": "1"})
    assert found.said == {"programs": str(path), "environment": {"A": "1"}}
    assert found.content == path
    assert loads.build_settings({"load": "flow"}, path, {}).said == {"programs": str(path)}
    assert loads.build_settings({"load": "flow"}, None, {}).said == {}


def test_a_folder_without_the_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no program netjoule-traffic"):
        loads.build_settings({"load": "flow"}, tmp_path, {})


def test_a_commands_build_is_a_folder_or_another_program(tmp_path: Path) -> None:
    document = json.loads(json.dumps({"load": "command", "command": {"run": ["tool", "-9", "x"]}}))
    found = loads.build_settings(document, tmp_path, {})
    assert (found.said, found.content) == ({"directory": str(tmp_path)}, tmp_path)
    found = loads.build_settings(document, Path(sys.executable), {"A": "1"})
    assert found.said == {"run": [sys.executable, "-9", "x"], "environment": {"A": "1"}}

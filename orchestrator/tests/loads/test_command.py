# SPDX-License-Identifier: Apache-2.0
"""The load ``command``: real programs on this host, from ready to their outcome."""

import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from runner_fakes import TIMING, FakeTime, topology

from netjoule import loads
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.hosts.host import LocalHost
from netjoule.loads.command.load import CommandLoad
from netjoule.loads.command.settings import Settings, Work
from netjoule.workload.load import Condition, Outcome, Place
from netjoule.workload.workload import Workload

HERE = LocalHost("here")
PLACE = Place(
    {"client": (HERE,), "server": (HERE,)}, test_addresses={"here": "127.0.0.1"}, interfaces={"here": "lo"}
)
PYTHON = [sys.executable, "-c"]


def alive(pid_file: Path) -> bool:
    """Whether the process that wrote its id still runs; one that nobody has waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(") ")[2][0] != "Z"


def condition(arm: str = "", **factors: Any) -> Condition:
    return Condition(arm, {"build": arm, **factors}, "b01m001-x-a1", 1, 1)


def settings(*argv: str, **said: Any) -> dict[str, Any]:
    return {"command": {"run": list(argv), **said}}


def load_with(document: dict[str, Any]) -> CommandLoad:
    """The load of a workload with such settings."""
    return CommandLoad(cast(Workload, SimpleNamespace(document=document)), topology())


def outcome(of: dict[str, Any], asked: Condition | None = None, least_s: float = 0.0) -> Outcome:
    """Of one run of a campaign, its session ended twice."""

    async def run() -> Outcome:
        load = load_with(of)
        try:
            session = await load.open(asked or condition(), PLACE, least_s)
            try:
                await session.go()
                return await session.outcome(FakeTime({}))
            finally:
                await session.end()
                await session.end()
        finally:
            await load.close()

    return asyncio.run(run())


def test_a_command_is_one_unit_of_work_from_its_start_to_its_end() -> None:
    found = outcome(settings("sleep", "0.2"))
    (part,) = found.parts
    assert 0.2 <= part.t_end_s - part.t_start_s < 1.5
    work = found.run_fields["work"]
    assert (work["quantity"], work["unit"], work["repeat"], work["reconciles"]) == (1.0, "run", 1, True)
    assert found.judge(part.t_end_s) == []
    (row,) = found.intervals
    assert (row["part"], row["node"], row["work"]) == ("1", "here", 1.0)
    assert (row["t_start_s"], row["t_end_s"]) == (part.t_start_s, part.t_end_s)


def test_a_short_command_is_repeated_back_to_back() -> None:
    found = outcome(settings("sleep", "0.05"), least_s=0.4)
    work = found.run_fields["work"]
    assert 2 <= work["repeat"] <= 8
    assert work["quantity"] == work["repeat"] == len(found.intervals)
    assert found.run_fields["measures"]["duration_s"] >= 0.05
    edges = [(row["t_start_s"], row["t_end_s"]) for row in found.intervals]
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))


def test_repeats_of_an_earlier_session_stay() -> None:
    async def run() -> list[str]:
        load = load_with(settings("true"))
        load.recall(condition(), {"work": {"repeat": 3}})
        session = await load.open(condition(), PLACE, 60.0)
        try:
            await session.go()
            found = await session.outcome(FakeTime({}))
        finally:
            await session.end()
        assert found.run_fields["work"]["repeat"] == 3
        return [event.event for event in session.events]

    assert asyncio.run(run()) == [], "no warm-up runs"


def test_cpu_time_and_bytes_on_the_link_are_those_of_the_command() -> None:
    burn = "import time, socket\nwhile time.process_time() < 0.2: pass\n"
    burn += "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    burn += "[s.sendto(b'x' * 1000, ('127.0.0.1', 9)) for _ in range(20)]"
    measures = outcome(settings(*PYTHON, burn)).run_fields["measures"]
    assert 0.2 <= measures["cpu_s"] < 1.5
    assert measures["sent_bytes"] >= 20_000
    assert measures["received_bytes"] >= 20_000


def test_factors_in_capitals_and_the_builds_are_the_commands_environment() -> None:
    said = "import os; print(os.environ['LEVEL'], os.environ['MODE'], os.environ['NETJOULE_SERVER'])"
    of = settings(
        *PYTHON,
        said,
        builds={"fast": {"environment": {"MODE": "f"}}, "other": {"run": [*PYTHON, "print('other 9')"]}},
        work_from={"regex": r"^\S+ ?(\d+)?"},
    )
    assert Settings.of(of).environment_of(condition("fast", LEVEL=7)) == {"MODE": "f", "LEVEL": "7"}
    report = outcome(
        settings(
            *PYTHON, said, builds={"fast": {"environment": {"MODE": "5"}}}, work_from={"regex": r" (\d) 127"}
        ),
        condition("fast", LEVEL=7),
    )
    assert report.run_fields["work"]["quantity"] == 5.0
    assert Settings.of(of).argv_of(condition("other"))[-1] == "print('other 9')"


@pytest.mark.parametrize(
    ("work", "stdout", "number"),
    [
        ({"regex": r"(\d+) MB"}, "10 MB\n20 MB\n", 20.0),
        ({"regex": r"\d+"}, "7 of 9", 9.0),
        ({"json": "end.runs[1].mb"}, '{"end": {"runs": [{"mb": 1}, {"mb": 2.5}]}}', 2.5),
        ({}, "anything", 1.0),
    ],
)
def test_work_is_what_the_command_prints(work: dict[str, str], stdout: str, number: float) -> None:
    assert Settings.of({"command": {"run": ["x"], "work_from": work}}).work.of(stdout) == number


@pytest.mark.parametrize(
    ("work", "stdout"),
    [
        (Work(regex=r"(\d+) MB"), "none"),
        (Work(json_path="end.mb"), "{}"),
        (Work(json_path="end.mb"), "no JSON"),
        (Work(json_path="a"), '{"a": [1]}'),
        (Work(json_path="a"), '{"a": 0}'),
        (Work(json_path="a"), '{"a": -1}'),
        (Work(json_path="a"), '{"a": Infinity}'),
    ],
)
def test_work_that_is_no_number_above_0_makes_a_run_invalid(work: Work, stdout: str) -> None:
    with pytest.raises(RunFailed) as caught:
        work.of(stdout)
    assert caught.value.code == "command_no_work"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            ("sh", "-c", "echo one; echo two >&2; echo three >&2; exit 3"),
            "ended with code 3: one / two / three",
        ),
        (("sh", "-c", "kill -9 $$"), "was killed by signal 9"),
        (("/nowhere/program",), "cannot start /nowhere/program"),
    ],
)
def test_a_failing_command_is_a_failed_run_with_its_last_lines(argv: tuple[str, ...], words: str) -> None:
    with pytest.raises(RunFailed, match=words) as caught:
        outcome(settings(*argv))
    assert caught.value.code == "command_failed"


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(RunFailed, match="did not end in time"):
        outcome(settings("sh", "-c", f"sleep 600 & echo $! >{pid}; wait", timeout_s=0.3))
    assert not alive(pid)


def test_a_server_program_stands_beside_it_and_ends_with_the_session(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = ["sh", "-c", f"echo $$ >{pid}; echo listening; exec sleep 600"]
    of = settings("sh", "-c", f"kill -0 $(cat {pid})", server=server, server_ready="listen")
    assert outcome(of).run_fields["work"]["quantity"] == 1.0
    assert not alive(pid)
    with pytest.raises(RunFailed, match="the server program ended with code 4: no port"):
        outcome(settings("true", server=["sh", "-c", "echo no port >&2; exit 4"], server_ready="x"))


# --- builds ------------------------------------------------------------------------------------------


def commands(builds: dict[str, Any], run: list[str], **said: Any) -> Workload:
    value = {
        "schema_version": 2,
        "name": "builds",
        "load": "command",
        "factors": {"build": ["base", "head"]},
        "command": {"run": run, "builds": builds, **said},
        "blocks": 1,
        "timing": TIMING,
    }
    return loads.made(value, where="test")


def script(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_each_build_runs_its_own_program_in_its_own_folder(tmp_path: Path) -> None:
    of = {"builds": {}, "work_from": {"regex": r"\d+"}, "server_ready": "tool"}
    for number, name in enumerate(("base", "head"), 7):
        script(tmp_path / name / "bin", f'echo "{number} tool"; [ "$1" != wait ] || exec sleep 600')
        (tmp_path / name / "seen").write_text(f"{number}\n")
        of["builds"] |= {name: {"directory": str(tmp_path / name)}}
    document = {"command": {"run": ["./bin/tool"], "server": ["bin/tool", "wait"], **of}}
    assert outcome(document, condition("head")).run_fields["work"]["quantity"] == 8.0
    assert outcome(document, condition("base")).run_fields["work"]["quantity"] == 7.0
    document["command"] |= {"run": ["cat", "seen"], "server": ["sh", "-c", "cat seen; exec sleep 600"]}
    document["command"]["server_ready"] = "8"
    assert outcome(document, condition("head")).run_fields["work"]["quantity"] == 8.0


def test_the_server_is_started_anew_for_another_build(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = ["sh", "-c", f"pwd >>{log}; echo up; exec sleep 600"]
    builds = {name: {"directory": str(tmp_path / name)} for name in ("base", "head")}
    for name in builds:
        (tmp_path / name).mkdir()

    async def runs() -> None:
        load = load_with(
            {"command": {"run": ["true"], "server": server, "server_ready": "up", "builds": builds}}
        )
        for name in ("base", "base", "head"):
            await (await load.open(condition(name), PLACE, 0.0)).end()
        await load.close()

    asyncio.run(runs())
    assert log.read_text().split() == [str(tmp_path / "base"), str(tmp_path / "head")]


def test_a_program_without_a_slash_is_the_systems_whatever_the_folder() -> None:
    of = {"command": {"run": ["gzip"], "builds": {"head": {"directory": "/tmp"}}}}
    assert Settings.of(of).argv_of(Condition("head", {"build": "head"}, "r", 1, 1)) == ["gzip"]


@pytest.mark.parametrize(
    ("builds", "words"),
    [
        ({"base": {"directory": "build"}}, "command.builds.base.directory: build is no absolute path"),
        ({"base": {"folder": "/x"}}, "command.builds.base.folder"),
    ],
)
def test_folders_by_half_a_path_are_refused(builds: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        commands(builds | {"head": {}}, ["true"])


def test_a_folder_or_program_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    for base, words in (("gone", "no folder"), ("head", "no program")):
        builds = {name: {"directory": str(tmp_path / name)} for name in ("base", "head")}
        builds["base"]["directory"] = str(tmp_path / base)
        load = CommandLoad(commands(builds, ["./tool"]), topology())
        with pytest.raises(HostLacks, match=f"there is {words} {tmp_path}"):
            load.require_programs()

# SPDX-License-Identifier: Apache-2.0
"""What a workload of the load ``command`` says, and what it makes of one condition. Pure."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.core.yamlfile import Document
from netjoule.workload.load import BuildSettings, Condition

_DEFAULTS = {"work_unit": "run", "warm_up": 1, "timeout_s": 600.0}
_JSON_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True, slots=True)
class Work:
    """How much work a run of the command did: one, or a number that it printed.

    Attributes:
        regex: its last match in stdout, of the group 1 or of the whole.
        json_path: place in the JSON document that stdout is, such as ``end.sum.bytes`` or ``runs[0].mb``.
    """

    unit: str = "run"
    regex: str | None = None
    json_path: str | None = None

    def of(self, stdout: str, *, cut: bool = False) -> float:
        """The number. Raises RunFailed (command_no_work) when stdout has none, or none above 0."""
        if self.regex is not None:
            found = self._matched(stdout)
        elif self.json_path is not None:
            found = self._at_path(stdout, cut=cut)
        else:
            return 1.0
        try:
            number = float(found)
        except (TypeError, ValueError):
            raise RunFailed(f"the work is {found!r}, not a number", code="command_no_work") from None
        if not 0 < number < float("inf"):
            raise RunFailed(f"the work is {number:g}, not above 0", code="command_no_work")
        return number

    def _matched(self, stdout: str) -> str:
        matches = list(re.finditer(str(self.regex), stdout))
        if not matches:
            raise RunFailed(f"nothing that it printed fits {self.regex!r}", code="command_no_work")
        last = matches[-1]
        return last.group(1) if last.re.groups else last.group(0)

    def _at_path(self, stdout: str, *, cut: bool) -> Any:
        if cut:
            raise RunFailed("it printed too much for one JSON document", code="command_no_work")
        try:
            place: Any = json.loads(stdout)
            for step in _JSON_STEP.findall(str(self.json_path)):
                place = place[int(step[1:-1])] if step.startswith("[") else place[step]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            words = f"its stdout is no JSON document with {self.json_path}"
            raise RunFailed(words, code="command_no_work") from None
        return place


@dataclass(frozen=True, slots=True)
class Build:
    """One arm: what it changes of the command, and of environment and working directory at both ends."""

    run: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None

    def in_directory(self, argv: Sequence[str]) -> list[str]:
        """Program and arguments: a program by a relative path is the one in its directory."""
        program, *arguments = argv
        if self.directory is not None and "/" in program:
            program = str(Path(self.directory) / program)
        return [program, *arguments]


@dataclass(frozen=True, slots=True)
class Settings:
    """The part ``command`` of a workload.

    Attributes:
        run: program and arguments, on the client.
        server: the same of a program beside it on the server; None for none.
        server_ready: what it prints (a regular expression) once it is ready; None: it is ready once started.
        builds: by name; the arm chooses one.
        warm_up: runs of the command before the first that is measured of a condition in a session.
        timeout_s: after it a run of the command is ended, and fails.
    """

    run: tuple[str, ...]
    server: tuple[str, ...] | None = None
    server_ready: str | None = None
    builds: Mapping[str, Build] = field(default_factory=dict)
    work: Work = Work()
    warm_up: int = 1
    timeout_s: float = 600.0

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Settings:
        """From the effective workload, which fits its contract."""
        said = _DEFAULTS | document["command"]
        work = said.get("work_from", {})
        return cls(
            run=tuple(said["run"]),
            server=tuple(said["server"]) if "server" in said else None,
            server_ready=said.get("server_ready"),
            builds={
                name: Build(
                    tuple(one["run"]) if "run" in one else None,
                    one.get("environment", {}),
                    one.get("directory"),
                )
                for name, one in said.get("builds", {}).items()
            },
            work=Work(said["work_unit"], work.get("regex"), work.get("json")),
            warm_up=said["warm_up"],
            timeout_s=float(said["timeout_s"]),
        )

    def build_of(self, condition: Condition) -> Build:
        """The build that a condition names; of one without a name, the command as it is."""
        return self.builds.get(str(condition.factors.get("build", "")), Build())

    def argv_of(self, condition: Condition) -> list[str]:
        """Program and arguments of a condition."""
        return self.argv_in(self.build_of(condition))

    def argv_in(self, build: Build) -> list[str]:
        """The same of a build."""
        return build.in_directory(build.run or self.run)

    def server_in(self, build: Build) -> list[str] | None:
        """The same of the program beside it; None for none."""
        return None if self.server is None else build.in_directory(self.server)

    def environment_of(self, condition: Condition) -> dict[str, str]:
        """Variables that a condition sets: factors in capitals, then what its build has."""
        factors = {name: _text(value) for name, value in condition.factors.items() if name.isupper()}
        return {**self.build_of(condition).environment, **factors}


def complete(document: Document, _folder: Path | None) -> None:
    """Hold an effective workload to the rules of commands; its settings then have their defaults.

    Raises:
        UsageError: naming the field that does not fit.
    """
    value = document.value
    if "command" not in value:
        raise document.refuse(("command",), "the field is missing", "say run: [PROGRAM, ARGUMENT, ...] there")
    said = value["command"] = {**_DEFAULTS, **value["command"]}
    expressions: list[tuple[tuple[str, ...], str | None]] = [
        (("server_ready",), said.get("server_ready")),
        (("work_from", "regex"), said.get("work_from", {}).get("regex")),
    ]
    for place, expression in expressions:
        try:
            re.compile(expression or "")
        except re.error as error:
            what = f"{expression!r} is no regular expression: {error}"
            raise document.refuse(("command", *place), what) from None
    for name in said.get("builds", {}):
        if name not in value["factors"].get("build", ()):
            step = "name it in factors.build, or leave it out"
            raise document.refuse(("command", "builds", name), "no run has this build", step)
        directory = said["builds"][name].get("directory", "/")
        if not Path(directory).is_absolute():
            place = ("command", "builds", name, "directory")
            raise document.refuse(place, f"{directory} is no absolute path", "write it from / on")
    plain = [name for name in value["factors"].get("build", ()) if name not in said.get("builds", {})]
    if len(plain) > 1:
        what = f"{' and '.join(plain)} are the same: neither is told in command.builds"
        raise document.refuse(("factors", "build"), what, "say there what each but one changes")
    if value["sync_pulses"]:
        raise document.refuse(("sync_pulses",), "a command has no bursts", "leave sync_pulses out")


def settings_of(said: Mapping[str, Any], place: Path | None, environment: Mapping[str, str]) -> BuildSettings:
    """What a folder or a program is as a build (`workload.load.Load.build_settings`)."""
    own: dict[str, Any] = {}
    if place is not None:
        own = {"directory": str(place)} if place.is_dir() else {"run": [str(place), *said["run"][1:]]}
    elif installed := shutil.which(said["run"][0]):
        place = Path(installed)
    return BuildSettings(own | ({"environment": dict(environment)} if environment else {}), place)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

# SPDX-License-Identifier: Apache-2.0
"""Drives netjoule-traffic: one server for the session, one `send --hold` per flow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from netjoule.core import programs, secrets
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.hosts.host import Process, ProcessEnded, Server
from netjoule.loads.flow.builds import Build
from netjoule.loads.flow.generators.base import INTERVAL_S, Endpoints, FlowSpec

READY_TIMEOUT_S = 15.0
FLOW_READY_TIMEOUT_S = 90.0  # both ends may have millions of a profile's messages to compute first
MAX_HOLD_S = 3600  # a flow waits for `go` while idle power is measured
# Of a profile: as many as a sender of netjoule-traffic takes, so that what can go up can go down.
MAX_MESSAGES = 20_000_000
# A stream drains for up to 30 s after its schedule (sender.rs), and a receiver waits 60 s beyond it for what
# is under way (receiver.rs): only a sender that is later than both hangs.
REPORT_GRACE_S = 100.0
_SECRET_VARIABLE = "NETJOULE_TRAFFIC_SECRET"  # noqa: S105 - its name
_EXIT_USAGE = 2
_EXIT_HOST_LACKS = 3
_INSTALLED = Build()


class NetjouleTraffic:
    """The project's own generator; sender and sockets stay open and silent around the flow."""

    name = "netjoule-traffic"

    def __init__(self, build: Build = _INSTALLED) -> None:
        """That of a build."""
        self._build = build

    def require(self) -> None:
        """Nothing but the program. Raises HostLacks without it."""
        self._build.require()
        programs.find(self.name)

    async def version(self) -> str:
        """Its version, as it says it; of a build with the digest of its program."""
        if not self._build.name:
            return await programs.version_of(self.name)
        self.require()
        return await asyncio.to_thread(self._build.version)

    async def serve(self, ends: Endpoints) -> Server:
        """Start the server; it answers all flows of a session."""
        argv = [*await self._build.on(ends.server), "serve", "--bind", ends.server_test_address]
        argv += ["--control-bind", ends.server_control_address, "--port", str(ends.server_port), "--json"]
        if ends.flows > 1:
            argv += ["--max-flows", str(ends.flows)]
        argv += ["--max-hold-s", str(MAX_HOLD_S)]
        if ends.server_sends_profile:
            argv += ["--max-messages", str(MAX_MESSAGES)]
        argv += _secret_arguments(ends)
        process = await ends.server.start(argv, name=f"{self.name} serve", env=self._environment(ends))
        try:
            await process.expect("listening", READY_TIMEOUT_S)
        except BaseException:
            await process.stop()
            raise
        return Server(process)

    async def open(self, spec: FlowSpec, ends: Endpoints) -> _TrafficFlow:
        """Start a sender that waits for `go`. Raises RunFailed (generator_failed) when it is not ready."""
        argv = [*await self._build.on(ends.client), *send_arguments(spec, ends)]
        process = await ends.client.start(argv, name=f"{self.name} send", env=self._environment(ends))
        flow = _TrafficFlow(process, spec.duration_s)
        try:
            if spec.profile is not None:
                # Over stdin, so that no file need be brought to the host.
                await process.write_line(json.dumps(spec.profile))
            await process.expect("ready", FLOW_READY_TIMEOUT_S)
        except BaseException as error:
            await flow.end()
            if isinstance(error, ProcessEnded):
                raise _coded(error) from error
            raise
        return flow

    def _environment(self, ends: Endpoints) -> dict[str, str]:
        return {**self._build.environment, **_secret_environment(ends)}


class _TrafficFlow:
    holds = True

    def __init__(self, process: Process, duration_s: float) -> None:
        self._process: Process | None = process
        self._duration_s = duration_s

    async def go(self) -> None:
        assert self._process is not None
        await self._process.write_line("go")

    async def report(self) -> dict[str, Any]:
        assert self._process is not None
        try:
            event = await self._process.expect("report", self._duration_s + REPORT_GRACE_S)
        except ProcessEnded as error:
            raise _coded(error) from error
        return {key: value for key, value in event.items() if key != "event"}

    async def end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await process.write_line("end")
            await process.finish(grace_s=2.0)


def send_arguments(spec: FlowSpec, ends: Endpoints) -> list[str]:
    """Arguments of `netjoule-traffic send` for one flow.

    The rate goes out in bit/s without a prefix, so that no rounding of units can creep in.
    """
    argv = ["send", "--transport", spec.transport]
    if spec.profile is None:
        argv += ["-b", str(round(spec.offered_rate_mbps * 1e6)), "-l", str(spec.payload_bytes)]
    else:
        argv += ["--profile", "-", "--schedule-seed", str(spec.schedule_seed)]
    argv += ["-t", f"{spec.duration_s:.6f}", "-i", f"{INTERVAL_S:g}"]
    argv += ["--seed", str(spec.seed), "--pacing", spec.pacing, "--window-us", str(spec.window_us)]
    if spec.gso:
        argv.append("--gso")
    argv += limit_arguments(spec.pacing_limits)
    for name, value in spec.options.items():
        argv += _option_arguments(name.replace("_", "-"), value)
    if spec.direction == "down":
        argv.append("-R")
    if spec.transport != "null":
        argv += ["--to", _joined(ends.server_test_address, ends.server_port)]
        argv += ["--control", _joined(ends.server_control_address, ends.server_port)]
        argv += _secret_arguments(ends)
    return [*argv, "--hold", "--json"]


def limit_arguments(limits: Mapping[str, float]) -> list[str]:
    """What the pacing certificate is held to, to the last digit, as arguments of `send` and `selftest`."""
    return [word for name, value in limits.items() for word in ("--pacing-limit", f"{name}={value!r}")]


def _option_arguments(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def _secret_arguments(ends: Endpoints) -> list[str]:
    """A reference to `_secret_environment`'s variable: every user of a host can read arguments."""
    return [] if ends.traffic_secret is None else ["--secret", f"env:{_SECRET_VARIABLE}"]


def _secret_environment(ends: Endpoints) -> dict[str, str]:
    if ends.traffic_secret is None:
        return {}
    return {_SECRET_VARIABLE: secrets.resolve(ends.traffic_secret, where="traffic_secret").reveal()}


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _coded(error: ProcessEnded) -> RunFailed | HostLacks | UsageError:
    """The sender's failure as the orchestrator's: what no repetition heals ends the campaign."""
    if error.exit_status == _EXIT_HOST_LACKS:
        return HostLacks(error.what)
    if error.exit_status == _EXIT_USAGE:
        return UsageError(error.what)
    lost = "flow_lost_control" if "control" in error.what else "generator_failed"
    return RunFailed(error.what, code=error.code or lost)

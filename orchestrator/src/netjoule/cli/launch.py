# SPDX-License-Identifier: Apache-2.0
"""From a command to a campaign: checks outside, then the run itself inside the testbed's sandbox."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

import netjoule
import netjoule_contracts as contracts
from netjoule import loads
from netjoule.analysis import analysis
from netjoule.cli.progress import progress_sink
from netjoule.core import programs, secrets
from netjoule.core.console import Output
from netjoule.core.errors import InvalidData, NetjouleError, RunFailed, UsageError, file_errors
from netjoule.core.reason import explained
from netjoule.core.words import counted
from netjoule.design import instruments, limits, resolution, timeline
from netjoule.design.run_table import last_attempts
from netjoule.execution.runner import Outcome
from netjoule.hosts import sandbox
from netjoule.loads import load_of
from netjoule.store import folder_limits
from netjoule.store.campaign import Campaign
from netjoule.store.fingerprint import host_fingerprint
from netjoule.testbeds import router_settings
from netjoule.testbeds.emulated import config
from netjoule.testbeds.simulated import simulator
from netjoule.topology import topology
from netjoule.topology.topology import Topology
from netjoule.workload import workload
from netjoule.workload.load import Load
from netjoule.workload.workload import Workload

DEFAULT_TOPOLOGY = "testbed-topology.yaml"
Rigs = Callable[[Campaign, Output], Outcome]
"""Runs what is left of a campaign on its rigs."""
_TOPOLOGIES = "testbed/topologies"
_MOST_TOPOLOGIES = 3
"""More would tell nobody which to take."""
_MOST_SAID = 20
_PROGRAMS = {
    topology.EMULATED: ("netjoule-link", "netjoule-meters", "netjoule-device"),
    topology.SIMULATED: (simulator.PROGRAM,),
}
"""What a testbed of a kind starts on this machine."""
_ON_THIS_MACHINE = tuple(_PROGRAMS)


@dataclass(frozen=True, slots=True)
class Inputs:
    """A workload and a testbed that fit each other, with the files they came from."""

    workload: Workload
    topology: Topology
    workload_file: Path
    topology_file: Path


def load_inputs(workload_name: str, testbed: Path | None, rigs: int | None = None) -> Inputs:
    """Read and check workload and topology.

    Args:
        workload_name: path of a YAML file, or a name of the library.
        testbed: path of a topology file; the shipped emulated one by default.
        rigs: how many of the topology's rigs; None: its first one, by itself.

    Raises:
        NetjouleError: naming what does not fit.
    """
    direct = Path(workload_name)
    workload_file = (
        direct if direct.is_file() else workload.find(workload_name, programs.shipped("workloads"))
    )
    topology_file = testbed or programs.shipped(DEFAULT_TOPOLOGY)
    asked = loads.read(workload_file, partial(_too_short, topology_file))
    where = topology.load(topology_file).on_rigs(rigs)
    return fitting(Inputs(asked, where, workload_file, topology_file))


def _too_short(topology_file: Path, value: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Windows of a workload with other defects that the testbed's meters cannot resolve."""
    timing = value.get("timing")
    with suppress(NetjouleError):  # said once the workload is right
        meters = topology.load(topology_file).meters
        paces = [instruments.pace_of(meter) for meter in meters]
        window = _window(value.get("load", ""))
        found = timeline.too_short(timing if isinstance(timing, dict) else {}, paces, window)
        for one in {one.name: one for one in found}.values():
            yield ("timing", one.name), one.what + (f"; set {one.fix}" if one.fix else "")


def _window(load: Any) -> str:
    """Kind of a load's window; fixed of one that there is not."""
    return str(contracts.loads().get(str(load), {}).get("window", "fixed"))


def fitting(inputs: Inputs) -> Inputs:
    """The same inputs, when the workload fits each rig of the testbed.

    Raises:
        NetjouleError: naming what does not fit.
    """
    for rig in inputs.topology.rigs:
        _require_fit(replace(inputs, topology=inputs.topology.of_rig(rig)))
    return inputs


def _require_fit(inputs: Inputs) -> None:
    try:
        limits.check_workload(inputs.workload, inputs.topology)
    except UsageError as error:
        others = [f"--testbed {name}" for name in _topologies_for(inputs.workload)]
        if not 0 < len(others) <= _MOST_TOPOLOGIES:
            raise
        step = ", or ".join(
            filter(None, (f"give {' or '.join(others)}, which the workload fits", error.next_step))
        )
        raise UsageError(error.what, where=error.where, next_step=step) from error
    load = load_of(inputs.workload, inputs.topology)
    load.require_fit()
    inputs.topology.first_hosts(load.hosts)
    load.require()
    router_settings.require(inputs.workload, inputs.topology)
    if inputs.topology.kind == topology.EMULATED:
        config.check_control(inputs.topology)
        config.check_emulations(inputs.topology)
    paces = [instruments.pace_of(meter) for meter in inputs.topology.meters]
    resolution.check_models(inputs.workload, inputs.topology)
    resolution.check_form(inputs.workload, inputs.topology)
    timeline.check_timing(inputs.workload.timing, paces, _window(inputs.workload.load))


def _topologies_for(asked: Workload) -> Iterator[str]:
    """Shipped topologies that a workload fits, as they are given on a command line."""
    for path in sorted(programs.shipped(_TOPOLOGIES).glob("*.yaml")):
        with suppress(NetjouleError):
            where = topology.load(path)
            limits.check_workload(asked, where)
            load_of(asked, where).require_fit()
            yield f"{_TOPOLOGIES}/{path.name}"


def with_meter(inputs: Inputs, name: str, folder: Path, output: Output) -> Inputs:
    """The demo as another meter sees it; its workload and topology are written to `folder`.

    Raises:
        UsageError: when there is no demo with that meter.
    """
    from netjoule.cli import demo_meters

    load, where, said = demo_meters.demo_for(name, inputs.workload, inputs.topology)
    for line in said:
        output.say(line)
    output.event({"event": "demo_meter", "meter": name, "said": said})
    workload_file, topology_file = demo_meters.write(folder, load, where)
    return load_inputs(str(workload_file), topology_file)


def default_out(name: str, now: datetime) -> Path:
    """results/<name>-<UTC>, in the working directory."""
    return Path("results") / f"{name}-{now:%Y%m%dT%H%M%SZ}"


def write_workload(file: Path, asked: Mapping[str, Any], by: str) -> None:
    """Write the workload file of a command line, for people to change and run again; `by` which it is."""
    text = yaml.safe_dump(dict(asked), sort_keys=False, default_flow_style=None, width=100)
    with file_errors("write", file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Written by {by}.\n{text}")


def draw_seed() -> int:
    """A seed nobody chose, 48 bits."""
    return int.from_bytes(os.urandom(6), "big")


def start(
    inputs: Inputs,
    out: Path,
    seed: int,
    now: datetime,
    output: Output,
    *,
    rigs: Rigs | None = None,
    verify: bool = True,
    trust_vars: bool = False,
) -> int:
    """Create a campaign and run it; the exit code of the command.

    The hosts of a lab are first logged in to, and with `verify` compared with the topology, while no other
    campaign has them: a campaign that cannot begin leaves no folder. For an emulated testbed the same command
    runs once more inside the sandbox; this process then only waits for it. With `rigs` each block has a
    process, and a sandbox, of its own instead. For `trust_vars` see `provision.Request`.
    """
    folder_limits.require_free(out)
    require_secrets(inputs.topology)
    require_programs(inputs)
    if inputs.topology.kind == topology.EMULATED and sandbox.inside() is None and rigs is None:
        argv = ["run", str(inputs.workload_file), "--testbed", str(inputs.topology_file)]
        return _inside([*argv, "--out", str(out), "--seed", str(seed)], output)
    if inputs.topology.kind not in _ON_THIS_MACHINE:
        _require_hosts(inputs, out, seed, now, output, verify=verify, trust_vars=trust_vars)
    with Campaign.create(
        out,
        workload=inputs.workload,
        topology=inputs.topology,
        seed=seed,
        versions=_versions(),
        host=host_fingerprint(),
        created=now,
    ) as campaign:
        if inputs.topology.kind in _ON_THIS_MACHINE:
            return _run(campaign, output, rigs)
        from netjoule.hosts.ssh import HostInUse

        campaign.remember_testbed(inputs.topology_file)
        try:
            return _run(campaign, output, rigs)
        except HostInUse:  # it takes the locks anew, and another may have been faster
            campaign.remove_untouched()
            raise


def _versions() -> dict[str, str | None]:
    """What is known before the testbed is up; the commit only of a git checkout."""
    known: dict[str, str | None] = {"netjoule": netjoule.__version__, "python": platform.python_version()}
    commit = programs.commit(programs.checkout())
    return known | ({"commit": commit} if commit else {})


def resume(
    path: Path,
    output: Output,
    *,
    rigs: Callable[[Campaign], Rigs | None] = lambda _: None,
    verify: bool = True,
    trust_vars: bool = False,
) -> int:
    """Run what is left of a campaign; the exit code of the command.

    `rigs` says what runs it on rigs, None where it needs none; the others are as of `start`.
    """
    campaign = Campaign.read(path)
    require_secrets(campaign.topology)
    load = load_of(campaign.workload, campaign.topology)
    load.require()
    on_rigs = rigs(campaign)
    if campaign.topology.kind == topology.EMULATED and sandbox.inside() is None and on_rigs is None:
        return _inside(["resume", str(path)], output)
    with Campaign.open(path) as campaign:
        _say_repairs(campaign, output)
        if campaign.next_mini_block() is None and not campaign.finished_without_result():
            runs = len(campaign.rows())
            output.say(f"{path}: {f'all {runs} runs are' if runs > 1 else 'its run is'} finished")
            output.event({"event": "nothing_to_do", "campaign": str(path)})
            return 0
        if campaign.topology.kind not in _ON_THIS_MACHINE:
            _require_as_before(campaign, load, output, verify=verify, trust_vars=trust_vars)
        return _run(campaign, output, on_rigs)


def _say_repairs(campaign: Campaign, output: Output) -> None:
    """Say what was cut from the campaign's files, and which finished runs are run again for their losses."""
    until_s = max((s["t_end_s"] or 0.0 for s in campaign.document["sessions"]), default=0.0)
    for file, size in campaign.cut.items():
        ends_s, lacks = campaign.ends_s.get(file), ""
        if ends_s is not None and ends_s < until_s:
            lacks = f"; what is left ends at {ends_s:g} s of {until_s:g} s"
        output.say(f"{campaign.path / file}: cut {size} bytes of an unfinished last line{lacks}")
        output.event({"event": "cut", "file": file, "bytes": size})
    for place, (run_id, why) in enumerate(campaign.lost.items()):
        if place < _MOST_SAID:
            output.say(f"run {run_id} is run again: {why}")
        output.event({"event": "run_again", "run_id": run_id, "detail": why})
    if len(campaign.lost) > _MOST_SAID:
        output.say(f"and {len(campaign.lost) - _MOST_SAID} more")


def _hosts_of(
    of: Topology, path: Path, created: datetime, seed: int, load: Load, output: Output
) -> AbstractContextManager[None]:
    """The hosts that a campaign needs, kept for it. Raises NetjouleError when it cannot have one."""
    from netjoule.testbeds.lab import control_network, host_locks

    owner = host_locks.campaign_owner(path, created, seed)
    needed = control_network.needed_hosts(of, load.hosts)
    return host_locks.held(of, needed, owner, all_needed=True, tell=output.error)


def _require_hosts(
    inputs: Inputs, out: Path, seed: int, now: datetime, output: Output, *, verify: bool, trust_vars: bool
) -> None:
    """Log in to the hosts of each rig and, with `verify`, compare them, while no other campaign has them."""
    for rig in inputs.topology.rigs:
        of = inputs.topology.of_rig(rig)
        load = load_of(inputs.workload, of)
        with _hosts_of(of, out, now, seed, load, output), ExitStack() as stack:
            if verify and "rig" not in of.document:
                require_as_described(inputs.topology_file, output, trust_vars=trust_vars)
            elif verify:
                from netjoule.provisioning.provision import written

                testbed = stack.enter_context(written(of, inputs.topology_file.parent))
                called = f"rig {rig} of {inputs.topology_file}"
                require_as_described(testbed, output, called=called, trust_vars=trust_vars)


def _require_as_before(
    campaign: Campaign, load: Load, output: Output, *, verify: bool, trust_vars: bool
) -> None:
    """Hold the hosts to the campaign's own topology: the file that it came from may have changed since."""
    from netjoule.provisioning.provision import written

    beside = None if campaign.testbed_file is None else campaign.testbed_file.parent
    if beside is not None and not beside.is_dir():
        output.error(f"{beside} is gone: variables that stood there (group_vars) have their defaults")
    for rig in campaign.topology.rigs:
        of = campaign.topology.of_rig(rig)
        with _hosts_of(of, campaign.path, campaign.created, campaign.seed, load, output):
            if verify:
                with written(of, beside) as testbed:
                    recorded = f"the topology in {campaign.path / 'campaign.json'}"
                    require_as_described(testbed, output, called=recorded, trust_vars=trust_vars)


def require_as_described(
    testbed: Path, output: Output, *, called: str = "", trust_vars: bool = False
) -> None:
    """Refuse a lab whose hosts are not as the topology says, before anything runs there.

    Args:
        testbed: topology file.
        output: takes what differs.
        called: what messages name it; by default the file.
        trust_vars: see `provision.Request`.

    Raises:
        HostLacks: naming what differs; each difference is told on stderr as it is found.
    """
    from netjoule.cli import provision
    from netjoule.diagnostics.doctor import Finding
    from netjoule.provisioning.provision import Request

    def tell(finding: Finding) -> None:
        if not finding.ok:
            output.error(f"{finding.name}: {finding.seen}")

    output.error(f"comparing the hosts with {called or testbed} (--no-verify leaves it out)")
    request = Request(testbed, "verify", trust_vars=trust_vars)
    provision.tell_variables(request, output)
    provision.compare(request, tell, called=called)


def require_secrets(of: Topology) -> None:
    """Resolve every reference once, so that a missing secret stops the command before the first packet.

    On a lab the radio network's passphrase is not needed: it belongs to provisioning.
    """
    flows = [of.document["meters"], of.traffic_secret]
    needed = of.document if of.kind in _ON_THIS_MACHINE else flows
    for reference in secrets.references(needed):
        secrets.resolve(reference, where=f"topology {of.name}")


def require_programs(inputs: Inputs) -> None:
    """Find every program that the campaign will start, before its folder is made.

    Raises:
        HostLacks: naming the first that is missing, or R's package where it is stale.
    """
    analysis.require_fresh_r()
    load_of(inputs.workload, inputs.topology).require_programs()
    for name in _PROGRAMS.get(inputs.topology.kind, ()):
        programs.find(name)


def _inside(argv: list[str], output: Output) -> int:
    options = ["--json"] if output.json_lines else []
    verbose = ["-v"] if any(a in ("-v", "--verbose") for a in sys.argv[1:]) else []
    return sandbox.run_inside([*programs.PYTHON, "-m", "netjoule", *argv, *options, *verbose])


def _run(campaign: Campaign, output: Output, rigs: Rigs | None = None) -> int:
    try:
        outcome = rigs(campaign, output) if rigs is not None else _run_alone(campaign, output)
    except RunFailed as error:
        rows = campaign.rows()
        failed = {row.reason for row in rows if row.status == "invalid"}
        if error.code in failed and all(row.status != "valid" for row in rows):
            # Given up since its work always failed: there is nothing but invalid data.
            raise InvalidData(error.what, where=error.where, next_step=error.next_step) from error
        raise
    if outcome.end == "stopped":
        output.error(
            f"netjoule: stopped after {counted(outcome.runs_done, 'run')};"
            f" go on with 'netjoule resume {campaign.path}'"
        )
        return 1
    return _verdict(campaign, output)


def _run_alone(campaign: Campaign, output: Output) -> Outcome:
    from netjoule.execution import runner

    with progress_sink(output, len(last_attempts(campaign.rows()))) as sink:
        return runner.run_campaign(campaign, sink)


def _verdict(campaign: Campaign, output: Output) -> int:
    """Say how the campaign ended; invalid runs that no repeat cured are named by reason."""
    rows = campaign.rows()
    bad = [row for row in last_attempts(rows) if row.status == "invalid"]
    done = sum(r.status == "valid" for r in rows)
    output.event(
        {"event": "campaign", "path": str(campaign.path), "runs_done": done, "runs_invalid": len(bad)}
    )
    output.say(f"{counted(done, 'run')} done, {len(bad)} invalid: {campaign.path}")
    for reason in sorted({r.reason for r in bad}):
        output.say(f"  {sum(r.reason == reason for r in bad)} x {reason}: {explained(reason)}")
    if bad and not done:
        raise InvalidData("no run of the campaign is valid", where=str(campaign.path))
    return 0

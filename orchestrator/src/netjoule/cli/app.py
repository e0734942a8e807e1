# SPDX-License-Identifier: Apache-2.0
"""The command line: what was typed, checked, handed to the part that does it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from netjoule.cli.compare import compare
from netjoule.cli.gate import gate
from netjoule.cli.history import history
from netjoule.cli.measure import measure
from netjoule.cli.quick import quick
from netjoule.cli.table_iv import table_iv
from netjoule.cli.typed import Json, Out, Testbed
from netjoule.core.clock import SystemClock
from netjoule.core.console import Output, describe_error, write_what_can_be_written
from netjoule.core.errors import InvalidData, NetjouleError, UsageError, refused
from netjoule.core.signals import exit_on_signals
from netjoule.coursework.cli import app as coursework_app
from netjoule.importing.cli import import_results
from netjoule.publishing.cli import publish_campaign
from netjoule.savings.cli import savings
from netjoule.testbeds.guest.cli import app as guest_app
from netjoule_meters.usage import bare_help, help_where_arguments_lack, usage_line

if TYPE_CHECKING:
    from netjoule.diagnostics.doctor import Finding

app = typer.Typer(
    name="netjoule",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(coursework_app, name="coursework")
app.add_typer(guest_app, name="guest")

Workload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD", help="A workload file, or a name from workloads/ (demo, table-i, ...)."
    ),
]
CampaignDir = Annotated[
    Path, typer.Argument(metavar="CAMPAIGN", help="Folder of a campaign, e.g. results/NAME.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**53 - 1, help="Seed of every random choice [default: drawn]."),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify", help="Compare a lab's hosts with the topology first, as doctor does."
    ),
]
TrustVars = Annotated[
    bool,
    typer.Option(
        "--trust-vars",
        help="Read group_vars and host_vars beside the topology: code, which runs programs on this machine.",
    ),
]
Rigs = Annotated[
    int | None,
    typer.Option("--rigs", metavar="N", min=1, max=64, help="Blocks side by side on N rigs, by Dask."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Of a Dask scheduler that runs already."),
]
Margin = Annotated[
    str | None,
    typer.Option("--margin", metavar="PERCENT", help="Ask whether transports are equivalent within it."),
]


def _version(wanted: bool) -> None:
    if wanted:
        import netjoule

        typer.echo(f"netjoule {netjoule.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show what caused an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """What does a megabit cost, in joules, over UDP, DCCP, TCP and QUIC? And any program?

    Start with: netjoule demo
    """
    # -v may stand anywhere before --; main() takes it out before the commands see it.


@app.command()
def demo(
    out: Out = None,
    testbed: Testbed = None,
    seed: Seed = None,
    meter: Annotated[
        str | None, typer.Option(metavar="NAME", help="Emulate this meter: wt210, wt310, hm8115, ...")
    ] = None,
    json: Json = False,
) -> None:
    """Run the demo, analyse it and print E_A per transport.

    Example: netjoule demo
    """
    from netjoule.analysis import analysis
    from netjoule.cli import launch
    from netjoule.cli import results as analysis_console
    from netjoule.core import programs

    output = Output(json_lines=json)
    now = SystemClock().utc_now()
    with ExitStack() as stack:
        inputs = launch.load_inputs(str(programs.shipped("workloads/flow/demo.yaml")), testbed)
        if meter is not None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="netjoule-demo-")))
            inputs = launch.with_meter(inputs, meter, folder, output)
        analysis.require_r()
        place = out or launch.default_out(inputs.workload.name, now)
        code = launch.start(inputs, place, _seed(seed, inputs), now, output)
    if code == 0:
        analysis_console.tell(place, "report", output)
    raise typer.Exit(code)


app.command()(quick)
# What stands behind the program is its own, options too.
app.command(context_settings={"allow_interspersed_args": False})(measure)


@app.command()
def plan(
    workload: Workload,
    testbed: Testbed = None,
    seed: Seed = None,
    rigs: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=64, help="On N rigs of the testbed.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Also print every run, in order.")] = False,
    mde: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="How many blocks find this difference.")
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Earlier campaign: how much blocks differ.")
    ] = None,
    power: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Chance of finding it [default: 80%].")
    ] = None,
    json: Json = False,
) -> None:
    """Say what a workload takes and can show; nothing runs.

    Example: netjoule plan table-i
    """
    from netjoule.cli import launch
    from netjoule.cli import plan as plan_console
    from netjoule.diagnostics.sample_size import Request

    inputs = launch.load_inputs(workload, testbed, rigs)
    asked = Request(mde, pilot, power)
    plan_console.tell(inputs, seed, asked, Output(json_lines=json), rows=rows)


@app.command()
def run(
    workload: Workload,
    testbed: Testbed = None,
    out: Out = None,
    seed: Seed = None,
    rigs: Rigs = None,
    scheduler: Scheduler = None,
    verify: Verify = True,
    trust_vars: TrustVars = False,
    json: Json = False,
) -> None:
    """Run a campaign and print its table; with --json each run, and no table.

    Example: netjoule run skype --out results/skype-1
    """
    from netjoule.cli import launch
    from netjoule.cli import rigs as rigs_console

    now = SystemClock().utc_now()
    inputs = launch.load_inputs(workload, testbed, rigs)
    on_rigs = rigs_console.runner(rigs_console.Asked(rigs, scheduler), inputs.workload, inputs.topology)
    place = out or launch.default_out(inputs.workload.name, now)
    output = Output(json_lines=json)
    code = launch.start(
        inputs,
        place,
        _seed(seed, inputs),
        now,
        output,
        rigs=on_rigs,
        verify=verify,
        trust_vars=trust_vars,
    )
    _conclude(code, place, output)


@app.command()
def resume(
    campaign: CampaignDir,
    scheduler: Scheduler = None,
    verify: Verify = True,
    trust_vars: TrustVars = False,
    write_out: Annotated[
        str | None,
        typer.Option(metavar="RUN_ID", help="Simulate this run again, and write all of it to runs/RUN_ID."),
    ] = None,
    json: Json = False,
) -> None:
    """Go on with a campaign that was stopped, on the rigs that it began with.

    Finished runs stay as they are.

    Example: netjoule resume results/skype-1
    """
    from netjoule.cli import launch
    from netjoule.cli import rigs as rigs_console

    output = Output(json_lines=json)
    if write_out is not None:
        rigs_console.write_out(campaign, write_out, output)
        return
    on_rigs = partial(rigs_console.runner_of, scheduler)
    code = launch.resume(campaign, output, rigs=on_rigs, verify=verify, trust_vars=trust_vars)
    _conclude(code, campaign, output)


@app.command()
def check(campaign: CampaignDir, json: Json = False) -> None:
    """Name each defect of a campaign's files, and what its plan still lacks; executes nothing.

    Example: netjoule check results/skype-1
    """
    from netjoule.core import files
    from netjoule.core.safe_text import escaped
    from netjoule.core.words import counted
    from netjoule.store.foreign_files import FOREIGN, foreign_files
    from netjoule.validation.check import check_campaign, unfinished, valid_runs

    output = Output(json_lines=json)
    if written := files.being_written(campaign):
        output.error(written)
    count = 0
    for defect in check_campaign(campaign):
        count += 1
        output.say(str(defect))
        output.event({"event": "defect", **asdict(defect)})
    foreign = list(foreign_files(campaign))
    for name in foreign:
        output.say(f"{escaped(name)}: {FOREIGN}")
        output.event({"event": "foreign_file", "file": name})
    missing, valid = unfinished(campaign), valid_runs(campaign)
    checked = {"event": "checked", "campaign": str(campaign), "defects": count, "foreign": len(foreign)}
    output.event(checked | {"unfinished": missing, "valid": valid})
    if count or missing:
        defects = counted(count, "defect") if count else ""
        go_on = f"'netjoule resume {campaign}' runs what is left" if missing else ""
        raise InvalidData("; ".join(filter(None, (defects, missing))), where=str(campaign), next_step=go_on)
    if not valid:
        again = "remove the cause, then run its workload anew"
        raise InvalidData("no defects, but no run is valid", where=str(campaign), next_step=again)
    output.say(f"{campaign}: no defects")


@app.command()
def analyse(campaign: CampaignDir, margin: Margin = None, json: Json = False) -> None:
    """Compute tables and figures with R and print E_A.

    Example: netjoule analyse results/skype-1
    """
    from netjoule.cli import results as analysis_console

    analysis_console.tell(campaign, "analyse", Output(json_lines=json), margin)


@app.command()
def report(
    campaigns: Annotated[
        list[Path], typer.Argument(metavar="CAMPAIGN [OTHER]", help="Folder of a campaign, or of two.")
    ],
    margin: Margin = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report of two campaigns [default: report-A-and-B.html, here]."),
    ] = None,
    json: Json = False,
) -> None:
    """Write report.html, one file that needs no network; of two campaigns one that compares them.

    Example: netjoule report results/skype-1

    Example: netjoule report results/before results/after
    """
    from netjoule.cli import results as analysis_console

    output = Output(json_lines=json)
    if len(campaigns) > 1:
        if margin is not None:
            raise UsageError(
                "--margin needs a single campaign: two compared side by side are not tested",
                next_step="leave it out",
            )
        analysis_console.overlay(campaigns, output, out)
        return
    if out is not None:
        raise UsageError(
            "--out needs two campaigns; the report of one is written into its folder",
            next_step="leave it out",
        )
    analysis_console.tell(campaigns[0], "report", output, margin)


app.command()(compare)
app.command()(gate)
app.command()(history)
app.command("table-iv")(table_iv)
app.command("import")(import_results)
app.command("publish")(publish_campaign)


@app.command(context_settings={"allow_extra_args": True, "allow_interspersed_args": False})
def meters(context: typer.Context) -> None:
    """Do what netjoule-meters does: list, probe, read, log, emulate, range, calibrate, clock.

    Example: netjoule meters probe
    """
    import os

    from netjoule.core import programs

    program = programs.find("netjoule-meters")
    # This process becomes the other one: its output, its signals and its exit code.
    os.execv(program, [program, *(context.args or ["--help"])])  # noqa: S606 - ours, from a list


@app.command()
def provision(
    testbed: Testbed = None,
    check: Annotated[bool, typer.Option("--check", help="Say what would change; change nothing.")] = False,
    limit: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Only hosts of this role, or one host.")
    ] = None,
    teardown: Annotated[bool, typer.Option("--teardown", help="Undo it.")] = False,
    inventory: Annotated[
        bool, typer.Option("--inventory", help="Only print the hosts as Ansible's inventory (JSON).")
    ] = False,
    reveal: Annotated[bool, typer.Option("--reveal", hidden=True)] = False,
    trust_vars: TrustVars = False,
    json: Json = False,
) -> None:
    """Bring the hosts of a topology into their roles, over SSH.

    Example: netjoule provision --testbed testbed/topologies/modern.yaml
    """
    from netjoule.cli import for_ansible
    from netjoule.core import programs

    if reveal:
        for_ansible.print_secrets()
        return
    place = testbed or programs.shipped("testbed-topology.yaml")
    if inventory:
        for_ansible.print_inventory(place)
        return
    from netjoule.cli import provision as provision_console
    from netjoule.provisioning import provision as provisioning
    from netjoule.testbeds.lab.host_locks import undisturbed

    output = Output(json_lines=json)
    request = provisioning.Request(place, "teardown" if teardown else "site", check, limit, trust_vars)
    provision_console.tell_variables(request, output)
    with provisioning.by_rig(request) as requests:
        if len(requests) > 1:
            provision_console.run_each("provision", requests, output)
            return
        (request,) = requests.values()
        with (
            undisturbed("provision", provisioning.prepare(request), limit),
            provision_console.progress(output) as sink,
        ):
            outcome = provisioning.run(request, sink)
    provision_console.tell(request, outcome, output)


@app.command()
def doctor(
    results: Annotated[Path, typer.Option(help="Folder that results would go to.")] = Path("results"),
    testbed: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare the hosts of this topology with it instead.")
    ] = None,
    trust_vars: TrustVars = False,
    json: Json = False,
) -> None:
    """Try what this host, or a testbed, has and say what to do about the rest.

    Example: netjoule doctor
    """
    from netjoule.core.errors import HostLacks
    from netjoule.diagnostics.doctor import examine

    output = Output(json_lines=json)
    lacking: list[str] = []
    show = partial(_show_finding, output, lacking)
    if testbed is not None:
        from netjoule.cli import provision as provision_console
        from netjoule.provisioning.provision import Request, by_rig, prepare
        from netjoule.testbeds.lab.host_locks import undisturbed

        request = Request(testbed, "verify", trust_vars=trust_vars)
        provision_console.tell_variables(request, output)
        with by_rig(request) as requests:
            if len(requests) > 1:
                provision_console.compare_each(requests, show)
                return
            (request,) = requests.values()
            with undisturbed("doctor", prepare(request)):
                called = "" if request.testbed == testbed else str(testbed)
                provision_console.compare(request, show, called=called)
        return
    for finding in examine(results):
        show(finding)
    if lacking:
        raise HostLacks(f"this host lacks: {', '.join(lacking)}")


@app.command()
def selftest(
    workload: Annotated[
        str, typer.Argument(metavar="[WORKLOAD]", help="The workload to check for: a file, or a name.")
    ] = "demo",
    testbed: Testbed = None,
    time_s: Annotated[float, typer.Option(min=0.1, max=600, help="Length of each flow, in s.")] = 2.0,
    json: Json = False,
) -> None:
    """Certify that the hosts keep the schedules of a workload, before a campaign relies on it.

    On a lab the hosts of both ends are asked, else this host; for as many flows at once as a run has there.

    Example: netjoule selftest skype
    """
    from netjoule.cli import launch
    from netjoule.diagnostics import selftest as certifying

    output = Output(json_lines=json)
    inputs = launch.load_inputs(workload, testbed)
    found = certifying.certify(inputs.workload, inputs.topology, time_s, output.error)
    output.show(certifying.table(found))
    for one in found:
        output.event({"event": "selftest", **one})
    certifying.require_passed(found)


def _show_finding(output: Output, lacking: list[str], finding: Finding) -> None:
    mark = "ok  " if finding.ok else "LACK" if finding.needed else "note"
    output.say(f"{mark}  {finding.name:<30} {finding.seen}")
    if not finding.ok and finding.fix:
        output.say(f"      {'':<30} -> {finding.fix}")
    output.event({"event": "finding", **asdict(finding)})
    if finding.needed and not finding.ok:
        lacking.append(finding.name)


app.command("savings")(savings)


@app.command()
def glossary(
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="Only these words.")] = None,
    json: Json = False,
) -> None:
    """Say what the words of tables and figures mean.

    Example: netjoule glossary E_A floor
    """
    from netjoule.core.glossary import lookup

    output = Output(json_lines=json)
    for entry in lookup(words or []):
        unit = f" [{entry.unit}]" if entry.unit not in ("", "1") else ""
        column = f" ({entry.column})" if entry.column and entry.column != entry.term else ""
        output.say(f"{entry.term}{column}{unit}")
        output.say(f"    {entry.meaning}")
        output.event({"event": "word", **asdict(entry)})


help_where_arguments_lack(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    0 fine, 1 failed, 2 usage, 3 host lacks, 4 invalid or inconclusive data.
    """
    typed = list(sys.argv[1:] if argv is None else argv)
    write_what_can_be_written()
    with exit_on_signals():
        try:
            code: Any = run_command(typed)
        except SystemExit as ended:
            code = ended.code
        if code in _ENDED_BY:
            _tell_signal(code)
    sys.exit(code)


def _tell_signal(code: int) -> None:
    """Once: by the command that waits for the one in the sandbox, however that one ended."""
    from netjoule.hosts import sandbox

    if sandbox.inside() is None:
        Output().error(f"netjoule: stopped by {_ENDED_BY[code]}")


_ENDED_BY = {128 + s: s.name for s in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)}


def run_command(typed: Sequence[str]) -> int:
    """Run one command; its exit code. Errors become one line on stderr, with ``-v`` their causes too."""
    # What follows -- is another program's command line.
    end = typed.index("--") if "--" in typed else len(typed)
    verbose = any(word in ("-v", "--verbose") for word in typed[:end])
    words = [word for word in typed[:end] if word not in ("-v", "--verbose")] + list(typed[end:])
    output = Output()
    try:
        context = {"verbose": verbose}
        code: Any = app(args=words, prog_name="netjoule", standalone_mode=False, obj=context)
    except TyperException as error:
        return _usage(error, output)
    except NetjouleError as error:
        _tell(error, output, verbose)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except Exception as error:
        told: Exception = error
        if isinstance(error, OSError) and error.filename is not None:
            told = refused("use", error.filename, error)
            told.__cause__ = error
        _tell(told, output, verbose)
        return 1
    return code if isinstance(code, int) else 0


def _usage(error: TyperException, output: Output) -> int:
    """A wrong command line, or the help that a bare command prints."""
    if (text := bare_help(error)) is not None:
        typer.echo(text)
        return 0
    output.error(usage_line(error, "netjoule"))
    return 2


def _tell(error: Exception, output: Output, verbose: bool) -> None:
    for line in describe_error(error, chain=verbose):
        output.error(line)


def _seed(given: int | None, inputs: Any) -> int:
    """The seed of the command line, else the workload's, else a new one."""
    from netjoule.cli import launch

    if given is not None:
        return given
    return int(inputs.workload.seed) if inputs.workload.seed is not None else launch.draw_seed()


def _conclude(code: int, campaign: Path, output: Output) -> None:
    """End ``run`` and ``resume``: with the table, but for the same command inside the sandbox."""
    from netjoule.cli import results as analysis_console
    from netjoule.hosts import sandbox

    if code == 0 and sandbox.inside() is None:
        analysis_console.after_a_run(campaign, output)
    raise typer.Exit(code)

# SPDX-License-Identifier: Apache-2.0
"""How provisioning is shown: a bar on a terminal, lines elsewhere, NDJSON for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from netjoule.core.console import Output, duration_text
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.core.words import counted
from netjoule.diagnostics.doctor import Finding
from netjoule.provisioning import side_by_side
from netjoule.provisioning.provision import Event, Outcome, Request, prepare, provisioning_helps, run, said
from netjoule.topology.topology import Topology

_WHEN_AWAY = "repeat the command when the cause is away"


@contextmanager
def progress(output: Output) -> Iterator[Callable[[Event], None]]:
    """A sink for the time of a playbook."""
    if output.json_lines:
        yield output.event
    elif output.errors.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"),
            TimeElapsedColumn(),
            console=output.errors,
        ) as bar:
            yield _bar_sink(bar)
    else:
        yield _line_sink(output)


def _bar_sink(bar: Progress) -> Callable[[Event], None]:
    task = bar.add_task("logging in", total=1)
    begun = 0

    def sink(event: Event) -> None:
        nonlocal begun
        if event["event"] == "start":
            bar.update(task, total=event["tasks"])
        elif event["event"] == "task":
            begun += 1
            # Tasks that are included while it runs were not counted beforehand.
            total = max(begun, bar.tasks[0].total or 0)
            text = f"{event['role']}: {event['name']}" if event["role"] else event["name"]
            bar.update(task, description=text, completed=begun - 1, total=total)
        elif event["event"] == "end":
            bar.update(task, description="done", completed=begun, total=begun)
        elif event.get("status") == "changed":
            bar.console.print(f"changed  {event['host']:<16} {event['task']}", markup=False)

    return sink


def _line_sink(output: Output) -> Callable[[Event], None]:
    def sink(event: Event) -> None:
        if event["event"] == "play":
            output.error(f"{event['name']}:")
        elif event.get("status") == "changed":
            output.error(f"  changed  {event['host']:<16} {event['task']}")

    return sink


def tell(request: Request, outcome: Outcome, output: Output) -> None:
    """Say what was done; one line on stderr for each failure.

    Raises:
        RunFailed: when a host failed.
    """
    for failure in outcome.failures:
        output.error(f"{failure.host}: {failure.message} (task: {failure.task})")
    failed = sorted({failure.host for failure in outcome.failures})
    if failed:
        raise RunFailed(
            f"{len(failed)} of {len(outcome.changed)} hosts failed: {', '.join(failed)}",
            next_step=f"what is done stays done; {_WHEN_AWAY}",
        )
    changes = sum(outcome.changed.values())
    took = f"{counted(outcome.tasks, 'task')}, {duration_text(outcome.seconds)}"
    done = {"site": "provisioned", "teardown": "torn down", "verify": "compared"}[request.playbook]
    would = " would be made" if request.check else ""
    output.say(
        f"{counted(len(outcome.changed), 'host')} {done}: {counted(changes, 'change')}{would} ({took})"
    )


def run_each(verb: str, requests: Mapping[str, Request], output: Output) -> None:
    """Run a playbook on the hosts of several rigs side by side, and say what was done on each.

    Args:
        verb: of the command.
        requests: by rig.
        output: takes words and events.

    Raises:
        RunFailed: when a host failed, naming its rig.
    """
    with _undisturbed(verb, requests):
        outcomes = side_by_side.run(requests, _rigs_sink(output))
    failed = []
    for rig, outcome in outcomes.items():
        output.say(f"rig {rig}:")
        try:
            tell(requests[rig], outcome, output)
        except RunFailed as error:
            output.error(f"rig {rig}: {error.what}")
            failed.append(rig)
    if failed:
        raise RunFailed(
            f"{len(failed)} of {len(outcomes)} rigs failed: {', '.join(failed)}",
            next_step=f"what is done stays done; {_WHEN_AWAY}",
        )


def _undisturbed(verb: str, requests: Mapping[str, Request]) -> ExitStack:
    """The hosts of all rigs, kept from campaigns."""
    from netjoule.testbeds.lab.host_locks import undisturbed

    with ExitStack() as stack:
        for request in requests.values():
            stack.enter_context(undisturbed(verb, prepare(request), request.limit))
        return stack.pop_all()


def _rigs_sink(output: Output) -> Callable[[str, Event], None]:
    """Events of several rigs, each with its rig's name."""

    def sink(rig: str, event: Event) -> None:
        output.event({**event, "rig": rig})
        if event["event"] == "play":
            output.error(f"{rig}: {event['name']}")
        elif event.get("status") == "changed":
            output.error(f"  changed  {rig}: {event['host']:<16} {event['task']}")

    return sink


def compare_each(requests: Mapping[str, Request], take: Callable[[Finding], None]) -> None:
    """As `compare`, for several rigs side by side; each finding names its rig.

    Raises:
        HostLacks: naming what differs, of all rigs.
    """

    def named(rig: str) -> Callable[[Finding], None]:
        return lambda finding: take(replace(finding, name=f"{rig}: {finding.name}"))

    compared = {rig: _Compared(prepare(request), named(rig)) for rig, request in requests.items()}
    with _undisturbed("doctor", requests):
        side_by_side.run(requests, lambda rig, event: compared[rig].sink(event))
    problems = {rig: one.problem("the topology", "FILE") for rig, one in compared.items()}
    what = [f"rig {rig}: {problem.what}" for rig, problem in problems.items() if problem is not None]
    if what:
        steps = dict.fromkeys(problem.next_step for problem in problems.values() if problem is not None)
        raise HostLacks("; ".join(what), next_step="; ".join(steps))


def tell_variables(request: Request, output: Output) -> None:
    """Say what becomes of variables beside the topology, where there are any."""
    for name in request.variables:
        if request.trust_vars:
            output.error(f"{name} beside the topology is read: what its templates name runs on this machine")
        else:
            output.error(
                f"{name} beside the topology is not read, as it may run programs on this machine; "
                "if you trust it, add --trust-vars"
            )


def compare(request: Request, take: Callable[[Finding], None], *, called: str = "") -> None:
    """Compare the hosts of a topology with it; each comparison is a finding, as it is made.

    Args:
        request: to verify a topology.
        take: takes each finding.
        called: what messages name the topology; by default the file.

    Raises:
        HostLacks: naming what differs.
    """
    testbed = request.testbed
    compared = _Compared(prepare(request), take)
    run(request, compared.sink)
    problem = compared.problem(str(called or testbed), "FILE" if called else str(testbed))
    if problem is not None:
        raise problem


class _Compared:
    """Findings out of the events of verify.yml, and what they come to."""

    def __init__(self, of: Topology, take: Callable[[Finding], None]) -> None:
        self._of = of
        self._take = take
        self._differing: list[str] = []
        self._unusable: dict[str, set[str]] = {}  # by host, what is said of it

    def sink(self, event: Event) -> None:
        """Take an event."""
        if event["event"] != "result" or event["status"] == "skipped":
            return
        failed = event["status"] in ("failed", "unreachable")
        # The last task only counts what the others found.
        if not (failed or event["check"]) or event["task"] == "Count what differs":
            return
        name = f"{event['host']}: {_aspect(event)}"
        if not failed:
            self._take(Finding(name, True, True, "as the topology says"))
            return
        words = said(event, self._of)
        if provisioning_helps(event):
            self._differing.append(name)
        else:
            # A host without sudo or Python says so to every role.
            known = self._unusable.setdefault(event["host"], set())
            if words in known:
                return
            known.add(words)
        self._take(Finding(name, False, True, words))

    def problem(self, called: str, file: str) -> HostLacks | None:
        """What differs and which hosts say nothing, with the step for each; None when all is well."""
        differing, unusable = ", ".join(self._differing), ", ".join(self._unusable)
        if not differing and not unusable:
            return None
        provision = f"'netjoule provision --testbed {file}' sets right what it can"
        what = [f"the testbed is not as {called} says: {differing}"] if differing else []
        what += (
            [f"{unusable} cannot be compared" + ("" if differing else f" with {called}")] if unusable else []
        )
        step = f"when the cause of that is away, {provision}" if unusable else provision
        return HostLacks("; ".join(what), next_step=step if differing else _WHEN_AWAY)


def _aspect(event: Event) -> str:
    """'Check the path MTU' -> 'the path MTU'."""
    if event["status"] == "unreachable":
        return "login"
    return str(event["task"]).removeprefix("Check ").removeprefix("that ")

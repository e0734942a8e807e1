# SPDX-License-Identifier: Apache-2.0
"""A playbook on the hosts of several rigs at once, each rig's in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from netjoule.core.errors import NetjouleError, RunFailed
from netjoule.core.signals import exit_on_signals
from netjoule.provisioning import provision
from netjoule.provisioning.provision import Event, Outcome, Request


def run(requests: Mapping[str, Request], sink: Callable[[str, Event], None]) -> dict[str, Outcome]:
    """Run a playbook for each rig to its end; failures of hosts are in the outcomes.

    Args:
        requests: by rig.
        sink: takes each event with its rig, as it happens.

    Raises:
        NetjouleError: as `provision.run`, of the first rig that could not be begun; the others have ended.
    """
    context = multiprocessing.get_context(
        "spawn"
    )  # a fork would take along locks of the threads that hold hosts
    said: dict[Connection, str] = {}
    processes = []
    found: dict[str, Outcome] = {}
    with exit_on_signals():
        try:
            for rig, request in requests.items():
                mine, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_run, args=(request, theirs), name=rig)
                process.start()
                theirs.close()
                processes.append(process)
                said[mine] = rig
            while said:
                for one in wait(list(said)):
                    assert isinstance(one, Connection)
                    _take(one, said, found, sink)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
    return {rig: found[rig] for rig in requests}


def _take(
    one: Connection,
    said: dict[Connection, str],
    found: dict[str, Outcome],
    sink: Callable[[str, Event], None],
) -> None:
    """What a rig's process says next; its pipe is closed when it has said all."""
    rig = said[one]
    try:
        what = one.recv()
    except EOFError:
        del said[one]
        if rig not in found:
            raise RunFailed(f"the process for rig {rig} was killed") from None
        return
    if isinstance(what, Outcome):
        found[rig] = what
    elif isinstance(what, NetjouleError):
        raise what
    else:
        sink(rig, what)


def _run(request: Request, into: Connection) -> None:
    """In the rig's process: the playbook's events, then its outcome or error."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        try:
            outcome = provision.run(request, lambda event: into.send(dict(event)))
        except NetjouleError as error:
            into.send(error)
        else:
            into.send(outcome)

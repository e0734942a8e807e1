# SPDX-License-Identifier: Apache-2.0
"""``netjoule guest run``: choices made, machine booted, output passed to ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netjoule.core.errors import NetjouleError, UsageError
from netjoule.testbeds.guest import DEFAULT_MEMORY_MIB, AccelChoice, machine, trial
from netjoule.testbeds.guest import boot as booting
from netjoule.testbeds.guest import kernel as kernels
from netjoule.testbeds.guest.boot import Outcome

_LEAST_MEMORY_MIB = 192
_MOST_CORES = 4
_BOOT_LIMIT_S = {"kvm": 30.0, "tcg": 180.0}


class CommandNotFound(NetjouleError):
    """As a shell: exit 127."""

    exit_code = 127


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed; ``virtual_time``: see guest.machine.

    ``forwards`` and ``stop`` (see guest.boot) are for ``netjoule guest lab``.
    """

    command: Sequence[str]
    shared: Sequence[Path] = ()
    timeout_s: float | None = None
    memory_mib: int = DEFAULT_MEMORY_MIB
    accel: AccelChoice = "auto"
    virtual_time: bool = False
    forwards: Sequence[machine.Forward] = ()
    stop: int | None = None


def run(
    request: Request,
    out: booting.Sink,
    err: booting.Sink,
    say: Callable[[str], None],
    detail: Callable[[str], None],
) -> Outcome:
    """Run a command in the guest.

    Args:
        request: the command and the machine.
        out: takes its standard output as it comes.
        err: takes its standard error.
        say: told in one line what takes time.
        detail: told what was chosen and how long it took.

    Raises:
        UsageError: a memory size or shared folder that cannot be.
        CommandNotFound: no such program.
        HostLacks: no QEMU, busybox or kernel.
        BootFailed, TimedOut: see guest.boot.
    """
    environment = machine.guest_environment(os.environ)
    _check(request, environment["PATH"])
    job = machine.Job(request.command, Path.cwd(), machine.check_shared(request.shared), environment)
    booting.qemu_program()
    booting.busybox_program()
    kernel = kernels.ensure(say)
    accel = "tcg" if request.virtual_time else _accel(request.accel, kernel, say, detail)
    cores = 1 if request.virtual_time else max(1, min(_MOST_CORES, len(os.sched_getaffinity(0))))
    outcome = booting.boot(
        kernel,
        machine.Machine(accel, request.memory_mib, cores, request.virtual_time, request.forwards),
        job,
        {"out": out, "err": err},
        booting.Limits(_BOOT_LIMIT_S[accel], request.timeout_s),
        stop=request.stop,
    )
    detail(
        f"guest: Linux {outcome.release}, {accel}, {cores} cores: "
        f"command started after {outcome.boot_s:.1f} s and ran {outcome.command_s:.1f} s"
    )
    return outcome


def _check(request: Request, path: str) -> None:
    if request.memory_mib < _LEAST_MEMORY_MIB:
        raise UsageError(
            f"--memory {request.memory_mib}: the guest needs {_LEAST_MEMORY_MIB} MiB or more",
            next_step=f"leave --memory out for {DEFAULT_MEMORY_MIB} MiB",
        )
    if request.timeout_s is not None and not request.timeout_s > 0:
        raise UsageError("--timeout must be more than 0 s", next_step="leave it out for no limit")
    # The guest sees this host's files: what is not here is not there, and saying so needs no boot.
    if shutil.which(request.command[0], path=path) is None:
        raise CommandNotFound(
            f"no program {request.command[0]}", next_step="the guest sees this host's programs"
        )


def _accel(
    choice: AccelChoice, kernel: kernels.Kernel, say: Callable[[str], None], detail: Callable[[str], None]
) -> machine.Accel:
    if choice != "auto":
        return choice
    found = trial.verdict(kernel, say)
    detail(f"guest: {found.seen}" + ("" if found.usable else "; software emulation instead"))
    return "kvm" if found.usable else "tcg"


def to_file(fd: int) -> booting.Sink:
    """A sink that writes all bytes to a file descriptor at once."""

    def write(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]

    return write

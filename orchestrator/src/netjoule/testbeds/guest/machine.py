# SPDX-License-Identifier: Apache-2.0
"""The virtual machine in words: what QEMU and the guest's init are told. No process starts here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from netjoule.core.errors import UsageError

Accel = Literal["kvm", "tcg"]

_KEPT_VARIABLES = ("LANG", "LC_ALL", "TERM", "TZ")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_INSTRUCTION_NS_LOG2 = 1
_UPPER_SHARE = 0.75
"""Part of the guest's memory that files written in the overlay may fill."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A TCP port of the host's 127.0.0.1 that leads to one of the guest's addresses in 10.0.2.0/24."""

    host_port: int
    guest_address: str
    guest_port: int


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware of the guest.

    Attributes:
        forwards: the guest's only network: connections from this host; it can make none itself.
        virtual_time: the guest's clock counts its instructions (2 ns each) while it computes, so that its
            speed does not depend on what else this host does. Software emulation on one core only.
    """

    accel: Accel
    memory_mib: int
    cores: int
    virtual_time: bool = False
    forwards: Sequence[Forward] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """What the guest runs.

    Attributes:
        command: program and arguments.
        cwd: the folder it starts in.
        shared: folders of the host that it may write.
        environment: all its variables.
    """

    command: Sequence[str]
    cwd: Path
    shared: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def qemu_arguments(
    machine: Machine,
    image: Path,
    initramfs_fd: int,
    ports: Mapping[str, int],
    shared: Sequence[Path],
) -> list[str]:
    """QEMU's command line behind its name.

    Args:
        machine: memory, cores and accelerator.
        image: the kernel's file.
        initramfs_fd: a file that QEMU inherits.
        ports: ``console``, ``control``, ``out``, ``err`` to a connected socket each; QEMU inherits them.
        shared: folders exported writable; everything else is exported read-only.
    """
    kernel_words = "console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on mitigations=off"
    arguments = [
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *_network(machine.forwards),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-name", "netjoule-guest", "-machine", "q35", "-accel", _accelerator(machine)),
        *("-cpu", "max" if machine.accel == "tcg" else "host"),
        *("-smp", str(machine.cores), "-m", f"{machine.memory_mib}M"),
        *("-kernel", str(image), "-initrd", f"/proc/self/fd/{initramfs_fd}"),
        *("-append", kernel_words),
        *("-chardev", f"socket,id=console,fd={ports['console']}", "-serial", "chardev:console"),
        *("-device", "virtio-serial-pci"),
    ]
    if machine.virtual_time:
        arguments += ["-icount", f"shift={_INSTRUCTION_NS_LOG2},sleep=on,align=off"]
    for name in ("control", "out", "err"):
        arguments += ["-chardev", f"socket,id={name},fd={ports[name]}"]
        arguments += ["-device", f"virtserialport,chardev={name},name=netjoule.{name}"]
    arguments += _export("root", Path("/"), writable=False)
    for number, folder in enumerate(shared):
        arguments += _export(f"share{number}", folder, writable=True)
    return arguments


def _accelerator(machine: Machine) -> str:
    if machine.accel == "kvm":
        return "kvm"
    # Counting instructions needs one thread for all cores.
    return "tcg,thread=single" if machine.virtual_time else "tcg,thread=multi"


def _network(forwards: Sequence[Forward]) -> list[str]:
    if not forwards:
        return ["-nic", "none"]
    # restrict: no packet of the guest reaches this host or what is beyond, except in forwarded connections.
    words = ["user", "id=net", "restrict=on", "ipv6=off"]
    words += [
        f"hostfwd=tcp:127.0.0.1:{forward.host_port}-{forward.guest_address}:{forward.guest_port}"
        for forward in forwards
    ]
    return ["-netdev", ",".join(words), "-device", "virtio-net-pci,netdev=net,romfile="]


def _export(tag: str, folder: Path, *, writable: bool) -> list[str]:
    # A comma in a QEMU option is written twice.
    path = str(folder).replace(",", ",,")
    rights = "" if writable else ",readonly=on"
    return [
        *("-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{rights}"),
        *("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
    ]


def settings(job: Job, machine: Machine, modules: Path, mark: str) -> bytes:
    """Shell variables for testbed/guest/init and session."""
    lines = [
        f"UPPER_BYTES={int(machine.memory_mib * 2**20 * _UPPER_SHARE)}",
        f"MODULES_DIR={shlex.quote(str(modules))}",
        f"MARK={mark}",
        f"SHARES={shlex.quote(' '.join(f'share{number}' for number in range(len(job.shared))))}",
        *(f"SHARE_{number}={shlex.quote(str(folder))}" for number, folder in enumerate(job.shared)),
    ]
    return os.fsencode("\n".join(lines) + "\n")


def command_script(job: Job) -> bytes:
    """The script that becomes the command: variables, folder, exec; 127 when there is no such program."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()]
    lines.append(f"cd {shlex.quote(str(job.cwd))} || exit 126")
    lines.append("exec " + " ".join(shlex.quote(word) for word in job.command))
    return os.fsencode("\n".join(lines) + "\n")


def guest_environment(host: Mapping[str, str]) -> dict[str, str]:
    """Variables of the command: PATH with the system folders, HOME of root, language, and netjoule's own."""
    folders = host.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    folders += [folder for folder in _SBIN if folder not in folders]
    kept = {name: host[name] for name in _KEPT_VARIABLES if name in host}
    ours = {
        name: value for name, value in host.items() if name.startswith("NETJOULE_") and name.isidentifier()
    }
    return {"PATH": ":".join(folders), "HOME": "/root", "USER": "root", **kept, **ours}


def check_shared(folders: Sequence[Path]) -> list[Path]:
    """Folders to share, whole and real.

    Raises:
        UsageError: for one that is not there, or that would make more writable than a folder of one's own.
    """
    whole = [folder.resolve() for folder in folders]
    for folder in whole:
        if not folder.is_dir():
            raise UsageError(f"--rw {folder}: no such folder", next_step="make it first")
        if len(folder.parts) < 2 or str(folder) in ("/usr", "/etc", "/proc", "/sys", "/dev", "/run"):
            raise UsageError(
                f"--rw {folder} would hand the system to the guest", next_step="name a folder of your own"
            )
    return whole

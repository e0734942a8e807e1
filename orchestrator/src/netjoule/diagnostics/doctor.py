# SPDX-License-Identifier: Apache-2.0
"""``netjoule doctor``: what this host has and lacks for testbed, DCCP and guest; tried, not inferred."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netjoule.analysis.analysis import environment
from netjoule.core import programs
from netjoule.core.errors import HostLacks, NetjouleError
from netjoule.hosts import sandbox
from netjoule.loads.flow import generators, transports
from netjoule.loads.flow.host_support import CARRIERS, TRANSPORTS, Support
from netjoule.store.fingerprint import cpu_cores
from netjoule.testbeds.guest import boot, kernel, trial

_R_PACKAGES = ("ggplot2", "data.table", "jsonlite", "patchwork", "svglite")
_CARRIERS = {
    "udp": "dccp over UDP (RFC 6773)",
    "raw": "dccp over raw IP (protocol 33)",
    "kernel": "dccp-kernel",
}
_OTHER_GENERATORS = ("iperf-dccp", "ditg", "netperfmeter")
_LEAST_FREE_BYTES = 500_000_000
_LEAST_CORES = 2
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried.

    Attributes:
        ok: it works.
        needed: the demo cannot do without it.
        fix: what to do when it does not work.
    """

    name: str
    ok: bool
    needed: bool
    seen: str
    fix: str = ""


def examine(results: Path) -> Iterator[Finding]:
    """Try everything the demo needs.

    Args:
        results: folder that results will go to; its nearest existing parent is looked at.
    """
    yield _namespaces()
    yield _tun()
    yield from (_program(name, needed=True) for name in ("netjoule-traffic", "netjoule-link"))
    yield from (_program(name, needed=True, word="--help") for name in ("netjoule-meters", "netjoule-device"))
    yield _program("iperf3", needed=False)
    dccp = list(_available("dccp", _CARRIERS, CARRIERS.ask))
    kernel_has_dccp = any(one.ok for one in dccp if one.name == _CARRIERS["kernel"])
    yield from _other_generators(kernel_has_dccp=kernel_has_dccp)
    yield from dccp
    yield from _kernel_transports()
    yield _congestion_controls()
    yield from _guest()
    yield _r()
    yield _cores()
    yield _disk(results)


def _namespaces() -> Finding:
    try:
        return Finding("namespaces", True, True, "a trial sandbox came up as " + sandbox.probe())
    except sandbox.SandboxError as error:
        return Finding("namespaces", False, True, str(error))


def _tun() -> Finding:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        seen = f"/dev/net/tun: {error.strerror}; the link uses AF_PACKET instead"
        return Finding(
            "TUN", False, False, seen, "only for more speed: modprobe tun; chmod 0666 /dev/net/tun"
        )
    return Finding("TUN", True, False, "/dev/net/tun opens")


def _program(name: str, *, needed: bool, word: str = "--version") -> Finding:
    try:
        path = programs.find(name)
    except HostLacks as error:
        return Finding(name, False, needed, "not found", error.next_step)
    answer = _ask([path, word])
    if answer is None:
        return Finding(
            name, False, needed, f"'{path} {word}' does not run", "see what it says, then build it again"
        )
    return Finding(name, True, needed, f"{answer if word == '--version' else 'runs'} ({path})")


def _other_generators(*, kernel_has_dccp: bool) -> Iterator[Finding]:
    for found in generators.availability():
        if found.name in _OTHER_GENERATORS:
            does = [t for t in found.transports if kernel_has_dccp or t != "dccp-kernel"]
            seen = f"there; does {', '.join(does) or 'nothing on this kernel'}"
            yield Finding(found.name, found.available, False, seen if found.available else found.reason)


def _kernel_transports() -> Iterator[Finding]:
    """Transports that need something of the kernel; DCCP's have findings of their own."""
    wanted = sorted(transports.which("host_dependent") - set(_CARRIERS.values()))
    yield from _available("transports", {name: name for name in wanted}, TRANSPORTS.ask)


def _available(
    title: str, wanted: Mapping[str, str], ask: Callable[[], Iterable[Support]]
) -> Iterator[Finding]:
    """What netjoule-traffic says of each that is wanted; of `title`, when it says nothing."""
    try:
        found = {one.name: one for one in ask()}
    except HostLacks as error:
        yield Finding(title, False, False, str(error))
        return
    for name, words in wanted.items():
        one = found.get(name)
        if one is None:
            seen = "netjoule-traffic does not know it"
            yield Finding(words, False, False, seen, "build it again: 'make setup'")
        elif not one.available and name == "raw" and _raw_in_sandbox():
            yield Finding(words, True, False, f"in campaigns of the emulated testbed; else {one.reason}")
        else:
            yield Finding(words, one.available, False, "yes" if one.available else one.reason)


def _congestion_controls(folder: Path = Path("/proc/sys/net/ipv4")) -> Finding:
    """What workloads may choose for tcp; those that are loaded and open to ordinary users."""
    try:
        loaded, allowed = (
            (folder / f"tcp_{which}_congestion_control").read_text().split()
            for which in ("available", "allowed")
        )
    except OSError as error:
        return Finding("TCP congestion control", False, False, f"unknown: {error.strerror}")
    kept = [name for name in loaded if name not in allowed]
    seen = ", ".join(name for name in loaded if name in allowed) or "none"
    if kept:
        seen += f"; only for root: {', '.join(kept)}"
    return Finding("TCP congestion control", True, False, seen)


def _raw_in_sandbox() -> bool:
    """Whether a campaign has raw sockets: its sandbox gives them to an ordinary user as well."""
    try:
        return any(c.name == "raw" and c.available for c in CARRIERS.ask(in_sandbox=True))
    except HostLacks:
        return False


def _guest() -> Iterator[Finding]:
    """QEMU, the kernel that would boot in it, and whether KVM does (tried once per boot of the host)."""
    try:
        qemu = boot.qemu_program()
        boot.busybox_program()
    except HostLacks as error:
        yield Finding("guest", False, False, error.what, error.next_step)
        return
    image = kernel.cached()
    if image is None:
        seen = f"{qemu} is there, no kernel yet: the first 'netjoule guest run' downloads one (70 MB)"
        yield Finding("guest", True, False, seen)
        return
    words = "" if image.has_dccp else ", without DCCP"
    yield Finding("guest", True, False, f"{_ask([qemu, '--version']) or qemu}; Linux {image.release}{words}")
    found = trial.verdict(image, lambda _line: None)
    slow = "" if found.usable else "; the guest runs in software emulation, several times slower"
    yield Finding("guest with KVM", found.usable, False, found.seen + slow)


def _r() -> Finding:
    """R with the packages that analyse and report use."""
    try:
        rscript = programs.rscript()
    except HostLacks as error:
        return Finding("R", False, True, "not found", error.next_step)
    wanted = ", ".join(f'"{p}"' for p in (*_R_PACKAGES, "netjoule"))
    code = (
        'l <- Sys.getenv("NETJOULE_R_LIBRARY"); if (nzchar(l)) .libPaths(c(l, .libPaths())); '
        f"p <- c({wanted}); cat(as.character(getRversion()), "
        "p[!vapply(p, requireNamespace, logical(1), quietly = TRUE)])"
    )
    answer = _ask([*rscript, "-e", code])
    if answer is None:
        return Finding("R", False, True, f"{rscript[0]} does not run", "reinstall r-base-core")
    version, *missing = answer.split()
    if missing:
        packages = ", ".join(missing)
        return Finding("R", False, True, f"R {version} without {packages}", "run 'make setup'")
    return Finding("R", True, True, f"R {version} with {', '.join(_R_PACKAGES)} and netjoule")


def _cores() -> Finding:
    cores = cpu_cores()
    fix = "sender, receiver and link share one core: expect losses at high loads"
    return Finding(
        "CPUs", cores >= _LEAST_CORES, False, f"{cores} usable", "" if cores >= _LEAST_CORES else fix
    )


def _disk(results: Path) -> Finding:
    place = results.resolve()
    try:
        while not place.exists():
            place = place.parent
    except PermissionError:
        return Finding("disk", False, True, f"{place}: permission denied", "choose another --out")
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    seen = f"{free / 1e9:.1f} GB free in {place}" + ("" if writable else ", not writable")
    return Finding(
        "disk", writable and free >= _LEAST_FREE_BYTES, True, seen, "free some space or choose --out"
    )


def _ask(command: list[str]) -> str | None:
    """First line that a program prints; None when it cannot be run or fails."""
    try:
        answer = programs.said_by(command, timeout=_TIMEOUT_S, env=environment(os.environ))
    except (OSError, subprocess.TimeoutExpired, NetjouleError):
        return None
    lines = answer.stdout.strip().splitlines()
    return lines[0] if answer.returncode == 0 and lines else None

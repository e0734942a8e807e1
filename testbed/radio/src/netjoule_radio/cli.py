# SPDX-License-Identifier: Apache-2.0
"""Command line of the agent: `python3 -m netjoule_radio --interface wlan0`, or its zipapp on a lab host."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from netjoule_radio.agent import CPU_SOURCE, VERSION, Agent
from netjoule_radio.source import InterfaceGone, ReadFailed, Source, SourceMissing
from netjoule_radio.source_choice import SOURCES, choose

EXIT_HOST_LACKS = 3
_PACKAGES = {
    "auto": "iw, or python3-pyroute2",
    "nl80211": "python3-pyroute2, or choose another reader",
    "iw": "iw, or choose another reader",
    "iwconfig": "wireless-tools, or choose another reader",
}
FASTEST_S, SLOWEST_S = 0.1, 60.0


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the agent; end with 0 when asked to, 2 for wrong options, 3 when this radio cannot be read."""
    options = _options(argv)
    try:
        with _end_signals() as end:
            _agent(options, end)
    except (SourceMissing, ReadFailed) as error:
        message = _no_source(options.interface, options.source, error)
        _emit({"event": "error", "message": message})
        sys.exit(EXIT_HOST_LACKS)
    except BrokenPipeError:  # nobody listens any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the other programs do."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see '{self.prog} --help'\n")


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="netjoule-radio",
        description="Logs a radio's rate as NDJSON until SIGTERM or the end of its standard input.",
    )
    parser.add_argument("--interface", required=True, help="wireless interface, e.g. wlan0")
    parser.add_argument("--every-s", type=float, default=1.0, help="period in seconds, 0.1 to 60 (default 1)")
    parser.add_argument(
        "--source",
        choices=("auto", *SOURCES),
        default="auto",
        help="how the radio is read (default: the first of these that works)",
    )
    parser.add_argument("--once", action="store_true", help="read once, say which source answered, and end")
    parser.add_argument("--version", action="version", version=f"netjoule-radio {VERSION}")
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help()
        parser.exit()
    options = parser.parse_args(argv)
    if not FASTEST_S <= options.every_s <= SLOWEST_S:
        parser.error(f"--every-s {options.every_s:g}: give {FASTEST_S:g} to {SLOWEST_S:g} seconds")
    return options


def _agent(options: argparse.Namespace, end: int) -> None:
    choice = choose(options.source, options.interface)
    with contextlib.closing(choice.source):
        _emit(_ready(options, choice.source, choice.passed_over))
        if options.once:  # the choice has read
            return
        watched = [end, *_lifeline()]
        agent = Agent(
            choice.source,
            every_ns=round(options.every_s * 1e9),
            now_ns=_now_ns,
            cpu_s=_cpu_s,
            wait_until_ns=lambda deadline_ns: _wait_until(deadline_ns, watched),
            emit=_emit,
        )
        agent.run()


def _ready(options: argparse.Namespace, source: Source, passed_over: Mapping[str, str]) -> dict[str, Any]:
    return {
        "event": "ready",
        "t_ns": _now_ns(),
        "interface": options.interface,
        "every_s": options.every_s,
        "source": source.name,
        "versions": {
            "netjoule_radio": VERSION,
            source.name: source.version,
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "passed_over": dict(passed_over),
        "cpu_source": CPU_SOURCE,
        "boot_id": _boot_id(),
    }


def _no_source(interface: str, wanted: str, error: Exception) -> str:
    if isinstance(error, InterfaceGone):
        radios = sorted(path.parent.name for path in Path("/sys/class/net").glob("*/phy80211"))
        there = f"the radios here: {', '.join(radios)}" if radios else "this host has no radio"
        return f"{error}; {there}; correct the interface in the testbed's file, or load its driver"
    return f"the radio {interface} cannot be read ({error}); install {_PACKAGES[wanted]}"


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _cpu_s() -> float:
    """CPU seconds of all threads of this process and of the programs that it ran and that have ended.

    The kernel splits user from system time by ticks, but their sum is exact.
    """
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _emit(event: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(event, separators=(",", ":")) + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _end_signals() -> Iterator[int]:
    """Descriptor that becomes readable when SIGTERM, SIGINT or SIGHUP has come; with nohup(1) not SIGHUP."""
    read_end, write_end = os.pipe()

    def note(_number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            os.write(write_end, b"x")

    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield read_end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)


def _lifeline() -> list[int]:
    """Standard input when it is a pipe or a socket: its end is the end of who started the agent."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return []
    return [0] if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else []


def _wait_until(deadline_ns: int, watched: Sequence[int]) -> bool:
    """Sleep until the deadline; False as soon as the signals' pipe speaks or standard input ends."""
    lifeline = set(watched[1:])
    while True:
        left_s = max(0.0, (deadline_ns - _now_ns()) / 1e9)
        ready, _, _ = select.select(watched, [], [], left_s)
        if any(source not in lifeline or not os.read(source, 4096) for source in ready):
            return False
        if not ready and _now_ns() >= deadline_ns:
            return True

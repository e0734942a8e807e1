# SPDX-License-Identifier: Apache-2.0
"""20 minutes of 10,000 messages a second over loopback: after two minutes neither end may grow by 1 MB.

Prints the resident memory of the sender, of the server's process of the flow and of the server itself after
the first, middle and last minute, and whether the counts of both ends agree; with --write all of it goes to
docs/soak.md, too. The ends compare their clocks as those of two hosts do, so that what is kept for one-way
delays is part of it. With --rate the load is another, for example one that is never met:
--transport tcp --size 65536 --rate 100G.
Exit codes: 0 passed, 1 failed, 3 the binary has not been built.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule_bench.sandbox.processes import Running

REPO = Path(__file__).resolve().parents[3]
BINARY = REPO / "target" / "release" / "netjoule-traffic"
PAGE = REPO / "docs" / "soak.md"
MESSAGES_PER_S = 10_000
MOST_GROWTH_KB = 1_000
# The last interval is not looked at: the report is put together then.
LEFT_OUT_S = 1
_LONGEST_END_S = 60.0
# Both end with this program, however that is ended.
_PROGRAM = ["setpriv", "--pdeathsig", "TERM", str(BINARY)]


@dataclass
class Watched:
    """One process and its resident memory in KB, second by second."""

    name: str
    pid: int
    sizes_kb: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Take a reading. The exact sum: VmRSS of /proc/PID/status lags behind by some pages per core."""
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Rss:"):
                self.sizes_kb.append(int(line.split()[1]))

    def growth_kb(self, warm_up_s: int) -> int:
        """Most that it grew by since the end of the warm-up, KB."""
        counted = self.sizes_kb[warm_up_s:]
        return max(counted) - counted[0]


def main() -> int:
    """Run one flow and judge it; the exit code."""
    asked = _arguments()
    if not BINARY.exists():
        print("soak: netjoule-traffic has not been built: cargo build --release", file=sys.stderr)
        return 3
    seconds, warm_up_s = round(60 * asked.minutes), round(60 * asked.warm_up_minutes)
    said: list[str] = []
    _tell(said, _host())
    load = f"{asked.rate}bit/s" if asked.rate else f"{MESSAGES_PER_S} messages/s"
    _tell(said, f"{asked.transport}, {asked.size} B, {load}, {asked.minutes:g} min")
    limit_s = seconds + _LONGEST_END_S
    serve = [*_PROGRAM, "serve", "--port", "0", "--json", "--max-rate", "100G"]
    with Running(None, serve, longest_s=limit_s) as server:
        to = str(_next(server, "listening")["control"])
        rate = asked.rate or str(MESSAGES_PER_S * asked.size * 8)
        send = [*_PROGRAM, "send", "--transport", asked.transport, "--to", to, "--json", "-i", "1"]
        send += ["--clock", "exchange", "-l", str(asked.size), "-b", rate, "-t", str(seconds)]
        with Running(None, send, longest_s=limit_s) as sender:
            watched = [
                Watched("sender", sender.pid),
                Watched("receiver", _next(server, "flow_started")["process"]),
                Watched("server", server.pid),
            ]
            minutes = (seconds - LEFT_OUT_S) // 60
            told_s = {60 * minute for minute in (1, (minutes + 1) // 2, minutes)}
            for second in range(1, seconds - LEFT_OUT_S + 1):
                _next(sender, "interval")
                for process in watched:
                    process.look()
                if second in told_s:
                    sizes = ", ".join(f"{process.name} {process.sizes_kb[-1]} KB" for process in watched)
                    _tell(said, f"minute {second // 60:3}: {sizes}")
            report = _next(sender, "report")
            code = sender.finish(tolerate=True).code
    passed = _judge(said, watched, warm_up_s, report, code)
    if asked.write:
        PAGE.write_text(_page(said), encoding="utf-8")
    return 0 if passed else 1


def _tell(said: list[str], line: str) -> None:
    said.append(line)
    print(line, flush=True)


def _page(said: list[str]) -> str:
    title = "# Soak\n\nWritten by `make soak`: resident memory of both ends of one long flow.\n"
    return title + "\n```\n" + "\n".join(said) + "\n```\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--warm-up-minutes", type=float, default=2.0)
    parser.add_argument("--transport", default="udp")
    parser.add_argument("--size", type=int, default=64, help="bytes of a message")
    parser.add_argument("--rate", help=f"bit/s of payload, as 100G (default: {MESSAGES_PER_S} messages/s)")
    parser.add_argument("--write", action="store_true", help="put what is printed into docs/soak.md")
    asked = parser.parse_args()
    if not 0 <= asked.warm_up_minutes < asked.minutes - LEFT_OUT_S / 60:
        parser.error("the warm-up must be shorter than the run")
    if asked.write and any(
        getattr(asked, name) != parser.get_default(name) for name in ("transport", "size", "rate")
    ):
        parser.error(
            "docs/soak.md is of the default flow: leave out --write or --transport, --size and --rate"
        )
    return asked


def _host() -> str:
    said = subprocess.run(
        ["git", "-C", str(REPO), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    commit = said.stdout.strip() or "unknown"
    return f"Host: {platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, commit {commit}."


def _next(process: Running, event: str) -> dict[str, Any]:
    """The next event of this name; others are skipped."""
    found: dict[str, Any] = json.loads(process.wait_for_line(f'"event":"{event}"'))
    return found


def _judge(
    said: list[str], watched: list[Watched], warm_up_s: int, report: dict[str, Any], code: int
) -> bool:
    sender, receiver = report["sender"], report["receiver"]
    counts = "agree" if report["reconciles"] else "do not agree"
    passed = code == 0 and bool(report["reconciles"])
    _tell(
        said,
        f"{sender['messages_sent']} of {sender['messages_scheduled']} messages sent, "
        f"{receiver['messages_lost']} lost, the counts {counts}; "
        f"CPU {sender['cpu_s']:.1f} s and {receiver['cpu_s']:.1f} s",
    )
    for process in watched:
        growth_kb = process.growth_kb(warm_up_s)
        passed &= growth_kb < MOST_GROWTH_KB
        _tell(said, f"{process.name}: grew by {growth_kb} KB after {warm_up_s} s (limit {MOST_GROWTH_KB} KB)")
    _tell(said, f"{'passed' if passed else 'FAILED'} {time.strftime('%Y-%m-%d', time.gmtime())}")
    return passed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as problem:
        sys.exit(f"soak: {problem}")

# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what netjoule-traffic costs, how exactly and how fast it sends, against iperf3, D-ITG and
NetPerfMeter on one raw veth pair; QUIC against a minimal loop over quiche; DCCP against UDP, and in the guest
against the kernel's; downloads against curl, libcurl and aria2; the running link against its model, and what
a router costs it; the meter logger's CPU; a second rig; a simulated sweep; simulated TCP against ns-2 and
the kernel's; a router of the link against the kernel's HTB; the analysis of 9,600 runs.

Limits are ratios of figures taken in one run, interleaved; absolute figures of one machine say little.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from netjoule.core.errors import NetjouleError
from netjoule_bench import host
from netjoule_bench.benches import (
    alarms,
    analysis,
    controller,
    cpu,
    dccp,
    downloads,
    fidelity,
    goodput,
    greatest,
    guest,
    htb,
    many_files,
    meters,
    ns2,
    relay,
    reno,
    rigs,
    skype,
    sweep,
    wire,
)
from netjoule_bench.generators import neighbours, newer_iperf3
from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.iperf3 import Iperf3
from netjoule_bench.generators.netjoule_traffic import NetjouleTraffic
from netjoule_bench.sandbox.veth import enter_sandbox, pair
from netjoule_bench.tables import Section, markdown, pruned, text

REPO = Path(__file__).resolve().parents[3]
PAGE = REPO / "docs" / "benchmarks.md"
SCRATCH = REPO / ".setup" / "newer-iperf3"
Bench = Callable[[Contest, bool], Iterable[Section | None]]
"""Its tables; with True quickly."""
BENCHES: dict[str, Bench] = {
    "cpu": lambda contest, _: [cpu.section(contest)],
    "alarms": lambda contest, _: [alarms.section(contest, REPO)],
    "skype": lambda contest, _: [skype.section(contest)],
    "wire": lambda contest, quick: wire.sections(contest, 1.0 if quick else 2.0),
    "pps": lambda contest, quick: [greatest.section(contest, 1.0 if quick else 2.0)],
    "tcp": lambda contest, _: [goodput.tcp(contest)],
    "quic": lambda contest, _: [goodput.quic(contest, REPO)],
    "downloads": lambda _, quick: [downloads.section(REPO, quick=quick)],
    "many-files": lambda _, quick: [many_files.section(REPO, quick=quick)],
    "fidelity": lambda contest, quick: [fidelity.section(contest, quick=quick)],
    "relay": lambda *_: [relay.section(REPO)],
    "controller": lambda _, quick: [controller.section(REPO, 10.0 if quick else 60.0)],
    "meters": lambda _, quick: [meters.section(10.0 if quick else 60.0)],
    "dccp": lambda contest, quick: dccp.sections(REPO, contest.ours, contest.seconds, 1 if quick else 3),
    "guest": lambda *_: [guest.section(REPO)],
    "rigs": lambda _, quick: [rigs.section(quick=quick)],
    "sweep": lambda _, quick: [sweep.section(REPO, quick=quick)],
    "reno": lambda _, quick: [reno.section(REPO, quick=quick)],
    "htb": lambda _, quick: [htb.section(REPO, quick=quick)],
    "ns2": lambda _, quick: ns2.sections(REPO, quick=quick),
    # As measured, and as modelled: then there are device streams, and their parameters are drawn.
    "analysis": lambda _, quick: (
        analysis.section(REPO, quick=quick, device_stream=each) for each in (False, True)
    ),
}


def main() -> int:
    """Run the benches named on the command line (all by default); 0 when every limit holds, else 1.

    A limit whose figure is missing does not hold.
    """
    options = _options()
    if options.fetch_iperf3 and (problem := newer_iperf3.fetch(SCRATCH)):
        print(f"bench: no newer iperf3: {problem}", file=sys.stderr)
    enter_sandbox(sys.orig_argv[1:])
    contest = _contest(quick=options.quick)
    machine = host.Watch()
    writes = options.write and not options.quick
    sections: list[Section] = []
    with pair():
        for name in options.only or BENCHES:
            for section in filter(None, BENCHES[name](contest, options.quick)):
                print(text(section), flush=True)
                sections.append(section)
                if writes:
                    # After every table, so that a run that is stopped keeps what it has.
                    _put(markdown([section], machine.sentence(REPO, contest), _page()))
    if writes and not options.only:
        _put(pruned(_page(), {section.title for section in sections}))
    return 1 if any(section.missed for section in sections) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", choices=list(BENCHES), action="append", help="this bench (may be repeated)")
    parser.add_argument(
        "--quick", action="store_true", help="one round, short flows, four rates: a look, not a result"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/benchmarks.md (not with --quick)"
    )
    parser.add_argument(
        "--fetch-iperf3",
        action="store_true",
        help="unpack Debian 13's iperf3 from this host's own mirror into .setup (nothing is installed)",
    )
    return parser.parse_args()


def _contest(*, quick: bool) -> Contest:
    newer, why = newer_iperf3.find(SCRATCH)
    others, missing = neighbours.installed()
    return Contest(
        ours=NetjouleTraffic.find(REPO),
        iperf3=Iperf3.find(),
        newer=newer,
        neighbours=others,
        seconds=2.0 if quick else 10.0,
        repeats=1 if quick else 5,
        absent=missing | ({newer_iperf3.WANTED: why} if why else {}),
    )


def _page() -> str:
    return PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""


def _put(page: str) -> None:
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("bench: stopped; namespaces and programs are gone", file=sys.stderr)
        sys.exit(130)
    except FileNotFoundError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        sys.exit(3)
    except (subprocess.SubprocessError, RuntimeError, NetjouleError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        sys.exit(1)

# SPDX-License-Identifier: Apache-2.0
"""Whether netjoule-simulate says of TCP over practRA what ns-2 2.35 says, and how much sooner.

Both run the path of troubled_marriage.tcl; practRA's ticks have the same ten phases in both. Bursts and
bottleneck are drawn by each for itself, from ten seeds.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from netjoule_bench.repeats import interleaved, median, ratio, shown
from netjoule_bench.tables import Section, Verdict, at_most

PHASES = 10
END_S, EARLY_S = 300.0, 20.0
PACKET_MBIT = 0.012
MRCIS_MS = (10, 50, 100, 500, 1000)
QUEUES = {1: 10, 10: 10, 50: 21, 100: 42}
"""Packets by RTT in ms: half a bandwidth-delay product, at least ten."""
SLOW_MRCI_MS = 500
"""From here on few ticks decide, and the limits are wider."""
MANY_SWITCHES = 50
T_95_OF_TEN = 2.262
_TCL = Path(__file__).with_name("troubled_marriage.tcl")
_NS = "ns"
_TIMED = ("without practRA", "with practRA")


@dataclass(frozen=True)
class Cell:
    """A setting of the study; `mrci_ms` 0 = TCP alone."""

    rtt_ms: int
    mrci_ms: int = 0
    bursts_mbps: int = 0
    varying_ms: int = 0

    @property
    def queue(self) -> int:
        """Packets that a queue holds, the one in service counted in."""
        return QUEUES[self.rtt_ms]

    @property
    def d_ms(self) -> float:
        """0.9 of what a full queue takes at 10 Mb/s."""
        return 0.9 * self.queue * PACKET_MBIT / 10 * 1e3

    @property
    def label(self) -> str:
        """The cell in a table."""
        others = [f"bursts of {self.bursts_mbps} Mb/s"] * bool(self.bursts_mbps)
        others += [f"bottleneck, {self.varying_ms} ms"] * bool(self.varying_ms)
        scaling = f"mRCI {self.mrci_ms}" if self.mrci_ms else "TCP only"
        return ", ".join([f"RTT {self.rtt_ms}", scaling, *others])

    def phase_ms(self, run: int) -> float:
        """From the start to practRA's first tick, ms."""
        return self.mrci_ms * (run + 0.5) / PHASES


@dataclass(frozen=True)
class Window:
    """What a run came to in a time of it."""

    throughput_mbps: float
    rate_mbps: float
    switches: float
    loss: float

    @classmethod
    def between(cls, before: Mapping[str, float], after: Mapping[str, float]) -> Window:
        """From two counts of totals: keys t_s, acked, rate_s, switches, arrived, dropped."""
        gained = {key: after[key] - before.get(key, 0.0) for key in after}
        return cls(
            gained["acked"] * PACKET_MBIT / gained["t_s"],
            gained["rate_s"] / gained["t_s"],
            gained["switches"],
            gained["dropped"] / gained["arrived"],
        )


Runs = list[tuple[Window, Window]]
"""By phase: the whole run, and without its start."""
Found = Mapping[Cell, Runs]


def sections(repo: Path, *, quick: bool) -> Iterable[Section]:
    """TCP and practRA alone, then with bursts and a bottleneck. Raises FileNotFoundError without ns-2."""
    ours = repo / "target" / "release" / "netjoule-simulate"
    phases = 1 if quick else PHASES
    alone = [Cell(rtt, mrci) for rtt in QUEUES for mrci in (0, *MRCIS_MS)]
    others = [(5, 0), (10, 0), (0, 50), (5, 50)]
    disturbed = [Cell(100, mrci, *other) for other in others for mrci in MRCIS_MS]
    theirs_of, ours_of = partial(_all, _ns2, phases), partial(_all, partial(_simulated, ours), phases)
    yield _alone(theirs_of(alone), ours_of(alone), _times(ours, 1 if quick else 15))
    yield _disturbed(theirs_of(disturbed), ours_of(disturbed))


def _all(run: Any, phases: int, cells: Sequence[Cell]) -> Found:
    jobs = [(cell, phase) for cell in cells for phase in range(phases)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: run(*job), jobs))
    return {
        cell: [windows for job, windows in zip(jobs, done, strict=True) if job[0] == cell] for cell in cells
    }


def _windows(early: Mapping[str, float], whole: Mapping[str, float]) -> tuple[Window, Window]:
    return Window.between({}, whole), Window.between(early, whole)


def _ns2_argv(cell: Cell, phase: int) -> list[str]:
    asked = {
        name: getattr(cell, name)
        for name in ("rtt_ms", "queue", "mrci_ms", "d_ms", "bursts_mbps", "varying_ms")
    }
    asked |= {"phase_ms": cell.phase_ms(phase), "seed": phase + 1, "end_s": END_S}
    return [_NS, str(_TCL), *(str(word) for pair in asked.items() for word in pair)]


def _ns2(cell: Cell, phase: int) -> tuple[Window, Window]:
    said = subprocess.run(_ns2_argv(cell, phase), check=True, capture_output=True, text=True).stdout
    early, whole = json.loads(said)
    return _windows(early, whole)


def _document(cell: Cell, phase: int) -> str:
    rtt_ms, queue = cell.rtt_ms, cell.queue
    practra = {"kind": "practra", "interval_ms": cell.mrci_ms, "delay_limit_ms": cell.d_ms}
    scaling = practra | {"phase_ms": cell.phase_ms(phase)} if cell.mrci_ms else {"kind": "none"}
    bursts = {"bursts": {"mean_burst_ms": 100, "cycle_ms": 1000, "rate_mbps": cell.bursts_mbps}}
    varying = {"varying": {"min_rate_mbps": 1, "max_rate_mbps": 10, "mean_interval_ms": cell.varying_ms}}
    n1 = {
        "rate_mbps": 10,
        "queue_packets": queue,
        "delay_ms": rtt_ms / 8,
        "direction": "up",
        "scaling": scaling,
    }
    n2 = varying | {"direction": "up"} if cell.varying_ms else {"rate_mbps": 10}
    elements = [
        {"rate_mbps": 100, "delay_ms": rtt_ms / 8},
        n1 | (bursts if cell.bursts_mbps else {}),
        n2 | {"queue_packets": queue, "delay_ms": rtt_ms / 4},
    ]
    asked = {"id": 1, "seed": phase + 1, "duration_s": END_S, "interval_s": EARLY_S}
    return json.dumps(asked | {"elements": elements, "flows": [{}]})


def _simulated(program: Path, cell: Cell, phase: int) -> tuple[Window, Window]:
    asked = _document(cell, phase)
    answer = json.loads(
        subprocess.run([program], input=asked, check=True, capture_output=True, text=True).stdout
    )
    if "error" in answer:
        raise RuntimeError(f"netjoule-simulate: {answer['error']}")
    steps = [(step["routers"][0], step["acked_packets"][0]) for step in answer["steps"]]

    def totals(some: Sequence[tuple[dict[str, float], int]]) -> dict[str, float]:
        return {
            "t_s": EARLY_S * len(some),
            "acked": sum(acked for _, acked in some),
            "rate_s": EARLY_S * sum(router["mean_rate_mbps"] for router, _ in some),
            "switches": sum(router["switches"] for router, _ in some),
            "arrived": sum(router["flows_arrived_packets"] for router, _ in some),
            "dropped": sum(router["flows_dropped_packets"] for router, _ in some),
        }

    return _windows(totals(steps[:1]), totals(steps))


def _times(program: Path, repeats: int) -> dict[str, float | None]:
    """CPU time of a run over that of ns-2, start of both programs included; without practRA, and with."""
    found = {}
    for name, cell in zip(_TIMED, (Cell(100), Cell(100, 10)), strict=True):
        arms = {
            "ours": partial(_cpu_s, [str(program)], _document(cell, 0)),
            "ns-2": partial(_cpu_s, _ns2_argv(cell, 0), ""),
        }
        taken = interleaved(arms, repeats)
        found[name] = ratio(taken["ours"], taken["ns-2"])
        found[f"ns-2 {name}, s"] = median(taken["ns-2"])
    return found


def _cpu_s(argv: list[str], said: str) -> float:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, input=said, check=True, stdout=subprocess.DEVNULL, text=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def _mean(runs: Runs, window: int, what: str) -> float:
    return statistics.fmean(getattr(run[window], what) for run in runs)


def _reduction(found: Found, cell: Cell, window: int) -> float:
    """Throughput lost to practRA, percent."""
    alone = _mean(found[Cell(cell.rtt_ms)], window, "throughput_mbps")
    return 100 * (1 - _mean(found[cell], window, "throughput_mbps") / alone)


def _apart(theirs: Found, ours: Found, cells: Iterable[Cell], what: str) -> float:
    """Greatest difference of the means."""
    pairs = [(cell, window) for cell in cells for window in (0, 1)]
    return max(abs(_mean(ours[cell], at, what) - _mean(theirs[cell], at, what)) for cell, at in pairs)


def _apart_percent(theirs: Found, ours: Found, cells: Iterable[Cell], what: str, least: float = 0.0) -> float:
    """Greatest difference of the means in percent of ns-2's, where that is above `least`."""
    pairs = [(_mean(ours[cell], at, what), _mean(theirs[cell], at, what)) for cell in cells for at in (0, 1)]
    return max((100 * abs(own / other - 1) for own, other in pairs if other > least), default=0.0)


def _alone(theirs: Found, ours: Found, times: Mapping[str, float | None]) -> Section:
    tcp = [cell for cell in theirs if not cell.mrci_ms]
    scaled = [cell for cell in theirs if cell.mrci_ms]
    fast = [cell for cell in scaled if cell.mrci_ms < SLOW_MRCI_MS]
    slow = [cell for cell in scaled if cell.mrci_ms >= SLOW_MRCI_MS]

    def reductions(cells: Iterable[Cell]) -> float:
        pairs = [(cell, window) for cell in cells for window in (0, 1)]
        return max(abs(_reduction(ours, *pair) - _reduction(theirs, *pair)) for pair in pairs)

    limits = [
        ("TCP only: throughput, %", _apart_percent(theirs, ours, tcp, "throughput_mbps"), 1.5),
        ("TCP only: loss, %", _apart_percent(theirs, ours, tcp, "loss"), 25.0),
        ("service rate to mRCI 100 ms, Mb/s", _apart(theirs, ours, fast, "rate_mbps"), 0.15),
        ("service rate from mRCI 500 ms, Mb/s", _apart(theirs, ours, slow, "rate_mbps"), 0.35),
        ("throughput reduction to mRCI 100 ms, points", reductions(fast), 2.0),
        ("throughput reduction from mRCI 500 ms, points", reductions(slow), 3.5),
        ("switches, where over 50, %", _apart_percent(theirs, ours, scaled, "switches", MANY_SWITCHES), 20.0),
    ]
    verdicts = [at_most(f"apart from ns-2: {what}", value, limit) for what, value, limit in limits]
    verdicts += [
        at_most(f"CPU time of 300 s over ns-2's {name}", times[name], limit, "{:.3f}")
        for name, limit in zip(_TIMED, (0.5, 0.05), strict=True)
    ]
    seconds = " and ".join(f"{shown(times[f'ns-2 {name}, s'])} s {name}" for name in _TIMED)
    return _section(
        "TCP NewReno over practRA in simulated time, and in ns-2",
        theirs,
        ours,
        verdicts,
        f"Means over {PHASES} phases of practRA's ticks, of the whole 300 s; the verdicts are of that and of "
        f"20 to 300 s. Ours / ns-2's. A run takes ns-2 {seconds} of CPU time.",
        reduction=True,
    )


def _disturbed(theirs: Found, ours: Found) -> Section:
    rate = _apart(theirs, ours, theirs, "rate_mbps")
    turned = sum(_turned(theirs, ours, window, "rate_mbps") for window in (0, 1))
    verdicts = [
        at_most("apart from ns-2, with bursts or bottleneck: service rate, Mb/s", rate, 0.6),
        at_most("pairs of mRCI in another order than ns-2's: service rate", turned, 0, "{:.0f}"),
    ]
    return _section(
        "The same with bursts and with a varying bottleneck",
        theirs,
        ours,
        verdicts,
        f"Bursts of 100 ms in the mean, one a second; a bottleneck of 1 to 10 Mb/s behind the router. Means "
        f"over {PHASES} seeds. Two mRCI are in another order where the 95 % intervals of ns-2 are apart and "
        "our means are the other way round.",
        reduction=False,
    )


def _turned(theirs: Found, ours: Found, window: int, what: str) -> int:
    """Pairs of mRCI in an order other than ns-2's, where its intervals are apart."""

    def interval(runs: Runs) -> tuple[float, float]:
        values = [getattr(run[window], what) for run in runs]
        half = T_95_OF_TEN * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        return statistics.fmean(values) - half, statistics.fmean(values) + half

    def other_way(low: Cell, high: Cell) -> bool:
        is_below = interval(theirs[low])[1] < interval(theirs[high])[0]
        return is_below and _mean(ours[low], window, what) >= _mean(ours[high], window, what)

    like = [pair for pair in permutations(theirs, 2) if _others(pair[0]) == _others(pair[1])]
    return sum(other_way(*pair) for pair in like)


def _others(cell: Cell) -> tuple[int, int, int]:
    return cell.rtt_ms, cell.bursts_mbps, cell.varying_ms


def _section(
    title: str, theirs: Found, ours: Found, verdicts: list[Verdict], note: str, *, reduction: bool
) -> Section:
    columns = {"throughput Mb/s": "throughput_mbps", "service rate Mb/s": "rate_mbps", "switches": "switches"}
    rows = []
    for cell in theirs:
        row = [cell.label]
        for what in columns.values():
            form = ".0f" if what == "switches" else ".2f"
            row.append(" / ".join(format(_mean(found[cell], 0, what), form) for found in (ours, theirs)))
        row.append(" / ".join(f"{100 * _mean(found[cell], 0, 'loss'):.3f}" for found in (ours, theirs)))
        if reduction:
            lost = (f"{_reduction(found, cell, 0):.1f}" for found in (ours, theirs))
            row.append(" / ".join(lost) if cell.mrci_ms else "-")
        rows.append(row)
    heads = ["cell", *columns, "loss %", *["throughput lost %"] * reduction]
    return Section(title, heads, rows, note, None, verdicts)

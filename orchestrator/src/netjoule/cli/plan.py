# SPDX-License-Identifier: Apache-2.0
"""What ``netjoule plan`` prints: runs, time, and what a design can show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import netjoule_contracts as contracts
from netjoule.cli import launch
from netjoule.cli.launch import Inputs
from netjoule.core.clock import SystemClock
from netjoule.core.console import Output, duration_text
from netjoule.core.words import counted
from netjoule.design import multiplicity, run_table
from netjoule.design.duration import Forecast, forecast
from netjoule.design.resolution import Estimate, estimate
from netjoule.diagnostics import sample_size
from netjoule.loads import load_of
from netjoule.topology.paths import parameters
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.cell import value_name
from netjoule.workload.workload import Workload, of_testbed


def tell(
    inputs: Inputs, seed: int | None, size_asked: sample_size.Request, output: Output, *, rows: bool
) -> None:
    """Print what a workload takes and can show.

    Args:
        inputs: workload and topology.
        seed: of the command line, None for the workload's.
        size_asked: whether blocks for a difference are asked.
        output: takes words and events.
        rows: also every run.

    Raises:
        UsageError, InvalidData: as `sample_size.tell`.
    """
    chosen = seed if seed is not None else inputs.workload.seed
    load = load_of(inputs.workload, inputs.topology)
    devices = inputs.workload.factors.get("device", ())
    estimates = estimate(load.sends(), inputs.topology, SystemClock().utc_now().date(), devices)
    for line in text(inputs, chosen, estimates):
        output.say(line)
    size = forecast(inputs.workload, inputs.topology)
    output.event(
        {
            "event": "plan",
            "seed": chosen,
            **asdict(size),
            "resolution": [asdict(e) for e in estimates],
            **load.left_open(),
        }
    )
    if rows:
        for row in run_table.expand(inputs.workload, launch.draw_seed() if chosen is None else chosen):
            output.say(f"{row.run_id}  {row.cell}")
            output.event({"event": "run", **row.as_json()})
    sample_size.tell(size_asked, inputs.workload, size, output)


def text(inputs: Inputs, seed: int | None, estimates: Sequence[Estimate]) -> Iterator[str]:
    """The lines for people."""
    of, where = inputs.workload, inputs.topology
    size = forecast(of, where)
    yield f"workload   {of.name} on testbed {where.name} ({where.kind})"
    yield (
        f"runs       {size.runs} = {counted(size.mini_blocks, 'mini-block')} x"
        f" {_arms_text(size.arms, of)}, {counted(size.blocks, 'block')}"
    )
    longer = " or more: it ends when its work does" if size.until_done else ""
    of_time = " of simulated time" if where.kind == SIMULATED else ""
    yield f"time       {duration_text(size.duration_s)}{of_time} ({size.run_s:.1f} s a run{longer})"
    yield f"smallest p {_smallest_p_text(size, of)}"
    load = load_of(of, where)
    for about, line in load.summary().items():
        yield f"{about:<10} {line}"
    for name in filter(of_testbed, of.factors):
        yield f"{name:<10} {'; '.join(_setting(where, name, value) for value in of.factors[name])}"
    if where.kind == SIMULATED:
        yield f"rigs       {size.rigs} of this machine's cores"
    elif size.rigs:
        yield f"rigs       {size.rigs}: {', '.join(where.rigs)}; each has a session for each of its blocks"
    elif size.sessions > 1:
        yield f"sessions   {size.sessions}, one in each block for what only a start sets"
    yield f"seed       {seed if seed is not None else 'drawn when the campaign starts'}"
    yield from (f"resolution {_resolution_text(e)}" for e in estimates)
    for about, lines in load.left_open().items():
        yield from (f"{about:<10} {line}" for line in lines)


def _setting(where: Topology, factor: str, value: Any) -> str:
    """A value of a testbed's factor, a preset with what it comes to: ``far (rtt_ms 40)``."""
    kinds = (contracts.factor(factor) or {"value": {"type": ()}})["value"]["type"]
    known = parameters(where.document, factor, value) if "object" in kinds else value
    return value_name(value) if known is value else f"{value} ({value_name(known)})"


def _smallest_p_text(size: Forecast, of: Workload) -> str:
    """Of one test, and of the family that is tested (Holm)."""
    one = f"{size.least_p:.3g} possible with {counted(size.blocks, 'block')} (sign-flip test)"
    tests = multiplicity.size(of)
    if tests == 0:
        return f"{one}; no two arms to compare, so no test"
    least = multiplicity.least_blocks(tests, multiplicity.alpha(of))
    if size.blocks < least:
        return f"{one}; tests need {least} blocks or more"
    if tests == 1:
        return f"{one}, the only test"
    return f"{one}; {min(1.0, tests * size.least_p):.3g} after Holm over {tests} tests"


def _arms_text(arms: int, of: Workload) -> str:
    """How many arms, and of what: ``5 transports``, ``7 levels of concurrency``."""
    factor = contracts.factor(of.arm) or {"label": "arm"}
    word = str(factor["label"]).lower()
    return f"{counted(arms, 'level')} of {word}" if "unit" in factor else counted(arms, word)


def _resolution_text(found: Estimate) -> str:
    """An estimate in words: what a meter resolves, and the cells that will likely be below it."""
    if found.range_open:
        return f"{found.meter_id}: a ranging pass finds its range first, so no estimate"
    if found.least_w is None:
        return f"{found.meter_id}: accuracy unknown, so no estimate"
    text = f"{found.meter_id}: rough estimate, resolves P_A - P_I from {found.least_w:.2g} W"
    if found.below is None:
        return f"{text}; the device's power is not known"
    if not found.below:
        return f"{text}; all cells above it"
    cells = f"{len(found.below)} of {counted(found.cells, 'cell')}"
    return f"{text}; likely below it: {cells}: {'; '.join(found.below)}"

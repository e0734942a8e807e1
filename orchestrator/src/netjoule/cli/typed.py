# SPDX-License-Identifier: Apache-2.0
"""Options of several commands, and the campaigns that a command line describes (quick, measure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.design.duration import Forecast
    from netjoule.design.timeline import MeterPace

Blocks = Annotated[int, typer.Option("--blocks", metavar="N", min=1, help="Repetitions; a test needs 8.")]
Testbed = Annotated[
    Path | None,
    typer.Option("--testbed", metavar="FILE", help="Topology file [default: netjoule's own, emulated]."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="New folder of the campaign [default: results/NAME-UTC]."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout, for machines.")]

_LEAST_IDLE_S = 1.0
_SETTLE_S = 0.1


def start(
    name: str,
    asked: Callable[..., dict[str, Any]],
    size: Callable[[Forecast], str],
    *,
    explained_by: str,
    testbed: Path | None,
    out: Path | None,
    output: Output,
) -> tuple[int, Path]:
    """Write the workload file, run it and make the report; the exit code, and the campaign's folder.

    Args:
        name: of the command.
        asked: the workload for a testbed's `meters` and a `seed`.
        size: what it takes, in words.
        explained_by: page that explains the fields of the file.
        testbed: topology file; the shipped one by default.
        out: the campaign's folder; by default one in results.
        output: takes words and events.
    """
    from netjoule import loads
    from netjoule.analysis import analysis
    from netjoule.cli import launch, results
    from netjoule.core import programs
    from netjoule.core.clock import SystemClock
    from netjoule.design import instruments
    from netjoule.design.duration import forecast
    from netjoule.store import folder_limits
    from netjoule.topology import topology

    now = SystemClock().utc_now()
    place = out or launch.default_out(name, now)
    file = place.with_name(f"{place.name}.yaml")
    where = testbed or programs.shipped(launch.DEFAULT_TOPOLOGY)
    on = topology.load(where).on_rigs(None)
    document = asked(meters=[instruments.pace_of(meter) for meter in on.meters], seed=launch.draw_seed())
    inputs = launch.fitting(launch.Inputs(loads.made(document, where=f"netjoule {name}"), on, file, where))
    launch.require_programs(inputs)
    analysis.require_r()
    folder_limits.require_free(place)
    launch.write_workload(file, document, f"netjoule {name}; {explained_by} explains the fields")
    output.say(f"{size(forecast(inputs.workload, on))}; workload: {file}")
    code = launch.start(inputs, place, document["seed"], now, output)
    if code == 0:
        results.tell(place, "report", output)
        again = f" --testbed {testbed}" if testbed else ""
        output.say(f"the same again: netjoule run {file}{again}")
    return code, place


def guards(meters: Sequence[MeterPace]) -> dict[str, float]:
    """Windows of a run without packets, s, that a testbed's meters resolve."""
    return {"idle_s": max(_LEAST_IDLE_S, least_window_s(meters)), "settle_s": _SETTLE_S}


def least_window_s(meters: Sequence[MeterPace]) -> float:
    """The shortest window that the slowest meter resolves, s."""
    from netjoule.design.timeline import MIN_WINDOW_UPDATES

    return MIN_WINDOW_UPDATES * max((meter.update_interval_s for meter in meters), default=0.0)

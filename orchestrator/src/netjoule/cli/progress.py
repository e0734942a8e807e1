# SPDX-License-Identifier: Apache-2.0
"""How a running campaign is shown: a bar on a terminal, a line per run elsewhere, NDJSON for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from netjoule.core.console import Output, duration_text
from netjoule.execution.progress import ProgressEvent, ProgressSink

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def event_document(event: ProgressEvent) -> dict[str, Any]:
    """A progress event as one NDJSON document."""
    document: dict[str, Any] = {
        "event": event.kind,
        "t_s": round(event.t_s, 6),
        "done": event.done,
        "total": event.total,
        "remaining_s": round(event.remaining_s, 1),
    }
    if event.row is not None:
        document |= {"run_id": event.row.run_id, "arm": event.row.arm, **event.row.cell}
    if event.detail:
        document["detail"] = event.detail
    if event.nodes:
        document["nodes"] = [_node_document(node) for node in event.nodes]
    return document


def _node_document(node: Mapping[str, Any]) -> dict[str, Any]:
    energy: tuple[str, ...] = ("ea_j_per_mbit", "u95_ea_j_per_mbit")
    if energy[0] not in node:
        energy = ("energy_per_work_j", "u95_energy_per_work_j", "work_unit")
    wanted = ("meter_id", "node", "power_source", "radio_source", *energy, "grade")
    return {name: node.get(name) for name in wanted}


@contextmanager
def progress_sink(output: Output, total: int) -> Iterator[ProgressSink]:
    """A sink for the time of a campaign: NDJSON, a bar on a terminal, or one line per run elsewhere."""
    if output.json_lines:
        yield lambda event: output.event(event_document(event))
    elif output.errors.is_terminal:
        with _bar(output.errors) as bar:
            yield _bar_sink(bar, total)
    else:
        yield _line_sink(output)


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:.0f}/{task.total:.0f} runs, {task.fields[left]}"),
        TextColumn("{task.fields[last]}"),
        console=console,
    )


def _bar_sink(bar: Progress, total: int) -> ProgressSink:
    task = bar.add_task("starting the testbed", total=total, left="", last="")

    def sink(event: ProgressEvent) -> None:
        fields: dict[str, Any] = {"left": f"{duration_text(event.remaining_s)} left"}
        if event.kind == "run_started" and event.row is not None:
            bar.update(task, description=_cell(event))
        if event.kind in ("run_result", "repeat") and event.row is not None:
            fields["last"] = _last(event)
        bar.update(task, completed=event.done, total=event.total, **fields)

    return sink


def _line_sink(output: Output) -> ProgressSink:
    def sink(event: ProgressEvent) -> None:
        if event.kind in ("run_result", "repeat") and event.row is not None:
            left = duration_text(event.remaining_s)
            output.error(f"{event.settled}/{event.total} {_last(event)} ({left} left)")

    return sink


def _cell(event: ProgressEvent) -> str:
    assert event.row is not None
    return ", ".join(filter(None, (event.row.arm, str(event.row.cell))))


def _last(event: ProgressEvent) -> str:
    """The last result in words: E_A as `ea_text` has it, or why there is none."""
    counts = event.nodes and event.detail in ("", "valid")
    return f"{_cell(event)}: {ea_text(event.nodes) if counts else event.detail}"


def ea_text(nodes: Sequence[Mapping[str, Any]]) -> str:
    """E_A with its u95, source and grade, in words; below resolution only a limit.

    Of the first meter whose node took part: a client without a flow in the run has none. Energy per unit of
    the work where that is not in Mb.
    """
    node = next((one for one in nodes if one.get("ea_reason") != "took_no_part"), nodes[0])
    is_ea = "ea_j_per_mbit" in node
    named, unit = ("E_A ", "J/Mb") if is_ea else ("", f"J/{node.get('work_unit') or 'unit'}")
    name = "ea_j_per_mbit" if is_ea else "energy_per_work_j"
    energy, u95 = node.get(name), node.get(f"u95_{name}")
    grade, source = node.get("grade"), node.get("power_source")
    limit = None if is_ea else node.get("upper_limit_energy_per_work_j")
    if is_ea and grade == "below_resolution" and energy is not None and u95 is not None:
        limit = energy + u95
    if limit is not None:
        return f"{named}under {limit:.2g} {unit}, below resolution ({source})"
    if energy is None:
        return str(node.get("ea_reason") or ("no E_A" if is_ea else "no energy")).replace("_", " ")
    width = f" ±{u95:.2g}" if u95 is not None else ""
    return f"{named}{energy:.3g}{width} {unit} ({source}{f', grade {grade}' if grade else ''})"

# SPDX-License-Identifier: Apache-2.0
"""``netjoule demo --meter NAME``: the demo as another meter sees it, in under ten minutes.

A window holds at least ten updates of the meter, so a slow meter makes long runs; cells, blocks and
transports are then left out, the least telling first, until the demo fits. A coarse meter does not become
finer by this: its results say grade C or below resolution.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.core.errors import UsageError
from netjoule.design import instruments
from netjoule.design.duration import forecast
from netjoule.design.timeline import MeterPace, data_due_s
from netjoule.topology import topology
from netjoule.topology.topology import Topology
from netjoule.workload.cell import value_name, value_words
from netjoule.workload.workload import Timing, Workload

BUDGET_S = 570.0
"""Ten minutes without bringing the testbed up and writing the report."""
MIN_WINDOW_UPDATES = 10
_CALIBRATED = "2026-09-01"


@dataclass(frozen=True, slots=True)
class MeterDemo:
    """One meter of the demo.

    Attributes:
        settings: of the adapter.
        note: what differs from the usual way of reading it.
        emulation: options of the emulated instrument.
        as_emulated: whether the adapter needs settings to read the emulated instrument.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    emulation: Mapping[str, Any] = field(default_factory=dict)
    as_emulated: bool = False


_DEVICE_MODEL = "laptop-cpu"  # a device whose power each of them can see at all
_RANGES = {"voltage_range_v": 300, "current_range_a": 0.1, "mode": "RMS"}
METERS = {
    "wt210": MeterDemo({"update_interval_s": 0.1, **_RANGES}),
    "wt310": MeterDemo({"update_interval_s": 0.1, "model": "WT310E", **_RANGES, "current_range_a": 0.5}),
    "hm8115": MeterDemo({"voltage_range_v": 500, "current_range_a": 0.16}),
    # Renewed every 5 s: shown one update late, for one update.
    "isockets": MeterDemo(
        {"update_interval_s": 5.0, "lag_s": 7.5},
        "the study read i-Sockets every 30 s (windows of 5 minutes); here every 5 s",
        as_emulated=True,
    ),
    # One lost message in a window of ten is a gap, and there is no time to repeat a run.
    "cc128": MeterDemo(
        {},
        "it shows apparent power (VA), its accuracy is unknown; here its radio loses no message",
        {"miss_ratio": 0},
    ),
}


def _settings(name: str) -> dict[str, Any]:
    chosen = METERS[name]
    if not chosen.as_emulated:
        return dict(chosen.settings)
    from netjoule_meters.emulated.registry import emulated_model, variant_of

    return {**variant_of(emulated_model(name), "").settings, **chosen.settings}


def demo_for(name: str, workload: Workload, of: Topology) -> tuple[Workload, Topology, list[str]]:
    """The demo's workload and topology for a meter, with what to tell about them.

    Raises:
        UsageError: for a meter that has no demo.
    """
    if name not in METERS:
        step = f"use one of {', '.join(METERS)}"
        raise UsageError(f"there is no demo with the meter '{name}'", next_step=step)
    chosen = METERS[name]
    document = dict(of.document)
    document["name"] = f"{of.name}-{name}"
    document["meters"] = [
        {
            "meter_id": f"client-{name}",
            "node": of.host_with("client"),
            "adapter": name,
            "resource": topology.EMULATED,
            "settings": _settings(name),
            "calibration_date": _CALIBRATED,
            "device": {"model": _DEVICE_MODEL},
            **({"emulation": dict(chosen.emulation)} if chosen.emulation else {}),
        }
    ]
    where = Topology.from_document(document, where=f"demo with {name}")
    pace = instruments.pace_of(where.meters[0])
    load = fitted(workload, where, pace, f"{workload.name}-{name}")
    timing, update_s = load.timing, pace.update_interval_s
    said = [
        f"meter {name} (emulated) on the device model {_DEVICE_MODEL}, an update in {update_s:g} s",
        f"windows {timing.measure_s:g} s, idle {timing.idle_s:g} s: {MIN_WINDOW_UPDATES} updates each",
        *([chosen.note] if chosen.note else []),
    ]
    left_out = _left_out(workload, load)
    return load, where, [*said, *([left_out] if left_out else [])]


def timing_for(timing: Timing, pace: MeterPace) -> Timing:
    """The demo's timing stretched until each window holds ten updates and each guard one."""
    update_s = pace.update_interval_s
    window_s = MIN_WINDOW_UPDATES * update_s
    return Timing(
        idle_s=_up(max(timing.idle_s, window_s)),
        settle_s=_up(max(timing.settle_s, update_s)),
        warm_up_s=_up(max(timing.warm_up_s, 3 * update_s + pace.lag_s)),
        measure_s=_up(max(timing.measure_s, window_s)),
        tail_s=_up(max(timing.tail_s, update_s)),
    )


def _up(seconds: float) -> float:
    """The next tenth of a second."""
    return math.ceil(round(seconds * 10, 6)) / 10


def fitted(workload: Workload, where: Topology, pace: MeterPace, name: str) -> Workload:
    """The largest design of the demo that a meter's long windows leave time for.

    Raises:
        UsageError: when not even one cell fits.
    """
    timing = timing_for(workload.timing, pace)
    base = {**workload.document, "name": name}
    base["timing"] = {key: getattr(timing, key) for key in workload.document["timing"]}
    if pace.update_interval_s > 0.25:
        base["sync_pulses"] = False  # a Barker code of such updates would take the demo's time
    for design in _designs(workload):
        document = _without_settings({**base, **design}, workload)
        candidate = Workload.from_document(document, where=f"demo with {pace.meter_id}")
        size = forecast(candidate, where)
        needs_s = size.duration_s + data_due_s(0.0, [pace])
        if needs_s <= BUDGET_S:
            repeat_s = needs_s / size.mini_blocks
            if needs_s + repeat_s > BUDGET_S:  # no time to repeat a mini-block: an invalid run stays so
                document = {**candidate.document, "limits": {"max_attempts": 1}}
                candidate = Workload.from_document(document, where=candidate.name)
            return candidate
    raise UsageError(
        f"{pace.meter_id} updates every {pace.update_interval_s:g} s: no demo of ten minutes has "
        f"{MIN_WINDOW_UPDATES} updates in each window",
        next_step="run a workload of your own with longer windows",
    )


def _designs(workload: Workload) -> Iterator[dict[str, Any]]:
    """Ever smaller designs: blocks go first, then small values, the last factor first, then arms."""
    factors = {name: list(values) for name, values in workload.document["factors"].items()}
    cells = [factors]
    for name in reversed([name for name in factors if name != workload.arm and len(factors[name]) > 1]):
        for kept in (2, 1):
            cells.append({**cells[-1], name: cells[-1][name][-kept:]})
    for some in cells:
        for blocks in range(workload.blocks, 0, -1):
            yield {"factors": some, "blocks": blocks}
    for kept in range(len(factors[workload.arm]) - 1, 0, -1):
        yield {"factors": {**cells[-1], workload.arm: factors[workload.arm][:kept]}, "blocks": 1}


def _without_settings(document: dict[str, Any], full: Workload) -> dict[str, Any]:
    """The same without what the load's settings say of arms that were left out."""
    gone = set(full.compared) - {value_name(value) for value in document["factors"][full.arm]}
    settings = {
        name: {of: own for of, own in said.items() if of not in gone} if isinstance(said, Mapping) else said
        for name, said in document[full.load].items()
    }
    return {**document, full.load: settings}


def _left_out(full: Workload, kept: Workload) -> str:
    """What the design lacks of the whole demo, in words."""
    said = [
        ", ".join(value_words(name, value) for value in missing)
        for name, values in full.factors.items()
        if (missing := [value for value in values if value not in kept.factors[name]])
    ]
    if kept.blocks < full.blocks:
        said.append(f"{full.blocks - kept.blocks} of {full.blocks} blocks")
    if kept.max_attempts < full.max_attempts:
        said.append("repeats of invalid runs")
    return f"left out to stay under ten minutes: {'; '.join(said)}" if said else ""


def write(folder: Path, workload: Workload, where: Topology) -> tuple[Path, Path]:
    """Both documents as files that every command reads (JSON is YAML)."""
    paths = folder / "workload.yaml", folder / "topology.yaml"
    for path, document in zip(paths, (workload.document, where.document), strict=True):
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return paths

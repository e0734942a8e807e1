# SPDX-License-Identifier: Apache-2.0
"""The long tables of a synthetic campaign: readings of power and radio, intervals. Fast, in chunks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from typing import IO

import numpy as np

import netjoule_contracts as contracts
from netjoule_synthetic.design import FRAMES_SHARE, TICKS_PER_S, Design, Meter, ticks
from netjoule_synthetic.truth import FIRST_TICK, FloatArray, Layout, layout

DECIMALS = 4
"""Of a reading in W, as instruments have."""
_SUPPLY_V = 12.0
_RUNS_AT_ONCE = 200
_READING = "%.6f,%d,%.4f,%g,%.5f,,\n".__mod__
_SAMPLE = (
    '{"t_start_s": %.6f, "t_end_s": %.6f, "power_w": %.4f, "extrapolated": false, '
    '"terms": {"p0": %.6f, "frames": %.6f, "air_time": %.6f}}\n'
).__mod__
_PHY = ((216.0, 13, 0.8), (162.0, 12, 0.2))
"""PHY rate in Mb/s, MCS and how often: 802.11n, 40 MHz, two streams, long guard interval."""


@dataclass(frozen=True, slots=True)
class Means:
    """Means of the readings of one meter in the windows of each run, W: what its results say.

    idle_w has one more than there are runs: neighbours share an idle window.
    """

    active_w: FloatArray
    idle_w: FloatArray
    tail_w: FloatArray


def end_tick(parts: Layout, runs: int) -> int:
    """Where the logs end: a second after the last idle window."""
    return parts.start(runs) + parts.idle + TICKS_PER_S


def write_meter(design: Design, number: int, delta_w: FloatArray, folder: Path) -> Means:
    """Write meters/<meter_id>.csv (and the device stream, where the design has one); its windows' means.

    Args:
        design: the campaign.
        number: place of the meter in it.
        delta_w: power above idle of each run while sending.
        folder: of the campaign.
    """
    meter, parts = design.meters[number], layout(design)
    chance = np.random.default_rng([design.seed, 3, number])
    found: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    update = ticks(meter.update_interval_s, "update interval")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((folder / "meters" / f"{meter.meter_id}.csv").open("w", encoding="ascii"))
        log.write(_header("meters"))
        stream = None
        if design.device_stream:
            (folder / "devices").mkdir(exist_ok=True)
            file = folder / "devices" / f"{meter.meter_id}.ndjson"
            stream = stack.enter_context(file.open("w", encoding="ascii"))
        power = _readings(design, meter, np.zeros((1, FIRST_TICK)), 0, chance)
        seq = _append(log, stream, meter, 0, power)
        for first in range(0, len(delta_w), _RUNS_AT_ONCE):
            above = _above_idle(design, parts, delta_w[first : first + _RUNS_AT_ONCE])
            power = _readings(design, meter, above, parts.start(first), chance)
            found.append(_means(power, parts, update))
            seq = _append(log, stream, meter, seq, power)
        last = parts.start(len(delta_w))
        power = _readings(design, meter, np.zeros((1, end_tick(parts, len(delta_w)) - last)), last, chance)
        idle = power[:, : parts.idle // update].mean(axis=1)
        _append(log, stream, meter, seq, power)
    active, before, tail = (np.concatenate(column) for column in zip(*found, strict=True))
    return Means(active, np.concatenate([before, idle]), tail)


def _above_idle(design: Design, parts: Layout, delta_w: FloatArray) -> FloatArray:
    """Power above idle in each tick: a row per run, from its first idle window to the next run's."""
    above = np.zeros((len(delta_w), parts.period))
    begin, end = parts.idle, parts.idle + parts.flow
    above[:, begin:end] = delta_w[:, None]
    above[:, end : end + parts.tail] = design.tail_ratio * delta_w[:, None]
    return above


def _readings(
    design: Design, meter: Meter, above_w: FloatArray, first_tick: int, chance: np.random.Generator
) -> FloatArray:
    """What the meter reads: means over its update interval, with noise, rounded; of the same shape."""
    rows, columns = above_w.shape
    update = ticks(meter.update_interval_s, "update interval")
    coarse = above_w.reshape(rows, columns // update, update).mean(axis=2)
    middle = first_tick + update * (np.arange(coarse.size).reshape(coarse.shape) + 0.5)
    idle = meter.idle_w + design.idle_drift_w_per_h / 3600 * middle / TICKS_PER_S
    noise = chance.normal(0, design.reading_sd_w, coarse.shape) if design.reading_sd_w else 0.0
    found: FloatArray = np.round(coarse + idle + noise, DECIMALS)
    return found


def _means(power: FloatArray, parts: Layout, update: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means of the measure window, the idle window before it and the tail, of each run."""
    begin = (parts.idle + parts.warm_up) // update
    end = begin + parts.measure // update
    return (
        power[:, begin:end].mean(axis=1),
        power[:, : parts.idle // update].mean(axis=1),
        power[:, end : end + parts.tail // update].mean(axis=1),
    )


def _append(log: IO[str], stream: IO[str] | None, meter: Meter, seq: int, power_w: FloatArray) -> int:
    """Add readings in order, the first as number ``seq``, and where asked their samples; the next number."""
    power = power_w.ravel()
    number = np.arange(seq, seq + power.size)
    end_s = (number + 1) * meter.update_interval_s
    at_s = end_s + meter.lag_s
    columns = (at_s.tolist(), number.tolist(), power.tolist(), repeat(_SUPPLY_V))
    log.write("".join(map(_READING, zip(*columns, (power / _SUPPLY_V).tolist(), strict=False))))
    if stream is not None:
        start_s = number * meter.update_interval_s
        above = power - meter.idle_w
        terms = (np.full(power.size, meter.idle_w), FRAMES_SHARE * above, (1 - FRAMES_SHARE) * above)
        samples = zip(*(one.tolist() for one in (start_s, end_s, power, *terms)), strict=True)
        stream.write("".join(map(_SAMPLE, samples)))
    return seq + power.size


def write_intervals(path: Path, first_tick: int, works: Sequence[float]) -> None:
    """Write runs/<run_id>/intervals.csv of a flow that begins at ``first_tick``; works in Mb."""
    edges = [f"{(first_tick + k) / TICKS_PER_S:.6f}" for k in range(len(works) + 1)]
    rows = zip(pairwise(edges), works, strict=True)
    lines = [f"1,client,{begin},{end},{work!r}\n" for (begin, end), work in rows]
    path.write_text(_header("intervals") + "".join(lines), encoding="ascii")


def write_radio(design: Design, node: str, runs: int, folder: Path) -> None:
    """Write radio/<node>.csv: a reading every so often, at one of two PHY rates."""
    until_s = end_tick(layout(design), runs) / TICKS_PER_S
    at_s = np.arange(design.radio_every_s / 2, until_s, design.radio_every_s)
    chance = np.random.default_rng([design.seed, 4])
    which = chance.choice(len(_PHY), at_s.size, p=[share for _, _, share in _PHY])
    header = _header("radio")
    rests = [_radio_rest(header.strip().split(",")[1:], rate, mcs) for rate, mcs, _ in _PHY]
    with (folder / "radio" / f"{node}.csv").open("w", encoding="ascii") as handle:
        handle.write(header)
        handle.writelines(f"{t:.6f},{rests[k]}" for t, k in zip(at_s.tolist(), which.tolist(), strict=True))


def _radio_rest(fields: Sequence[str], rate_mbps: float, mcs: int) -> str:
    known = {
        "phy_rate_mbps": f"{rate_mbps:.1f}",
        "mcs": str(mcs),
        "streams": "2",
        "width_mhz": "40",
        "guard_interval_ns": "800",
        "retries": "0",
        "failed": "0",
        "source": "link",
    }
    return ",".join(known.get(name, "") for name in fields) + "\n"


def _header(table: str) -> str:
    """The header line that the contract asks for."""
    return ",".join(str(field["name"]) for field in contracts.table(table)["fields"]) + "\n"

# SPDX-License-Identifier: Apache-2.0
"""``calibrate``: compare a meter with a known load or a reference meter, one point per call."""

from __future__ import annotations

import json
import os
import statistics
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule_meters.cli import options
from netjoule_meters.errors import MeterError, UsageError

if TYPE_CHECKING:
    from netjoule_meters.adapters.base import Meter
    from netjoule_meters.calibration import Reference
    from netjoule_meters.config import MeterConfig
    from netjoule_meters.reading import Reading

_SETTLE_UPDATES = 3


def calibrate_command(
    out: Annotated[Path, typer.Option(help="Calibration document; a point is added when it exists.")],
    adapter_name: options.AdapterName = None,
    port: options.PortOption = None,
    setting: options.SettingOption = None,
    config: options.ConfigOption = None,
    meter_id: options.MeterIdOption = None,
    known_w: Annotated[float | None, typer.Option(help="Power of the known load in W.")] = None,
    known_u95_w: Annotated[float | None, typer.Option(help="Its uncertainty in W, 95 %.")] = None,
    known_text: Annotated[
        str, typer.Option("--known-text", help="What the load is and how its power is known.")
    ] = "known load",
    reference_adapter: Annotated[
        str | None, typer.Option(help="Adapter of a reference meter in the same supply.")
    ] = None,
    reference_port: Annotated[str | None, typer.Option(help="Where it is.")] = None,
    reference_set: Annotated[list[str] | None, typer.Option(help="A setting of it, NAME=VALUE.")] = None,
    reference_calibrated: Annotated[
        str | None, typer.Option(help="Day of its last calibration, e.g. 2026-03-01.", metavar="DATE")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long to compare, in s.")] = 60.0,
) -> None:
    """Add one calibration point: what this meter shows under a known power, or beside a reference meter.

    The document holds points, gain, offset and limits of error. Name it as `calibration` of the meter in a
    topology: its passport then cites the document and takes its limits. Readings are never corrected.

    Example: netjoule-meters calibrate socket --port http://192.0.2.17 --set preset=shelly2
    --known-w 60.2 --known-u95-w 0.4 --known-text "heater, checked with a WT310E" --out plug-7.json
    """
    from netjoule_meters import calibration
    from netjoule_meters.clock import today

    meter = options.chosen_meter(adapter_name, port, setting, config, meter_id)
    beside = _reference_config(reference_adapter, reference_port, reference_set, reference_calibrated)
    _require_one(known_w, known_u95_w, beside)
    earlier = calibration.load(out) if out.exists() else None
    shown, instrument, reference, true_w, u95_w = _compare(meter, beside, seconds)
    if known_w is not None and known_u95_w is not None:
        reference = calibration.Reference("known_load", known_text, "stated by the operator")
        true_w, u95_w = known_w, known_u95_w
    assert reference is not None
    point = calibration.point(true_w, u95_w, shown)
    points = [point]
    if earlier is not None:
        earlier.require(instrument.adapter, instrument.identification, instrument.range)
        _require_same_reference(earlier.content["reference"], reference, out)
        points = [*calibration.points_of(earlier.content), point]
    document = calibration.document(instrument, reference, points, today())
    _write(out, document)
    _tell(document, out)


def _require_one(known_w: float | None, known_u95_w: float | None, beside: MeterConfig | None) -> None:
    if (known_w is None) == (beside is None):
        raise UsageError("give either --known-w or a reference meter (--reference-adapter, --reference-port)")
    if known_w is not None and known_u95_w is None:
        raise UsageError("a known load needs its uncertainty: give --known-u95-w, in W")


def _reference_config(
    adapter_name: str | None, port: str | None, setting: Sequence[str] | None, day: str | None
) -> MeterConfig | None:
    from datetime import date

    if adapter_name is None and port is None:
        return None
    config = replace(options.chosen_meter(adapter_name, port, setting, None), meter_id="reference")
    if day is None:
        raise UsageError("a reference meter needs --reference-calibrated: without it its accuracy is unknown")
    try:
        date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"--reference-calibrated takes a date like 2026-03-01, not '{day}'") from None
    return replace(config, settings=options.settings_of(setting), calibration_date=day)


def _require_same_reference(before: dict[str, Any], now: Reference, out: Path) -> None:
    if before["method"] != now.method:
        raise UsageError(
            f"{out} was made with a {before['method']}, this point with a {now.method}: use another --out"
        )


def _compare(
    config: MeterConfig, beside: MeterConfig | None, seconds: float
) -> tuple[list[float], Any, Reference | None, float, float]:
    """Powers shown by the meter, what it is, and the reference's mean and u95 (0 without one)."""
    from netjoule_meters.adapters.base import Semantics
    from netjoule_meters.calibration import Instrument
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.meter_factory import open_meter

    clock = SystemClock()
    configs = [config] if beside is None else [config, beside]
    meters: list[Meter] = []
    try:
        for one in configs:
            meters.append(open_meter(one, clock=clock))
        rows = _readings(meters, seconds)
        powers = [[r.power_w for r in kept if not r.flag and r.power_w is not None] for kept in rows]
        meter = meters[0]
        if meter.semantics is Semantics.ENERGY_COUNTER:
            raise UsageError(f"{config.adapter} counts energy here; calibrate its power reading instead")
        instrument = Instrument(
            meter.name,
            meter.identity(config),
            meter.measuring_range,
            meter.settings,
            meter.quantity.value,
            config.power_source,
        )
        if beside is None:
            return powers[0], instrument, None, 0.0, 0.0
        reference, mean_w, u95_w = _reference_mean(meters[1], beside, powers[1])
        return powers[0], instrument, reference, mean_w, u95_w
    finally:
        for meter in meters:
            meter.close()


def _reference_mean(
    meter: Meter, config: MeterConfig, powers: Sequence[float]
) -> tuple[Reference, float, float]:
    """Mean of a reference meter and its 95 % uncertainty from its specification and its noise.

    Raises:
        UsageError: when its accuracy is unknown or it gave too few readings.
    """
    import math

    from netjoule_meters.calibration import LEAST_READINGS, Reference
    from netjoule_meters.clock import today

    passport = meter.passport(config, today())
    accuracy = passport.accuracy
    if accuracy.reading_ratio is None or accuracy.range_ratio is None:
        raise UsageError(f"the reference meter's accuracy is {accuracy.source}: use another reference")
    if len(powers) < LEAST_READINGS:
        raise UsageError(f"the reference meter gave too few readings ({len(powers)}): use a longer --seconds")
    mean_w = statistics.fmean(powers)
    limit_w = accuracy.reading_ratio * abs(mean_w) + accuracy.range_ratio * (passport.range.power_w or 0.0)
    noise_w = statistics.stdev(powers) / math.sqrt(len(powers))
    u95_w = 2 * math.hypot(limit_w / math.sqrt(3), noise_w)
    text = f"{passport.identification.text} calibrated {config.calibration_date}"
    return Reference("reference_meter", text, accuracy.source), mean_w, u95_w


def _readings(meters: Sequence[Meter], seconds: float) -> list[list[Reading]]:
    """Readings of all meters over the same time; the first updates of each are left out."""
    from netjoule_meters.shutdown import on_end_signal

    stop = threading.Event()
    rows: list[list[Reading]] = [[] for _ in meters]
    failures: list[MeterError] = []

    def take(meter: Meter, kept: list[Reading]) -> None:
        try:
            kept.extend(meter.readings(stop))
        except MeterError as error:
            failures.append(error)

    def end() -> None:
        stop.set()
        for meter in meters:
            meter.cancel()

    threads = [threading.Thread(target=take, args=pair) for pair in zip(meters, rows, strict=True)]
    with on_end_signal(end):
        for thread in threads:
            thread.start()
        stop.wait(seconds)
        end()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return [kept[_SETTLE_UPDATES:] for kept in rows]


def _write(out: Path, document: dict[str, Any]) -> None:
    """Write whole or not at all."""
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        fresh.replace(out)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from error


def _tell(document: dict[str, Any], out: Path) -> None:
    line, limits = document["line"], document["limits"]
    newest, count = document["points"][-1], len(document["points"])
    typer.echo(
        f"{newest['true_w']:.5g} W (u95 {newest['u95_true_w']:.2g} W) is shown as {newest['shown_w']:.5g} W "
        f"by {newest['readings']} readings"
    )
    typer.echo(
        f"{count} point{'s' if count > 1 else ''}: gain {line['gain']:.5f} (u95 {line['u95_gain']:.2g}), "
        f"offset {line['offset_w']:.3g} W (u95 {line['u95_offset_w']:.2g} W)"
    )
    typer.echo(
        f"limits from {limits['least_w']:.4g} to {limits['most_w']:.4g} W: "
        f"{100 * limits['reading_ratio']:.2g} % of the reading and "
        f"{100 * limits['range_ratio']:.2g} % of the range"
    )
    typer.echo(f"{out}: name it as `calibration` of this meter in the topology")

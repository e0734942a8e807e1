# SPDX-License-Identifier: Apache-2.0
"""Which cells will likely be below resolution: a rough estimate before anything runs, and called so.

A run is below resolution when P_A - P_I is under three times its uncertainty. Before the run only the
meter's range error and, for an emulated meter, the device model's terms are known; noise, idle drift and
the model's dependence on the PHY rate are not.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import NetjouleError, UsageError
from netjoule.design.instruments import instrument_of, wants_ranging
from netjoule.topology.devices import device_models
from netjoule.topology.topology import Meter, Topology
from netjoule.workload.load import Sending
from netjoule.workload.workload import Workload

# One frame on a quiet 802.11n channel: contention, preamble, SIFS and acknowledgement, then the payload
# at 216 Mb/s. Aggregation makes it less, retries make it more.
_FRAME_OVERHEAD_S = 130e-6
_PHY_RATE_BPS = 216e6
_HEADER_BYTES = 80
# CPU time of one message on its sender, of the order that iperf3 and netjoule-traffic need.
_CPU_PER_MESSAGE_S = 8e-6
_TIMEOUT_S = 30
# What is recommended where a workload asks for a form.
_MODEL_OF_FORM = {"cpu": "laptop-cpu"}
_UNKNOWN_MODEL = 2  # netjoule-device: usage


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one meter can resolve.

    Attributes:
        least_w: smallest P_A - P_I that is above resolution, in W; None when the meter's accuracy or range is
            unknown.
        below: cells likely below it, in words; None when no device model is known.
        cells: of how many cells this was asked.
        range_open: whether a ranging pass of the campaign will find the range.
    """

    meter_id: str
    least_w: float | None
    below: tuple[str, ...] | None
    cells: int = 0
    range_open: bool = False


def estimate(
    sends: Sequence[Sending], topology: Topology, today: date, devices: Sequence[str] = ()
) -> list[Estimate]:
    """One estimate per meter of the topology.

    Args:
        sends: what a client sends in each cell.
        topology: names the meters.
        today: tells how old a calibration is.
        devices: values of the factor `device`; with several no one model tells what a meter sees.
    """
    found, models = [], device_models(topology, devices)
    for meter in topology.meters:
        least_w = None if wants_ranging(meter) else least_resolved_w(meter, today)
        read = models.get(meter.meter_id, ())
        model = describe_model(read[0]) if len(read) == 1 else None
        found.append(
            Estimate(meter.meter_id, least_w, _below(sends, least_w, model), len(sends), wants_ranging(meter))
        )
    return found


def least_resolved_w(meter: Meter, today: date) -> float | None:
    """Three standard uncertainties of P_A - P_I from the meter's range error alone, in W.

    The range error of P_A and of P_I are independent and rectangular: u = sqrt(2) x limit / sqrt(3).
    """
    age_days = None
    if meter.calibration_date:
        age_days = float((today - date.fromisoformat(meter.calibration_date)).days)
    instrument = instrument_of(meter)
    accuracy, power_w = instrument.accuracy(age_days), instrument.measuring_range.power_w
    if accuracy.range_ratio is None or power_w is None:
        return None
    return 3 * math.sqrt(2 / 3) * accuracy.range_ratio * power_w


def check_models(workload: Workload, topology: Topology) -> None:
    """Refuse device models that netjoule-device does not know; silent when it cannot be asked.

    Raises:
        UsageError: naming the meter or the workload's factor, with the models there are.
    """
    named = [(meter.device_model, f"topology, meter {meter.meter_id}") for meter in topology.meters]
    of_factor = f"workload {workload.name}, field factors.device"
    for name, where in [*named, *((name, of_factor) for name in workload.factors.get("device", ()))]:
        answer = _asked(name) if name else None
        if answer is not None and answer.returncode == _UNKNOWN_MODEL:
            words = answer.stderr.strip().removeprefix("netjoule-device: ")
            raise UsageError(words, where=where)


def check_form(workload: Workload, topology: Topology) -> None:
    """Refuse a testbed whose device models cannot answer what a workload asks (its `device_form`).

    Silent when a meter reads a real device, or when netjoule-device cannot be asked.

    Raises:
        UsageError: naming the models there are and one that can.
    """
    wanted = workload.document.get("device_form")
    models = device_models(topology, workload.factors.get("device", ()))
    if wanted is None or not topology.meters or len(models) < len(topology.meters):
        return
    forms = {name: (describe_model(name) or {}).get("form") for read in models.values() for name in read}
    if wanted in forms.values() or None in forms.values():
        return
    found = ", ".join(f"{name} ({form})" for name, form in forms.items())
    advice = f" {_MODEL_OF_FORM[wanted]}" if wanted in _MODEL_OF_FORM else ""
    raise UsageError(
        f"workload {workload.name} needs a device model of form {wanted}, and the meters read {found}",
        where=f"topology {topology.name}, field meters",
        next_step=f"give one of them the device model{advice} of form {wanted}",
    )


def describe_model(name: str) -> dict[str, Any] | None:
    """What ``netjoule-device --describe`` says of a device model; None when it cannot be asked."""
    answer = _asked(name)
    try:
        document = json.loads(answer.stdout) if answer is not None and answer.returncode == 0 else None
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _asked(model: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return _describe(programs.find("netjoule-device"), model)
    except (NetjouleError, OSError, subprocess.TimeoutExpired):
        return None


@lru_cache
def _describe(program: str, model: str) -> subprocess.CompletedProcess[str]:
    return programs.said_by([program, "--model", model, "--describe"], timeout=_TIMEOUT_S)


def added_power_w(model: Mapping[str, Any], message_bytes: int, rate_mbps: float) -> float | None:
    """Rough P_A - P_I of a sending device in W; None for a form that is not known here."""
    p = {name: float(value) for name, value in model.get("parameters", {}).items()}
    frames_per_s = rate_mbps * 1e6 / 8 / message_bytes
    frame_s = _FRAME_OVERHEAD_S + 8 * (message_bytes + _HEADER_BYTES) / _PHY_RATE_BPS
    air_share = min(1.0, frames_per_s * frame_s)
    match model.get("form"):
        case "constant":
            return 0.0
        case "linear":
            return p.get("frame_j", 0.0) * frames_per_s + p.get("air_time_w", 0.0) * air_share
        case "cross_factor":
            # The air-time term depends on the PHY rate and comes on top.
            return p.get("gamma_xg_j", 0.0) * frames_per_s
        case "cpu":
            radio_w = (p.get("rho_tx_w", 0.0) - p.get("rho_idle_w", 0.0)) * air_share
            return radio_w + p.get("core_w", 0.0) * min(1.0, frames_per_s * _CPU_PER_MESSAGE_S)
    return None


def _below(
    sends: Sequence[Sending], least_w: float | None, model: Mapping[str, Any] | None
) -> tuple[str, ...] | None:
    if least_w is None or model is None or not sends:
        return None
    powers = [added_power_w(model, one.message_bytes, one.rate_mbps) for one in sends]
    if any(power is None for power in powers):
        return None
    return tuple(
        str(one.cell)
        for one, power in zip(sends, powers, strict=True)
        if power is not None and power < least_w
    )

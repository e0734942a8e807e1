# SPDX-License-Identifier: Apache-2.0
"""Lags from coded sync pulses: found where they are, not found where there are none, recorded and applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from netjoule_energy import align_campaign, compute_and_write
from netjoule_energy.campaign.files import CampaignError
from netjoule_energy.power.alignment import BARKER_13, Pulse, bit_length_s, find_lag
from netjoule_energy.power.readings import ENERGY_COUNTER, INSTANTANEOUS, INTERVAL_MEAN, Readings
from netjoule_energy.power.windows import FloatArray

TAU_S = 0.1
PULSES = (Pulse(10.0, 0.2), Pulse(60.0, 0.2))


def load_w(t_s: FloatArray, pulses: tuple[Pulse, ...], height_w: float) -> FloatArray:
    """True power: 8 W, and `height_w` more while a bit is 1."""
    power_w = np.full(t_s.size, 8.0)
    for pulse in pulses:
        bit = np.floor((t_s - pulse.t_start_s) / pulse.bit_s).astype(int)
        inside = (bit >= 0) & (bit < len(pulse.code))
        on = np.array([int(c) for c in pulse.code], dtype=bool)
        power_w[inside] += height_w * on[bit[inside]]
    return power_w


def trace(
    lag_s: float,
    *,
    seed: int = 1,
    height_w: float = 2.0,
    noise_w: float = 0.05,
    correlation: float = 0.0,
    tau_s: float = TAU_S,
    until_s: float = 80.0,
    told_lag_s: float | None = None,
    pulses: tuple[Pulse, ...] = PULSES,
) -> Readings:
    """Interval means of a device that hears the pulses, logged `lag_s` after their intervals."""
    rng = np.random.default_rng(seed)
    ends_s = np.arange(0.037 + tau_s, until_s, tau_s)
    fine = (np.arange(100) + 0.5) / 100
    means_w = np.array([load_w(end - tau_s + tau_s * fine, pulses, height_w).mean() for end in ends_s])
    noise = rng.normal(0, noise_w, ends_s.size)
    for k in range(1, noise.size):
        noise[k] = correlation * noise[k - 1] + np.sqrt(1 - correlation**2) * noise[k]
    flags = np.array([""] * ends_s.size, dtype=np.str_)
    told_s = tau_s if told_lag_s is None else told_lag_s
    return Readings(ends_s + lag_s, means_w + noise, flags, tau_s, told_s, INTERVAL_MEAN)


@pytest.mark.parametrize("lag_s", [0.0, 0.083, 0.1, 0.437, -0.25])
def test_lag_is_found_within_its_uncertainty(lag_s: float) -> None:
    found = find_lag(trace(lag_s), PULSES)
    assert found is not None
    assert found.usable
    assert found.lag_s == pytest.approx(lag_s, abs=max(3 * found.u_lag_s, 0.003))
    assert found.u_lag_s < 0.01
    assert [pulse.amplitude_w for pulse in found.pulses] == pytest.approx([2.0, 2.0], rel=0.05)


def test_uncertainty_of_the_lag_is_neither_boast_nor_excuse() -> None:
    answers = [find_lag(trace(0.12, seed=seed, noise_w=0.6), PULSES) for seed in range(40)]
    found = [answer for answer in answers if answer is not None]
    misses = np.array([abs(one.lag_s - 0.12) / one.u_lag_s for one in found])
    assert len(found) == 40
    assert np.mean(misses <= 2) >= 0.85
    assert np.sqrt(np.mean(misses**2)) > 0.3


def test_noise_alone_gives_no_lag_to_go_by() -> None:
    for seed in range(20):
        found = find_lag(trace(0.1, seed=seed, height_w=0.0, noise_w=0.5, correlation=0.6), PULSES)
        assert found is None or not found.usable


def test_a_pulse_under_strong_noise_loses_confidence() -> None:
    clear = find_lag(trace(0.1, noise_w=0.2), PULSES)
    faint = find_lag(trace(0.1, noise_w=12.0), PULSES)
    assert clear is not None
    assert clear.confidence > 0.99
    assert faint is None or faint.confidence < 0.9


def test_pulses_that_disagree_give_no_lag_to_go_by() -> None:
    before, after = trace(0.1, until_s=40.0), trace(0.9)
    late = after.t_s > 41.0
    both = Readings(
        np.concatenate([before.t_s, after.t_s[late]]),
        np.concatenate([before.power_w, after.power_w[late]]),
        np.concatenate([before.flag, after.flag[late]]),
        TAU_S,
        TAU_S,
    )
    found = find_lag(both, PULSES)
    assert found is not None
    assert not found.usable
    assert found.u_lag_s > 0.2


def test_a_slow_drift_of_the_clock_is_in_the_uncertainty() -> None:
    readings = trace(0.10)
    drifting = Readings(
        readings.t_s + 0.001 * readings.t_s, readings.power_w, readings.flag, TAU_S, TAU_S, INTERVAL_MEAN
    )
    found = find_lag(drifting, PULSES)
    assert found is not None
    assert found.usable
    assert found.lag_s == pytest.approx(0.135, abs=0.02)
    assert 0.01 < found.u_lag_s < 0.03


def test_instants_and_counters_are_aligned_too() -> None:
    plain = trace(0.2, tau_s=0.05)
    at_s = plain.t_s
    spot = Readings(at_s, load_w(at_s - 0.2, PULSES, 2.0), plain.flag, 0.05, 0.0, INSTANTANEOUS)
    found = find_lag(spot, PULSES)
    assert found is not None
    assert found.lag_s == pytest.approx(0.2, abs=0.03)
    assert found.usable
    counted = np.cumsum(plain.power_w * 0.05)
    counter = Readings(
        at_s, np.full(at_s.size, np.nan), plain.flag, 0.05, 0.0, ENERGY_COUNTER, counted, 10_000.0
    )
    again = find_lag(counter, PULSES)
    assert again is not None
    assert again.usable
    assert again.lag_s == pytest.approx(0.2, abs=0.01)


def test_too_few_readings_give_no_answer() -> None:
    assert find_lag(trace(0.1, until_s=5.0), PULSES) is None


def test_a_pulse_is_bits_of_positive_length() -> None:
    assert (bit_length_s(0.1), bit_length_s(1.0)) == (0.2, 2.0)
    for bit_s, code in ((0.0, BARKER_13), (0.2, ""), (0.2, "12")):
        with pytest.raises(ValueError, match="a pulse needs bits"):
            Pulse(0.0, bit_s, code)


# -- in a campaign -----------------------------------------------------------------------------------------

Build = Callable[..., Any]


def write_alignment(campaign: Any, *, told_lag_s: float = 0.9, **changes: Any) -> None:
    """Let the passport tell a lag that is wrong (the true one is 0.1 s) and a load pulse another."""
    path = campaign.folder / "campaign.json"
    document = json.loads(path.read_text())
    document["meters"][0]["lag_s"] = told_lag_s
    entry = {
        "meter_id": "m1",
        "lag_s": 0.1,
        "u_lag_s": 0.002,
        "confidence": 0.99,
        "method": "x",
        "pulses": [],
    }
    document["alignment"] = [entry | changes]
    path.write_text(json.dumps(document))


def test_a_sure_lag_takes_the_place_of_the_passports(build: Build) -> None:
    campaign = build()
    plain = compute_and_write(campaign.folder, campaign.run_ids[:1])[0].nodes[0]
    write_alignment(campaign, confidence=0.0)
    wrong = compute_and_write(campaign.folder, campaign.run_ids[:1])[0].nodes[0]
    write_alignment(campaign)
    right = compute_and_write(campaign.folder, campaign.run_ids[:1])[0].nodes[0]
    assert (wrong.lag_s, wrong.lag_source) == (0.9, "passport")
    assert (right.lag_s, right.lag_source) == (0.1, "alignment")
    assert wrong.energy_per_work_j < 0.95 * plain.energy_per_work_j
    assert right.energy_per_work_j == pytest.approx(plain.energy_per_work_j, rel=1e-9)


def test_an_unsure_lag_is_not_applied(build: Build) -> None:
    campaign = build()
    write_alignment(campaign, confidence=0.7)
    node = compute_and_write(campaign.folder, campaign.run_ids[:1])[0].nodes[0]
    assert (node.lag_s, node.lag_source) == (0.9, "passport")


def test_a_broken_alignment_is_named(build: Build) -> None:
    campaign = build()
    write_alignment(campaign, lag_s="late")
    with pytest.raises(CampaignError, match="an entry of 'alignment' is broken"):
        compute_and_write(campaign.folder, campaign.run_ids[:1])


def test_align_campaign_reads_the_logs_of_all_meters(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "meters" / "m1.csv"
    heard = trace(0.23, until_s=30.0, pulses=PULSES[:1])
    rows = [
        f"{t:.6f},{k},{p:.6f},,,\n" for k, (t, p) in enumerate(zip(heard.t_s, heard.power_w, strict=True))
    ]
    path.write_text("t_s,seq,power_w,voltage_v,current_a,flag\n" + "".join(rows))
    pulses = [{"t_start_s": 10.0, "bit_s": 0.2, "code": BARKER_13}]
    (entry,) = align_campaign(campaign.folder, pulses)
    assert (entry["meter_id"], entry["method"]) == ("m1", "normalised_correlation")
    assert entry["lag_s"] == pytest.approx(0.23, abs=0.005)
    assert entry["confidence"] > 0.99
    with pytest.raises(CampaignError, match="a sync pulse is broken"):
        align_campaign(campaign.folder, [{"t_start_s": 1.0}])

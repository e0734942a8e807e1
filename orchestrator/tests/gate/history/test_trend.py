# SPDX-License-Identifier: Apache-2.0
"""Change points by apache-otava on the noises of a rig, with known steps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from verdicts import FINGERPRINT, pilot, session, verdict

from netjoule.core.errors import HostLacks
from netjoule.gate.history import store, trend

RUNS = 100
MARGIN = 3.0
Noise = Callable[[random.Random], list[float]]


def iid(sd: float) -> Noise:
    return lambda draw: [draw.gauss(0, sd) for _ in range(2 * RUNS)]


def autoregressive(rho: float) -> Noise:
    def made(draw: random.Random) -> list[float]:
        values = [draw.gauss(0, 0.01)]
        while len(values) < 2 * RUNS:
            values.append(rho * values[-1] + draw.gauss(0, 0.01 * math.sqrt(1 - rho**2)))
        return values

    return made


def walk(draw: random.Random) -> list[float]:
    place, values = 0.0, []
    for _ in range(2 * RUNS):
        place += draw.gauss(0, 0.002)
        values.append(place + draw.gauss(0, 0.01))
    return values


def linear(draw: random.Random) -> list[float]:
    return [0.03 * run / RUNS + draw.gauss(0, 0.01) for run in range(2 * RUNS)]


def sine(draw: random.Random) -> list[float]:
    return [0.01 * math.sin(2 * math.pi * run / 24) + draw.gauss(0, 0.01) for run in range(2 * RUNS)]


def spikes(draw: random.Random) -> list[float]:
    return [draw.gauss(0, 0.01) + (0.1 if draw.random() < 0.02 else 0) for _ in range(2 * RUNS)]


NOISES = {
    "iid 1 %": iid(0.01),
    "iid 2 %": iid(0.02),
    "AR 0.3": autoregressive(0.3),
    "AR 0.6": autoregressive(0.6),
    "AR 0.9": autoregressive(0.9),
    "walk": walk,
    "linear": linear,
    "sine": sine,
    "spikes": spikes,
}


def alarms_per_100_runs(noise: Noise, series: int) -> float:
    """As gates come: the latest 100 looked at after each, over 200."""
    count = 0
    for seed in range(series):
        values = [math.exp(value) for value in noise(random.Random(seed))]
        count += sum(len(trend.new_changes(values[:end], MARGIN)) for end in range(5, len(values) + 1))
    return count / series / 2


def found_in_place(step: float, sd: float, series: int) -> float:
    """The rate at which a step at run 70 of 100 is found within 3 runs of its place."""
    found = 0
    for seed in range(series):
        draw = random.Random(seed)
        values = [math.exp(draw.gauss(0, sd) + (math.log1p(step) if run >= 70 else 0)) for run in range(RUNS)]
        found += any(abs(change.place - 70) <= 3 for change in trend.changes_in(values, MARGIN))
    return found / series


@pytest.mark.parametrize("name", ["iid 1 %", "AR 0.6"])
def test_few_alarms_of_noise(name):
    assert alarms_per_100_runs(NOISES[name], 2) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_alarms_of_noise(name):
    # Two in a hundred runs that stand out by a tenth are a sick rig's.
    most = 0.3 if name == "spikes" else 0.2
    assert alarms_per_100_runs(NOISES[name], 100) <= most


@pytest.mark.parametrize("sd", [0.01, 0.02])
def test_a_step_is_found_where_it_is(sd):
    assert found_in_place(0.04, sd, 20) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("sd", "least"), [(0.01, 0.95), (0.02, 0.85)])
def test_a_step_is_found_as_often_as_it_must(sd, least):
    assert found_in_place(0.04, sd, 1000) >= least


@pytest.mark.parametrize("step", [0.06, -0.06])
def test_both_directions_and_three_runs_after(step):
    draw = random.Random(3)
    values = [1.5 * (1 + draw.gauss(0, 0.004)) for _ in range(20)]
    after = [1.5 * (1 + step) * (1 + draw.gauss(0, 0.004)) for _ in range(5)]
    assert trend.changes_in(values + after[:2], MARGIN) == []
    told = [trend.new_changes(values + after[:count], MARGIN) for count in range(1, 6)]
    (change,) = [one for some in told for one in some]
    assert change.place == 20
    assert change.percent == pytest.approx(100 * step, abs=1)


@pytest.mark.parametrize("place", [0, 1, 30, 58, 59])
def test_runs_that_stand_out_are_no_change(place):
    draw = random.Random(3)
    values = [1.5 * (1 + draw.gauss(0, 0.004)) for _ in range(60)]
    values[place] *= 1.1
    assert trend.changes_in(values, MARGIN) == []
    (change,) = trend.changes_in(values + [2 * value for value in values], MARGIN)
    assert abs(change.place - 60) <= 1


def test_what_never_changes_and_what_is_short_have_no_change():
    for values in ([], [1.0], [1.0, 1.0], [1.5] * 30):
        assert trend.changes_in(values, MARGIN) == []
        assert trend.new_changes(values, MARGIN) == []


def keep(gate_folder, url, values, **changed):
    for number, value in enumerate(values):
        name = f"{changed.get('rig', 'bench')}-{number:03}"
        day = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00Z"
        sessions = [session(head_over_reference=value), session(role="anchor", head_over_reference=value)]
        document = verdict(id=name, finished_utc=day, sessions=sessions, **changed)
        store.record(document, gate_folder(**document), url)


def test_series_are_of_what_can_be_held_against_each_other(gate_folder, tmp_path):
    url = str(tmp_path / "history.sqlite")
    keep(gate_folder, url, [1.5, 1.6], rig="bench")
    keep(gate_folder, url, [2.5, None], rig="rack-2", margin_percent=5)
    others = [
        pilot(id="other-kernel", fingerprint=FINGERPRINT | {"kernel": "6.2"}),
        verdict(id="other-range", fingerprint=FINGERPRINT | {"meters": ["client: Yokogawa WT210, 5 A"]}),
        verdict(id="other-version", workload_version="ba9876543210"),
    ]
    for document in others:
        store.record(document, gate_folder(**document), url)
    made = trend.series_of(url=url)
    assert sorted(one.values for one in made) == [[1.5], [1.5], [1.5], [1.5, 1.6], [2.5]]
    assert len({one.name for one in made}) == 5
    (rack,) = trend.series_of(rig="rack-2", url=url)
    assert (rack.margin_percent, rack.points[0]["id"]) == (5, "rack-2-000")


def test_the_gate_that_brings_a_change_to_light_warns_once(gate_folder, tmp_path):
    url = str(tmp_path / "history.sqlite")
    draw = random.Random(5)
    values = [(1.5 if run < 20 else 1.6) * (1 + draw.gauss(0, 0.004)) for run in range(26)]
    told = {}
    for number, value in enumerate(values):
        document = verdict(
            id=f"g{number}",
            finished_utc=f"2026-10-{number + 1:02}T00:00:00Z",
            sessions=[session(head_over_reference=value)],
        )
        store.record(document, gate_folder(**document), url)
        told[number] = list(trend.warnings_of(document["id"], url))
    (sentence,) = [one for some in told.values() for one in some]
    assert sentence.startswith("trend, which decides nothing: since g20 (2026-10-21) it takes 6.")
    assert "% more than before" in sentence
    assert (
        "gate 0123456789ab (energy) on bench: client: Yokogawa WT210, 1 A, kernel 6.1.0-30-amd64" in sentence
    )


def test_without_otava_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(trend.importlib.util, "find_spec", lambda name: None)
    for use in (
        lambda: trend.changes_in([1.0] * 9, MARGIN),
        lambda: list(trend.warnings_of("g", str(tmp_path))),
    ):
        with pytest.raises(HostLacks, match="requirements-trend") as refused:
            use()
        assert refused.value.exit_code == 3

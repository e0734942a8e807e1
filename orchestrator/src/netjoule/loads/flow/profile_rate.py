# SPDX-License-Identifier: Apache-2.0
"""Whether a profile has the mean rate under which its workload puts it into tables and figures.

Only netjoule-traffic writes schedules out, so it is asked; two seeds tell how much of a difference is chance.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from netjoule.core import programs
from netjoule.core.errors import HostLacks, UsageError
from netjoule.loads.flow import profiles
from netjoule.loads.flow.settings import FlowSettings

_MOST_DIFFERENCE = 0.1  # share of the mean rate by which the named one may differ: cells are shown at it
_SPANS_S = (1_000.0, 50.0)  # the second where the first has more messages than a schedule can hold
_LONGER_S = 20_000.0  # where the first holds few
_FEW_MESSAGES = 100_000
_SEEDS = (1, 2)
_TIMEOUT_S = 120.0

Ask = Callable[[Path, float | None, int], Mapping[str, float] | None]


def ask(file: Path, span_s: float | None, seed: int) -> Mapping[str, float] | None:
    """`messages` and `mean_rate_mbps` of a profile's schedule; None for one that is too long.

    Args:
        file: a profile.
        span_s: length of the schedule in s; None for the whole of a trace.
        seed: of the schedule.

    Raises:
        UsageError: with the program's own words, for what is no profile.
        HostLacks: without the program, or when it gives no answer.
    """
    argv = [programs.find("netjoule-traffic"), "profile", str(file), "--json", "--schedule-seed", str(seed)]
    if span_s is not None:
        argv += ["-t", f"{span_s:g}"]
    try:
        done = programs.said_by(argv, timeout=_TIMEOUT_S)
        told = dict(json.loads(done.stdout))
        if done.returncode == 0:
            rate_mbps = told["mean_rate_mbps"]
            if rate_mbps is None:  # a single message: over the time that the run gives it
                rate_mbps = told["profile"]["bytes"] * 8e-6 / told["duration_s"]
            return {"messages": int(told["profile"]["messages"]), "mean_rate_mbps": float(rate_mbps)}
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, KeyError) as error:
        raise HostLacks(
            "netjoule-traffic does not tell what a profile gives",
            next_step="build it again with 'make setup'",
        ) from error
    message = str(told.get("message", "netjoule-traffic refuses it without an error message"))
    if "too long" in message:
        return None
    raise UsageError(message, where="field profile")


def require(settings: FlowSettings, ask: Ask = ask) -> None:
    """Refuse a workload whose profile sends at another mean rate than `offered_rate_mbps` says.

    Args:
        settings: of a workload; those without a profile are fine.
        ask: see `ask`.

    Raises:
        UsageError: naming both rates, or from `ask`.
        HostLacks: from `ask`.
    """
    if settings.profile is None:
        return
    with tempfile.TemporaryDirectory(prefix="netjoule-") as folder:
        file = Path(folder) / "profile.json"
        file.write_text(json.dumps(settings.profile), encoding="utf-8")
        rates = _rates_mbps(file, ask, is_trace=profiles.shape(settings.profile) == "trace")
    mean = sum(rates) / len(rates)
    (named,) = settings.offered_rate_mbps
    if abs(named - mean) > max(_MOST_DIFFERENCE * mean, 3 * (max(rates) - min(rates))):
        raise UsageError(
            f"profile {settings.profile['name']} sends {mean:.3g} Mb/s on average, not {named:g}",
            where=f"workload {settings.name}, field factors.offered_rate_mbps",
            next_step=f"write offered_rate_mbps: [{mean:.3g}]; it only names the cell",
        )


def _rates_mbps(file: Path, ask: Ask, *, is_trace: bool) -> list[float]:
    """Mean rates of a profile over a long time, one for each seed; of a trace its own."""
    for span_s in (None,) if is_trace else _SPANS_S:
        first = ask(file, span_s, _SEEDS[0])
        if first is None:
            continue
        few = not is_trace and first["messages"] < _FEW_MESSAGES
        told = [ask(file, _LONGER_S if few else span_s, seed) for seed in _SEEDS]
        return [one["mean_rate_mbps"] for one in told if one is not None]
    raise UsageError(
        f"it has more messages in {_SPANS_S[-1]:g} s than a schedule holds", where="field profile"
    )

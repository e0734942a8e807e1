# SPDX-License-Identifier: Apache-2.0
"""95 % intervals, R's: t intervals of means over blocks, as its tables have them; of a rate."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from statistics import fmean
from typing import Any

from netjoule.analysis import analysis
from netjoule.core import programs
from netjoule.core.errors import HostLacks
from netjoule.hosts import child_process


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % t interval of the mean.

    Args:
        values: one per block, in any unit; two at least.

    Raises:
        ValueError: for fewer than two.
        HostLacks: without R or the package in it.
    """
    if len(values) < 2:
        raise ValueError("an interval needs two blocks")
    return _half_width(tuple(map(float, values)))


def differ_clearly(pairs: Collection[tuple[float, float]]) -> bool:
    """Whether the interval of the mean log-ratio of pairs, one per block, leaves out equality.

    Args:
        pairs: of values above 0.

    Raises:
        HostLacks: as `half_width`.
    """
    if len(pairs) < 2:
        return False
    logs = [math.log(a / b) for a, b in pairs]
    return abs(fmean(logs)) > half_width(logs)


@cache
def binomial(happened: int, times: int) -> tuple[float, float]:
    """The 95 % Clopper-Pearson interval of the rate of what happened so often.

    Raises:
        HostLacks: as `half_width`.
    """
    if times == 0:
        return 0.0, 1.0
    said = _answer("--binomial", happened, times)
    return float(said["low"]), float(said["high"])


@cache
def _half_width(values: tuple[float, ...]) -> float:
    said = _answer("--intervals", *values)
    return float(said["high"] - said["mean"])


def _answer(verb: str, *numbers: float) -> Any:
    process = _r(verb)
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        print(*numbers, file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise HostLacks(
            "R did not tell an interval: the R package netjoule is not installed",
            next_step="run 'make setup'",
        )
    return json.loads(answer)


@cache
def _r(verb: str) -> subprocess.Popen[str]:
    """R, which is asked many times and started once; it ends with its standard input, and so with us."""
    return subprocess.Popen(
        [*programs.rscript(), str(analysis.script()), verb],
        env=child_process.in_utf_8(analysis.environment(os.environ)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )

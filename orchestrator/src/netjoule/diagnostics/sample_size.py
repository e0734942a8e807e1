# SPDX-License-Identifier: Apache-2.0
"""``netjoule plan --mde``: how many blocks, and so how long, a difference takes. The blocks are R's answer.

Sample size follows from the scatter across the runs of a pilot, and everything across runs is R's; time per
block is the plan's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule.analysis import analysis
from netjoule.core.console import Output, duration_text
from netjoule.core.errors import UsageError
from netjoule.design.duration import Forecast
from netjoule.store.campaign import Campaign
from netjoule.workload.workload import Workload


def percent(text: str, option: str) -> float:
    """A number over 0 and under 100 out of ``3``, ``3%`` or ``3 %``.

    Raises:
        UsageError: naming the option.
    """
    number = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", text)
    value = float(number.group(1)) if number else 0.0
    if not 0 < value < 100:
        raise UsageError(
            f"'{text}' is no percentage over 0 and under 100", where=option, next_step="say for example 3%"
        )
    return value


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed after ``plan``.

    Attributes:
        mde: least difference that is to be found, e.g. ``3%``; None when not asked.
        pilot: folder of a campaign that tells how blocks scatter.
        power: probability of finding it, e.g. ``80%``; None for R's default.
    """

    mde: str | None
    pilot: Path | None
    power: str | None


def tell(asked: Request, workload: Workload, size: Forecast, output: Output) -> None:
    """Print how many blocks of a workload find a difference, and their time; silent when it is not asked.

    Args:
        asked: what was typed.
        workload: whose blocks they are.
        size: what it takes as it is.
        output: takes words and events.

    Raises:
        UsageError: when one option is given without the other.
        InvalidData: when the pilot decides nothing.
    """
    if asked.mde is None:
        if asked.pilot is not None or asked.power is not None:
            raise UsageError(
                "--pilot and --power tell of a difference, and none is given",
                next_step="add for example --mde 3%",
            )
        return
    if asked.pilot is None:
        raise UsageError(
            "--mde needs a pilot: only a campaign shows how much blocks differ",
            next_step="name one with --pilot results/NAME; 5 blocks of the same workload make a good one",
        )
    difference = percent(asked.mde, "--mde")
    power = None if asked.power is None else percent(asked.power, "--power") / 100
    Campaign.read(asked.pilot)  # says what is wrong before R is started

    def sink(event: Mapping[str, Any]) -> None:
        if event.get("event") == "blocks_needed":
            for line in _words(event, size):
                output.say(line)
        output.event(event)

    analysis.run_blocks_needed(asked.pilot, workload.document, difference, power, sink)


def _words(event: Mapping[str, Any], size: Forecast) -> list[str]:
    """R's sentences, and how long its number of blocks takes."""
    first, *rest = event["words"]
    lines = [f"blocks     {first}", *(f"           {line}" for line in rest)]
    blocks = event.get("blocks_n")
    if isinstance(blocks, int | float):  # null where R found no end
        time = duration_text(size.duration_s / size.blocks * blocks)
        lines.append(f"           {blocks:g} blocks take {time}")
    return lines

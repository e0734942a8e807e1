# SPDX-License-Identifier: Apache-2.0
"""What chrony says about a host's wall clock (``chronyc -n tracking``; man chronyc).

chrony disciplines CLOCK_REALTIME; the rows made here tell how far two disciplined hosts can be apart, not
where CLOCK_MONOTONIC is. A logger on another host maps its stamps by our own exchange (`clock_map`).
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

from netjoule_meters.errors import MeterUnavailable, UsageError

_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Tracking:
    """State of one chronyd.

    Attributes:
        offset_s: the host's wall clock minus NTP time.
        greatest_error_s: bound on the error of NTP time there: root dispersion plus half the root delay.
        drift_ppm: residual frequency, after correction.
        synchronised: whether it follows a source.
    """

    reference: str
    offset_s: float
    greatest_error_s: float
    drift_ppm: float
    synchronised: bool


def tracking_here() -> Tracking:
    """What the chronyd of this host says.

    Raises:
        MeterUnavailable: when chrony is not installed here.
        UsageError: when chronyd does not run.
    """
    try:
        done = subprocess.run(
            ["chronyc", "-n", "tracking"], capture_output=True, text=True, check=False, timeout=_ANSWER_S
        )
    except FileNotFoundError:
        raise MeterUnavailable("no chronyc on this host: install chrony, or use 'clock measure'") from None
    except subprocess.TimeoutExpired:
        raise MeterUnavailable(f"chronyc does not answer within {_ANSWER_S:g} s: look at chronyd") from None
    return parse_tracking(done.stdout + done.stderr, "this host")


def parse_tracking(text: str, host: str) -> Tracking:
    """The answer of ``chronyc -n tracking`` on ``host``.

    Raises:
        UsageError: when it is none (chronyd does not run, another program answered).
    """
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        if colon:
            fields[name.strip()] = value.strip()
    try:
        words = fields["System time"].split()
        sign = {"slow": -1.0, "fast": 1.0}[words[2]]
        error_s = _first(fields["Root dispersion"]) + _first(fields["Root delay"]) / 2
        return Tracking(
            reference=fields["Reference ID"].split()[0],
            offset_s=sign * float(words[0]),
            greatest_error_s=error_s,
            drift_ppm=_first(fields["Residual freq"]),
            synchronised=fields["Leap status"] != "Not synchronised",
        )
    except (KeyError, IndexError, ValueError) as error:
        raise UsageError(
            f"'chronyc -n tracking' on {host} said {text.strip()[:80]!r}: check that chronyd runs there"
        ) from error


def chrony_row(host: str, t_s: float, there: Tracking, here: Tracking) -> dict[str, Any]:
    """A row of clocks.csv: wall clock of ``host`` minus the controller's, both as their chronyd knows them.

    Raises:
        UsageError: when one of them follows no source.
    """
    for name, tracking in ((host, there), ("the controller", here)):
        if not tracking.synchronised:
            raise UsageError(f"chronyd on {name} follows no source: wait for it or name a reachable server")
    return {
        "t_s": round(t_s, 6),
        "host": host,
        "offset_s": round(there.offset_s - here.offset_s, 9),
        "drift_ppm": round(there.drift_ppm - here.drift_ppm, 4),
        "residual_s": round(there.greatest_error_s + here.greatest_error_s, 9),
        "method": "chrony",
    }


def _first(text: str) -> float:
    return float(text.split(maxsplit=1)[0])

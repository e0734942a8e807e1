# SPDX-License-Identifier: Apache-2.0
"""Energies of R's tables as cells and titles of the terminal's."""

from __future__ import annotations

from collections.abc import Mapping

Row = Mapping[str, str]
_NOTHING = 1e-12


def number(cell: str | None) -> float | None:
    """A cell as a number; None where it is empty or a word."""
    try:
        return float(cell) if cell else None
    except ValueError:
        return None


def shown(cell: str | None, digits: int = 3) -> str:
    """A number with so many digits; empty where there is none, 0 for what rounding left."""
    value = number(cell)
    return "" if value is None else "0" if abs(value) < _NOTHING else f"{value:.{digits}g}"


def is_true(cell: str | None) -> bool:
    """Whether R wrote true."""
    return cell in ("TRUE", "true")


def half_width(mean: str | None, high: str | None) -> str:
    """Half of the interval that ends at `high`."""
    middle, end = number(mean), number(high)
    return "" if middle is None or end is None else f"{end - middle:.2g}"


def energy(row: Row, mean: str, limit: str, runs: str) -> str:
    """An energy; an upper limit when most runs are below resolution.

    Args:
        row: a cell's.
        mean, limit, runs: its columns of the energy, of its upper limit and of the number of runs.
    """
    below, of_runs = number(row.get("below_resolution_n")) or 0, number(row.get(runs)) or 0
    most = shown(row.get(limit))
    mostly = bool(most) and 2 * below > of_runs > 0
    text = f"< {most}" if mostly else shown(row[mean])
    return text + (" *" if below and not mostly else "") + (" °" if is_true(row.get("hollow")) else "")


def title(name: str, row: Row) -> str:
    """What a meter's table holds, and where power and radio come from."""
    model = f" by device model {row['device_model']}" if row.get("device_model") else ""
    return (
        f"{name} of {row['node']} (meter {row['meter_id']}): power {row.get('power_source') or '?'}{model},"
        f" radio {row.get('radio_source') or '?'}"
    )

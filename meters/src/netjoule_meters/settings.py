# SPDX-License-Identifier: Apache-2.0
"""Settings that an adapter declares, and the strict check of what a person wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule_meters.errors import UsageError

REQUIRED = object()
"""Default of a setting that a person must choose."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name carries the unit; ``choices`` are all there are, None leaves it free."""

    name: str
    doc: str
    default: Any = REQUIRED
    choices: tuple[Any, ...] | None = None

    def describe(self) -> str:
        """One line of help."""
        choices = "" if self.choices is None else f" One of {', '.join(map(_show, self.choices))}."
        default = "Required." if self.default is REQUIRED else f"Default {_show(self.default)}."
        return f"{self.name}: {self.doc}{choices} {default}"


def resolve(declared: Sequence[Setting], given: Mapping[str, Any], adapter: str) -> dict[str, Any]:
    """All declared settings with the given values or their defaults; None (JSON's null) is the default.

    Raises:
        UsageError: for an unknown name, a missing value or one that the instrument does not have.
    """
    names = [setting.name for setting in declared]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise UsageError(f"{adapter}: unknown setting '{unknown[0]}'; it knows {', '.join(names)}")
    return {setting.name: _value(setting, given, adapter) for setting in declared}


def _value(setting: Setting, given: Mapping[str, Any], adapter: str) -> Any:
    value = given.get(setting.name)
    if value is None:
        value = setting.default
    if value is REQUIRED:
        raise UsageError(f"{adapter}: setting '{setting.name}' is missing. {setting.doc}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{adapter}: {setting.name} cannot be {value}: write a number. {setting.doc}")
    if setting.choices is None:
        return value
    for choice in setting.choices:
        if _equal(value, choice):
            return choice
    choices = ", ".join(map(_show, setting.choices))
    raise UsageError(f"{adapter}: {setting.name} cannot be {_show(value)}; choose one of {choices}")


def _equal(value: Any, choice: Any) -> bool:
    if isinstance(value, bool) or isinstance(choice, bool):
        return value is choice
    if isinstance(value, int | float) and isinstance(choice, int | float):
        return math.isclose(value, choice, rel_tol=1e-9)
    if isinstance(value, str) and isinstance(choice, str):
        return value.upper() == choice.upper()
    return bool(value == choice)


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

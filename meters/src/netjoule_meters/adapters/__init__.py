# SPDX-License-Identifier: Apache-2.0
"""The adapters there are. A new one is a class beside these and a line in this table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from netjoule_meters.errors import UsageError

if TYPE_CHECKING:
    from netjoule_meters.adapters.base import Meter

_ADAPTERS = {
    "wt210": "netjoule_meters.adapters.wt210:WT210",
}


def adapter_names() -> list[str]:
    """Names that ``adapter`` knows."""
    return sorted(_ADAPTERS)


def adapter(name: str) -> type[Meter]:
    """The adapter class called ``name``.

    Raises:
        UsageError: when there is none.
    """
    if name not in _ADAPTERS:
        raise UsageError(f"no adapter '{name}': this build has {', '.join(adapter_names())}")
    module, _, attribute = _ADAPTERS[name].partition(":")
    found: type[Meter] = getattr(importlib.import_module(module), attribute)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Which way of asking is used: the first of nl80211, iw and iwconfig that answers about this interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from netjoule_radio.iw_text import IwSource
from netjoule_radio.iwconfig import IwconfigSource
from netjoule_radio.nl80211 import Nl80211Source
from netjoule_radio.source import InterfaceGone, ReadFailed, Source, SourceMissing

SOURCES: Mapping[str, Callable[[str], Source]] = {
    "nl80211": Nl80211Source,
    "iw": IwSource,
    "iwconfig": IwconfigSource,
}


class Choice(NamedTuple):
    """The source that answers, and why each one preferred to it does not."""

    source: Source
    passed_over: dict[str, str]


def choose(
    wanted: str, interface: str, sources: Mapping[str, Callable[[str], Source]] | None = None
) -> Choice:
    """Try `wanted`, or with "auto" all in order of preference, by a snapshot each.

    Raises:
        InterfaceGone: when a source that works says that there is no such interface.
        SourceMissing: when none answers; the text has the reason of each.
    """
    known = SOURCES if sources is None else sources
    passed_over: dict[str, str] = {}
    for name in known if wanted == "auto" else (wanted,):
        try:
            source = known[name](interface)
        except (SourceMissing, ReadFailed) as error:
            passed_over[name] = str(error)
            continue
        try:
            source.snapshot()
        except ReadFailed as error:
            source.close()
            if isinstance(error, InterfaceGone):
                raise
            passed_over[name] = str(error)
            continue
        return Choice(source, passed_over)
    raise SourceMissing("; ".join(f"{name}: {why}" for name, why in passed_over.items()))

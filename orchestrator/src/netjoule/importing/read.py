# SPDX-License-Identifier: Apache-2.0
"""Whose each file is, by what it begins with, and all flows that the files tell of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from netjoule.core.errors import InvalidData
from netjoule.importing import ditg, iperf3, netperfmeter, sources
from netjoule.importing.flows import Found, Options
from netjoule.importing.sources import Source
from netjoule_contracts import reading

_READERS = {"iperf3": iperf3.read, "ditg": ditg.read, "netperfmeter": netperfmeter.read}


def read_all(places: Sequence[Path], options: Options) -> Found:
    """The flows of files, and of all files in folders.

    Raises:
        UsageError: for a path where nothing is, or when something must be told that no file tells.
        InvalidData: for a named file that cannot be used.
    """
    found = Found()
    by_generator: dict[str, list[Source]] = defaultdict(list)
    together = 0
    for path, named in sources.find(places):
        with found.reading(Source.unread(path, named=named)):
            source = sources.read(path, named=named)
            by_generator[_generator_of(source)].append(source)
            together += len(source.data)
        if together > sources.MOST_BYTES_TOGETHER:
            raise InvalidData(
                f"the files hold more than {sources.MOST_BYTES_TOGETHER / 1e6:g} MB together",
                where=str(path),
                next_step="import a part of them",
            )
    for name, members in by_generator.items():
        _READERS[name](members, options, found)
    return found


def _generator_of(source: Source) -> str:
    start = source.data[:200].decode("utf-8", errors="replace")
    if start.lstrip().startswith("{"):
        if len(source.data) > reading.MOST_DOCUMENT_BYTES:
            what = f"JSON of more than {reading.MOST_DOCUMENT_BYTES / 1e6:g} MB"
            raise source.refuse(what, next_step="import a part of it")
        return "iperf3"
    if start.startswith(ditg.BEGINNING):
        return "ditg"
    if netperfmeter.format_of(start) is not None:
        return "netperfmeter"
    raise source.refuse(
        "it is neither iperf3's JSON nor a decoded log of D-ITG nor a file of NetPerfMeter",
        next_step="a binary log of D-ITG is decoded first: ITGDec LOG -l LOG.txt",
    )

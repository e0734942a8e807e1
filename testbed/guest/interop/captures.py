# SPDX-License-Identifier: Apache-2.0
"""What three programs see in a capture: netjoule-traffic dissect, tshark, tcpdump."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host_programs import find

_LIMIT_S = 300
_TSHARK_FIELDS = ("frame.number", "_ws.expert.severity", "_ws.expert.message")
_TSHARK_WARNING = 0x400000
"""Expert severities: note 0x400000, warning 0x600000, error 0x800000."""


@dataclass(frozen=True, slots=True)
class Dissection:
    """What ``netjoule-traffic dissect`` tells.

    Attributes:
        packets, bad_checksums, undecodable: its totals.
        encapsulated: packets inside UDP.
        types, resets: packet types and Reset codes of the connection with the most packets; another one may
            still be closing when a capture begins.
    """

    packets: int
    bad_checksums: int
    undecodable: int
    encapsulated: int
    types: dict[str, int]
    resets: dict[str, int]


def dissect(file: Path, udp_port: int | None = None) -> Dissection:
    """Read a capture with our own dissector."""
    command = [find("netjoule-traffic"), "dissect", "--json", str(file)]
    if udp_port is not None:
        command += ["--udp-port", str(udp_port)]
    documents = [json.loads(line) for line in _run(command).splitlines()]
    totals = documents[-1]
    connections: dict[frozenset[tuple[str, int]], list[dict[str, Any]]] = {}
    for line in documents:
        if "type" in line:
            ends = ((line["source"], line["source_port"]), (line["destination"], line["destination_port"]))
            connections.setdefault(frozenset(ends), []).append(line)
    main = max(connections.values(), key=len, default=[])
    return Dissection(
        **{name: totals[name] for name in ("packets", "bad_checksums", "undecodable")},
        encapsulated=sum("udp_source_port" in line for line in documents),
        types=dict(Counter(line["type"] for line in main)),
        resets=dict(Counter(line["reset_name"] for line in main if "reset_name" in line)),
    )


def tshark_complaints(file: Path) -> list[str]:
    """Warnings and errors of Wireshark's dissector, DCCP checksums included."""
    command = [find("tshark"), "-r", str(file), "-o", "dccp.check_checksum:TRUE", "-T", "fields"]
    command += [word for field in _TSHARK_FIELDS for word in ("-e", field)]
    shown = _run([*command, "-Y", f"_ws.expert.severity > {_TSHARK_WARNING} || _ws.malformed || !dccp"])
    return [line.replace("\t", " ") for line in shown.splitlines()]


def tcpdump_complaints(file: Path) -> list[str]:
    """Lines of ``tcpdump -vv`` that say something does not fit."""
    shown = _run([find("tcpdump"), "-vv", "-n", "-r", str(file)])
    lines = shown.splitlines()
    if not any("DCCP" in line for line in lines):
        return ["tcpdump -vv shows no DCCP"]
    words = ("incorrect", "bad cksum", "[|dccp]", "invalid", "truncated", "unknown", "wrong")
    return [line.strip() for line in lines if any(word in line.lower() for word in words)]


def _run(command: list[str]) -> str:
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    if ended.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {ended.returncode}: {ended.stderr.strip()}")
    return ended.stdout

# SPDX-License-Identifier: Apache-2.0
"""Which instrument an answer comes from, and the questions that make instruments say it. Pure.

Every question only asks: ``*IDN?`` (IEEE 488.2), ``++ver`` of a Prologix controller, ``Identify`` of a
PTDaemon. An instrument that only talks (Current Cost) is listened to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Query:
    """One try on a serial line.

    Attributes:
        question: bytes to send; None only listens.
        wait_s: how long to wait for an answer.
    """

    name: str
    baud_rate: int
    question: bytes | None
    wait_s: float
    handshake: str = "none"


SERIAL_QUERIES = (
    # An empty line first ends what an earlier program may have left half written.
    Query("488.2 at 9600 Bd", 9600, b"\n*IDN?\n", 1.5),
    Query("CR at 9600 Bd", 9600, b"\r*IDN?\r", 1.5, "xon_xoff"),
    Query("Prologix controller", 115200, b"++ver\n", 0.7),
    Query("Current Cost at 57600 Bd", 57600, None, 14.0),
)
"""In this order; the first that is recognised ends the tries on a port. Two messages of a CC128 are 12 s."""


@dataclass(frozen=True, slots=True)
class FoundInstrument:
    """An instrument that said who it is.

    Attributes:
        adapter: adapter for it; None when there is none.
        text: what it said.
        settings: that its adapter needs for this very instrument.
        note: one sentence for the person, or nothing.
    """

    adapter: str | None
    resource: str
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


_XML_MESSAGE = re.compile(rb"<msg>.{0,400}?<src>(?P<source>[^<]{1,40})</src>")
_WT310 = re.compile(r"WT3\d\d(E|EH|HC)?", re.IGNORECASE)


def recognise_serial(resource: str, answer: bytes) -> FoundInstrument | None:
    """What an answer on a serial line says; None when it says nothing readable."""
    clean = answer.replace(b"\x11", b"").replace(b"\x13", b"")  # XON and XOFF stand inside the data
    message = _XML_MESSAGE.search(clean)
    if message is not None:
        return FoundInstrument("cc128", resource, message["source"].decode("ascii", "replace"))
    text = _text(clean)
    if text is None:
        return None
    if "PROLOGIX" in text.upper():
        note = "a GPIB controller: name the instrument behind it as prologix:" + resource + ":ADDRESS"
        return FoundInstrument(None, resource, text, note=note)
    return recognise_identification(resource, text)


def recognise_identification(resource: str, text: str) -> FoundInstrument:
    """Which adapter the answer to ``*IDN?`` asks for."""
    upper = text.upper()
    fields = [part.strip() for part in text.split(",")]
    model = fields[1] if len(fields) > 1 else ""
    if "YOKOGAWA" in upper and (model == "760401" or model.upper().startswith("WT210")):
        return FoundInstrument("wt210", resource, text)
    if "YOKOGAWA" in upper and (found := _WT310.fullmatch(model)):
        kind = "WT310E" if found[1] else "WT310"
        return FoundInstrument("wt310", resource, text, {"model": kind})
    if "HM8115" in upper:
        return FoundInstrument("hm8115", resource, text)
    if "ISW8001" in upper:
        return FoundInstrument(
            "hm8115", resource, text, note="an IeS ISW8001, taken for the HM8115's relative"
        )
    return FoundInstrument(None, resource, text, note="no adapter knows this instrument")


def recognise_ptdaemon(resource: str, greeting: str, identity: str) -> FoundInstrument | None:
    """A SPEC PTDaemon by its answers to ``Hello`` and ``Identify``."""
    if "PTDAEMON" not in greeting.upper():
        return None
    return FoundInstrument("ptd", resource, identity or greeting)


def _text(answer: bytes) -> str | None:
    """The first line that is printable; None when the bytes are no text at this baud rate."""
    for line in re.split(rb"[\r\n]+", answer):
        stripped = line.strip()
        if len(stripped) >= 4 and all(0x20 <= byte <= 0x7E for byte in stripped):
            return stripped.decode("ascii")
    return None

# SPDX-License-Identifier: Apache-2.0
"""What the lines of a Current Cost CC128 say (vendor's "XML output description", v0.11). Pure.

One message is one line. Live messages carry one sensor with one to three clamps; history messages carry
``<hist>`` and energy of the past, and are nobody's reading. A line that is not a whole message is refused:
the display does not repeat what was lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from netjoule_meters.errors import GarbageReply

_FIELD = re.compile(r"<(?P<tag>\w{1,8})>(?P<text>[^<>]{0,40})</(?P=tag)>")
# Five digits, as in the vendor's document: one that was lost on the way is noticed.
_CHANNEL = re.compile(r"<ch(?P<number>[1-9])><watts>(?P<watts>\d{5}|-\d{4,5})</watts></ch(?P=number)>")
_MESSAGE = re.compile(r"<msg>(?P<body>.*)</msg>")
_CLASSIC = re.compile(r"<src><name>CC0\d")


@dataclass(frozen=True, slots=True)
class Live:
    """A real-time message.

    Attributes:
        source: model and firmware of the display, for example ``CC128-v0.11``.
        sensor: 0 for the whole house, 1 to 9 for appliances.
        radio_id: identity of the transmitter.
        kind: type of the sensor; 1 is a clamp, 2 counts impulses.
        watts: by clamp, as shown: current times a nominal voltage.
    """

    source: str
    sensor: int
    radio_id: str
    kind: int
    watts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class History:
    """A message about the past; it has no power."""


def parse_message(text: str) -> Live | History:
    """One line.

    Raises:
        GarbageReply: when it is not one whole message.
    """
    line = text.strip()
    found = _MESSAGE.fullmatch(line)
    if found is None or "<msg>" in found["body"]:
        raise GarbageReply(f"{line[:60]!r} is not one whole message")
    if "<hist>" in line:
        return History()
    fields, watts = _live_fields(found["body"])
    missing = [name for name in ("src", "sensor", "id", "type") if name not in fields]
    if missing:
        raise GarbageReply(f"a message lacks {', '.join(missing)}: {line[:80]!r}")
    return Live(fields["src"], _count(fields, "sensor"), fields["id"], _count(fields, "type"), watts)


def is_classic(text: str) -> bool:
    """Whether a line is one of the older Current Cost "Classic", which names its display otherwise."""
    return _CLASSIC.search(text) is not None


def _live_fields(body: str) -> tuple[dict[str, str], dict[int, int]]:
    """Plain fields by tag, and watts by clamp."""
    fields: dict[str, str] = {}
    watts: dict[int, int] = {}
    position = 0
    while position < len(body):
        channel = _CHANNEL.match(body, position)
        field = None if channel else _FIELD.match(body, position)
        found = channel or field
        if found is None:
            raise GarbageReply(f"{body[position : position + 40]!r} is not a field of a message")
        if channel:
            if int(channel["number"]) in watts:
                raise GarbageReply(f"clamp {channel['number']} comes twice in one message")
            watts[int(channel["number"])] = int(channel["watts"])
        elif field:
            if field["tag"] in fields:
                raise GarbageReply(f"{field['tag']} comes twice in one message")
            fields[field["tag"]] = field["text"]
        position = found.end()
    return fields, watts


def _count(fields: Mapping[str, str], name: str) -> int:
    text = fields[name].strip()
    if not (text.isascii() and text.isdecimal()):
        raise GarbageReply(f"{name} is {text[:20]!r}, not a number")
    return int(text)

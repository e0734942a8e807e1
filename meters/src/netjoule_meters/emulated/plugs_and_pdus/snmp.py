# SPDX-License-Identifier: Apache-2.0
"""A small SNMP agent for emulated sockets: GET of versions 1 and 2c. Sans-IO.

Written from the documents (RFC 1157, RFC 3416; BER: X.690), without the library that the adapter uses: a
mistake of one is not hidden by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Objects = Mapping[str, int | str]
_INTEGER, _OCTETS, _NULL, _OID, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_GET, _RESPONSE = 0xA0, 0xA2
_NO_SUCH_OBJECT = 0x80
_NO_SUCH_NAME, _GENERAL_ERROR = 2, 5
_VERSION_1 = 0


class Malformed(ValueError):
    """A datagram that is no SNMP message."""


class SnmpAgent:
    """Answers GET with the objects of the moment; silent to a wrong community, as agents are."""

    def __init__(self, objects: Callable[[], Objects], community: str = "public") -> None:
        self._objects = objects
        self._community = community.encode()
        self._waiting = b""
        self.fail = False

    def receive(self, data: bytes) -> None:
        """A datagram; of several the last is answered, as a port sends one at a time."""
        self._waiting = data or self._waiting

    def answers(self) -> bytes:
        """The answer to the datagram that waits."""
        waiting, self._waiting = self._waiting, b""
        return self.answer(waiting) if waiting else b""

    def answer(self, datagram: bytes) -> bytes:
        """The answer to one datagram; empty for one that gets none."""
        try:
            return self._answer(datagram)
        except (Malformed, IndexError, UnicodeDecodeError):
            return b""

    def _answer(self, datagram: bytes) -> bytes:
        message = _Reader(_Reader(datagram).take(_SEQUENCE))
        version, community = message.integer(), message.take(_OCTETS)
        if community != self._community:
            return b""
        request = _Reader(message.take(_GET))
        number, _status, _index = request.integer(), request.integer(), request.integer()
        names = _names(request.take(_SEQUENCE))
        status, index, bindings = self._bindings(names, version)
        body = _integer(number) + _integer(status) + _integer(index) + _tlv(_SEQUENCE, bindings)
        return _tlv(_SEQUENCE, _integer(version) + _tlv(_OCTETS, community) + _tlv(_RESPONSE, body))

    def _bindings(self, names: list[str], version: int) -> tuple[int, int, bytes]:
        """Error status, error index and the encoded list of values."""
        objects = self._objects()
        bindings = b""
        status = index = 0
        for position, name in enumerate(names, start=1):
            value = objects.get(name)
            if self.fail:
                status, index, encoded = _GENERAL_ERROR, position, _tlv(_NULL, b"")
            elif value is not None:
                encoded = _integer(value) if isinstance(value, int) else _tlv(_OCTETS, value.encode())
            elif version == _VERSION_1:
                status, index, encoded = _NO_SUCH_NAME, position, _tlv(_NULL, b"")
            else:
                encoded = _tlv(_NO_SUCH_OBJECT, b"")
            bindings += _tlv(_SEQUENCE, encode_oid(name) + encoded)
        return status, index, bindings


class _Reader:
    """BER, from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        """Whether there is more."""
        return self._at < len(self._data)

    def take(self, tag: int) -> bytes:
        """Content of the next element, which must have this tag."""
        if self._data[self._at] != tag:
            raise Malformed(f"tag {self._data[self._at]:#x} instead of {tag:#x}")
        length = self._data[self._at + 1]
        start = self._at + 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(self._data[start : start + octets], "big")
            start += octets
        if start + length > len(self._data):
            raise Malformed("cut off")
        self._at = start + length
        return self._data[start : self._at]

    def integer(self) -> int:
        """The next integer."""
        return int.from_bytes(self.take(_INTEGER), "big", signed=True)


def _names(bindings: bytes) -> list[str]:
    reader, names = _Reader(bindings), []
    while reader.left:
        names.append(decode_oid(_Reader(reader.take(_SEQUENCE)).take(_OID)))
    return names


def _tlv(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + content


def _integer(value: int) -> bytes:
    return _tlv(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def encode_oid(text: str) -> bytes:
    """An object identifier as an element (X.690, 8.19)."""
    first, second, *rest = map(int, text.split("."))
    content = b""
    for number in (40 * first + second, *rest):
        octets = [number & 0x7F]
        while number := number >> 7:
            octets.insert(0, 0x80 | (number & 0x7F))
        content += bytes(octets)
    return _tlv(_OID, content)


def decode_oid(content: bytes) -> str:
    """The numbers in an element's content."""
    numbers, number = [], 0
    for octet in content:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))

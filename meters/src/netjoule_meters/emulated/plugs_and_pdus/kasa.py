# SPDX-License-Identifier: Apache-2.0
"""The protocol of TP-Link Kasa plugs on TCP port 9999, from the plug's side: a length of four bytes, then
JSON under an autokey XOR that starts with 171. Sans-IO."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

_LENGTH = struct.Struct(">I")
_KEY = 171
_LARGEST = 1 << 14


class KasaPlug:
    """Requests in, answers out; ``answer`` makes the answer to one request, and never fails."""

    fail = False

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer
        self._received = b""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._received += data

    def answers(self) -> bytes:
        """Answers to the requests that are whole."""
        output = b""
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            if length > _LARGEST:  # noise
                self._received = b""
                break
            if len(self._received) < _LENGTH.size + length:
                break
            body, self._received = self._received[4 : 4 + length], self._received[4 + length :]
            try:
                request = json.loads(decipher(body))
            except ValueError:
                continue
            output += frame(json.dumps(self._answer(request)).encode())
        return output


def frame(body: bytes) -> bytes:
    """A text as it is sent."""
    key, coded = _KEY, bytearray()
    for byte in body:
        key ^= byte
        coded.append(key)
    return _LENGTH.pack(len(body)) + bytes(coded)


def decipher(coded: bytes) -> bytes:
    """The text in a frame, without its length."""
    key, body = _KEY, bytearray()
    for byte in coded:
        body.append(key ^ byte)
        key = byte
    return bytes(body)

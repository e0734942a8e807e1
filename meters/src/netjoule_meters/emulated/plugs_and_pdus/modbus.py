# SPDX-License-Identifier: Apache-2.0
"""A small Modbus/TCP server for emulated sockets: functions 3 and 4 (protocol V1.1b3). Sans-IO."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

Words = Mapping[int, int]
_HEADER = struct.Struct(">HHHB")
_READS = (3, 4)
_MOST = 125
ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, ILLEGAL_VALUE, FAILURE = 1, 2, 3, 4


class ModbusServer:
    """Frames in, frames out; ``words`` are the registers of the moment, ``fail`` answers with exceptions."""

    def __init__(self, words: Callable[[], Words]) -> None:
        self._words = words
        self._received = b""
        self.fail = False

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._received += data

    def answers(self) -> bytes:
        """Answers to the frames that are whole."""
        output = b""
        while len(self._received) >= _HEADER.size:
            transaction, protocol, length, unit = _HEADER.unpack_from(self._received)
            end = _HEADER.size - 1 + length
            if protocol != 0 or not 2 <= length <= 254:  # noise: there is no way to find the next frame in it
                self._received = b""
                break
            if len(self._received) < end:
                break
            pdu, self._received = self._received[_HEADER.size : end], self._received[end:]
            if unit in (0, 1, 255):
                reply = self._reply(pdu)
                output += _HEADER.pack(transaction, 0, len(reply) + 1, unit) + reply
        return output

    def _reply(self, pdu: bytes) -> bytes:
        function = pdu[0]
        if self.fail:
            return bytes((function | 0x80, FAILURE))
        if function not in _READS:
            return bytes((function | 0x80, ILLEGAL_FUNCTION))
        if len(pdu) != 5:
            return bytes((function | 0x80, ILLEGAL_VALUE))
        address, count = struct.unpack(">HH", pdu[1:])
        if not 1 <= count <= _MOST:
            return bytes((function | 0x80, ILLEGAL_VALUE))
        words = self._words()
        wanted = range(address, address + count)
        if any(number not in words for number in wanted):
            return bytes((function | 0x80, ILLEGAL_ADDRESS))
        return struct.pack(f">BB{count}H", function, 2 * count, *(words[number] for number in wanted))


def float_words(address: int, value: float) -> dict[int, int]:
    """Two registers that hold a float32, high word first."""
    high, low = struct.unpack(">HH", struct.pack(">f", value))
    return {address: high, address + 1: low}

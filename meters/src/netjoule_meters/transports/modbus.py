# SPDX-License-Identifier: Apache-2.0
"""Registers of a device over Modbus/TCP (pymodbus; Modbus application protocol V1.1b3).

A request is registers with blanks between, and ``unit=N`` for another unit than 1. A register is
``TABLE:ADDRESS:TYPE`` or ``TABLE:ADDRESS:TYPE:little``: table ``input`` or ``holding``, the address as on the
wire (counted from 0), a type of the table below, ``little`` when the low word comes first. The answer is a
JSON object with a value for each; a float may be NaN.
"""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, GarbageReply, UsageError
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.event_loop import EventLoopSource

if TYPE_CHECKING:
    from pymodbus.client import AsyncModbusTcpClient

_PORT = 502
_TURNS = 3
"""Turns of the event loop from a hang-up to the library knowing it."""
TYPES = {
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "uint64": ">Q",
    "float32": ">f",
    "float64": ">d",
}
EXCEPTIONS = {
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "server device failure",
    6: "server device busy",
    10: "gateway path unavailable",
    11: "gateway target device failed to respond",
}
"""Exception codes, section 7 of the specification."""


@dataclass(frozen=True, slots=True)
class Register:
    """One value: where it is and how it is written."""

    table: str
    address: int
    kind: str
    low_word_first: bool = False

    @property
    def count(self) -> int:
        """16-bit registers it takes."""
        return struct.calcsize(TYPES[self.kind]) // 2

    def value(self, words: list[int]) -> float | int:
        """The number in the registers."""
        ordered = list(reversed(words)) if self.low_word_first else words
        number: float | int = struct.unpack(TYPES[self.kind], struct.pack(f">{len(ordered)}H", *ordered))[0]
        return number


def parse_register(text: str) -> Register:
    """A register as it is written in a request.

    Raises:
        UsageError: saying how to write it.
    """
    fields = text.split(":")
    if len(fields) >= 3 and fields[3:] in ([], ["little"], ["big"]):
        table, address, kind = fields[:3]
        known = table in ("input", "holding") and kind in TYPES
        if known and address.isdecimal() and int(address) < 65536:
            return Register(table, int(address), kind, fields[3:] == ["little"])
    raise UsageError(
        f"'{text}' is no register: write input:ADDRESS:TYPE or holding:ADDRESS:TYPE[:little], "
        f"TYPE one of {', '.join(TYPES)}"
    )


class ModbusSource(EventLoopSource):
    """One device; the connection is kept, and made anew after any trouble."""

    library = ("pymodbus", "pymodbus.client")

    def __init__(self, resource: str, *, clock: Clock) -> None:
        super().__init__(resource, clock=clock)
        self._host, self._port = host_and_port(resource, _PORT)
        self._client: AsyncModbusTcpClient | None = None

    def _load(self) -> None:
        super()._load()
        # What it has to say arrives here as errors; nobody's standard error should have it as well.
        logging.getLogger("pymodbus").addHandler(logging.NullHandler())

    async def _begin(self) -> None:
        await self._connected(5.0)

    async def _answer(self, request: str, timeout_s: float) -> bytes:
        words = request.split()
        units = [int(word[5:]) for word in words if word.startswith("unit=") and word[5:].isdecimal()]
        registers = [word for word in words if not word.startswith("unit=")]
        unit = units[0] if units else 1
        try:
            client = await self._connected(timeout_s)
            found = {text: await self._read(client, parse_register(text), unit) for text in registers}
        except GarbageReply:
            raise
        except BaseException:  # a late answer must not be taken for the next one
            self._hang_up()
            raise
        return json.dumps(found).encode()

    async def _end(self) -> None:
        self._hang_up()

    async def _connected(self, timeout_s: float) -> AsyncModbusTcpClient:
        from pymodbus.client import AsyncModbusTcpClient

        for _ in range(_TURNS):  # the loop stood still: a hang-up meanwhile is noticed now
            await asyncio.sleep(0)
        if self._client is None or not self._client.connected:
            self._hang_up()
            self._client = AsyncModbusTcpClient(
                self._host, port=self._port, timeout=timeout_s, retries=0, reconnect_delay=0
            )
            if not await self._client.connect():
                self._hang_up()
                raise ConnectionLost(f"nobody answers at {self._host}:{self._port}")
        return self._client

    async def _read(self, client: AsyncModbusTcpClient, register: Register, unit: int) -> float | int:
        from pymodbus.exceptions import ConnectionException, ModbusException
        from pymodbus.pdu import ExceptionResponse

        read = client.read_input_registers if register.table == "input" else client.read_holding_registers
        try:
            reply = await read(register.address, count=register.count, device_id=unit)
        except ConnectionException as error:
            raise ConnectionLost(f"{self.resource}: {error}") from error
        except ModbusException as error:  # silence, a lost connection, an answer to something else
            raise ConnectionLost(f"{self.resource} did not answer for {register}: {error}") from error
        if isinstance(reply, ExceptionResponse):
            word = EXCEPTIONS.get(reply.exception_code, "unknown")
            raise GarbageReply(
                f"Modbus exception {reply.exception_code} ({word}) for {register.table} register "
                f"{register.address} of unit {unit}; check them against the device's manual"
            )
        if len(reply.registers) != register.count:
            raise GarbageReply(f"{len(reply.registers)} registers came where {register.count} were asked for")
        return register.value(list(reply.registers))

    def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

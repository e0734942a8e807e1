# SPDX-License-Identifier: Apache-2.0
"""Objects of a device's MIB over SNMP version 1 or 2c (pysnmp; RFC 1157, RFC 3416).

A request is object identifiers with blanks between, asked for in one GET; the answer is a JSON object with
a value for each that exists. A lost datagram is not sent again: the next poll asks anew.
"""

from __future__ import annotations

import json
import re
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, GarbageReply, ReplyTimeout, UsageError
from netjoule_meters.secret import check_reference, look_up
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.event_loop import EventLoopSource

_PORT = 161
_VERSIONS = {"1": 0, "2c": 1}
_OID = re.compile(r"\.?\d+(\.\d+)+")


class SnmpSource(EventLoopSource):
    """One agent."""

    library = ("pysnmp", "pysnmp.hlapi.v3arch.asyncio")

    silence_hint = ", as with a wrong community or version"

    def __init__(
        self, resource: str, *, clock: Clock, snmp_version: str = "2c", community: str | None = None
    ) -> None:
        super().__init__(resource, clock=clock)
        self._address = host_and_port(resource, _PORT)
        self._version = _VERSIONS[str(snmp_version)]
        self._community = check_reference("community", community)
        self._engine: Any = None
        self._community_data: Any = None
        self._target: Any = None

    async def _begin(self) -> None:
        from pysnmp.error import PySnmpError
        from pysnmp.hlapi.v3arch.asyncio import CommunityData, SnmpEngine, UdpTransportTarget

        # "public" is what devices are delivered with and no secret.
        name = "public" if self._community is None else look_up("community", self._community)
        self._engine = SnmpEngine()
        self._community_data = CommunityData(name, mpModel=self._version)
        try:
            self._target = await UdpTransportTarget.create(self._address, timeout=5, retries=0)
        except PySnmpError as error:
            raise ConnectionLost(f"no host {self._address[0]}: check the name or address") from error

    async def _answer(self, request: str, timeout_s: float) -> bytes:
        from pysnmp.hlapi.v3arch.asyncio import ContextData, ObjectIdentity, ObjectType, get_cmd
        from pysnmp.proto.errind import RequestTimedOut

        identifiers = request.split()
        wrong = [oid for oid in identifiers if not _OID.fullmatch(oid)]
        if wrong or not identifiers:
            raise UsageError(f"'{' '.join(wrong)}' is no object identifier: write it in numbers, 1.3.6.1...")
        # Objects that were asked for hold the answer: new ones for each request.
        objects = [ObjectType(ObjectIdentity(oid.lstrip("."))) for oid in identifiers]
        trouble, status, index, values = await get_cmd(
            self._engine, self._community_data, self._target, ContextData(), *objects, lookupMib=False
        )
        if isinstance(trouble, RequestTimedOut):
            raise ReplyTimeout(f"no answer from {self.resource}")
        if trouble:
            raise GarbageReply(f"SNMP: {trouble}")
        if int(status):
            where = identifiers[int(index) - 1] if 0 < int(index) <= len(identifiers) else request
            raise GarbageReply(f"SNMP error {status.prettyPrint()} for {where}")
        found = {str(name): _plain(value) for name, value in values if not _absent(value)}
        return json.dumps(
            {oid: found[key] for oid in identifiers if (key := oid.lstrip(".")) in found}
        ).encode()

    async def _end(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close_dispatcher()


def _absent(value: Any) -> bool:
    """Whether a version 2c agent says that it has no such object."""
    return type(value).__name__ in ("NoSuchObject", "NoSuchInstance", "EndOfMibView")


def _plain(value: Any) -> int | str:
    """An SNMP value as JSON has it: a number or a text."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return str(value.prettyPrint())

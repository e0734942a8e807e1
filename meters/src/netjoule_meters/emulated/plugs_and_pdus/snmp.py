# SPDX-License-Identifier: Apache-2.0
"""A small SNMP agent for emulated sockets: GET of versions 1 and 2c (pysnmp; RFC 1157, RFC 3416). Sans-IO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto import api

Objects = Mapping[str, int | str]
_NO_SUCH_NAME, _GENERAL_ERROR = 2, 5


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
            version = api.PROTOCOL_MODULES[int(api.decodeMessageVersion(datagram))]
            message, _ = decoder.decode(datagram, asn1Spec=version.Message())
        except Exception:  # noise, whatever the decoder makes of it
            return b""
        request = version.apiMessage.get_pdu(message)
        community = bytes(version.apiMessage.get_community(message))
        if community != self._community or not isinstance(request, version.GetRequestPDU):
            return b""
        reply = version.apiMessage.get_response(message)
        self._fill(version.apiMessage.get_pdu(reply), version.apiPDU.get_varbinds(request), version)
        return bytes(encoder.encode(reply))

    def _fill(self, reply: Any, asked: list[Any], version: Any) -> None:
        """Put values, and the error where there is one, into a reply."""
        objects = self._objects()
        values = []
        for position, (name, _) in enumerate(asked, start=1):
            value, status = objects.get(str(name)), 0
            if self.fail:
                encoded, status = version.null, _GENERAL_ERROR
            elif value is not None:
                encoded = version.Integer(value) if isinstance(value, int) else version.OctetString(value)
            elif version is api.v1:
                encoded, status = version.null, _NO_SUCH_NAME
            else:
                encoded = version.NoSuchObject("")
            values.append((name, encoded))
            if status:
                version.apiPDU.set_error_status(reply, status)
                version.apiPDU.set_error_index(reply, position)
        version.apiPDU.set_varbinds(reply, values)

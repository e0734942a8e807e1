# SPDX-License-Identifier: Apache-2.0
"""TP-Link Kasa plugs on TCP port 9999: JSON behind a length and an autokey XOR (python-kasa).

A request and its answer are the JSON texts. Each has a connection of its own, as the plugs' own app does.
Firmware that wants an account (KLAP, on port 80) is not spoken to.
"""

from __future__ import annotations

import json

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, GarbageReply, ReplyTimeout
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.event_loop import EventLoopSource

_PORT = 9999


class KasaSource(EventLoopSource):
    """One plug."""

    library = ("python-kasa", "kasa.transports")

    def __init__(self, resource: str, *, clock: Clock) -> None:
        super().__init__(resource, clock=clock)
        self._host, self._port = host_and_port(resource, _PORT)

    async def _answer(self, request: str, timeout_s: float) -> bytes:
        from kasa import DeviceConfig, KasaException
        from kasa import TimeoutError as KasaTimeout
        from kasa.transports import XorTransport

        config = DeviceConfig(host=self._host, port_override=self._port, timeout=int(timeout_s) + 1)
        transport = XorTransport(config=config)
        try:
            return json.dumps(await transport.send(request)).encode()
        except KasaTimeout as error:
            raise ReplyTimeout(f"no answer from {self.resource}") from error
        except KasaException as error:
            cause = error.__cause__
            if isinstance(cause, ValueError):  # UnicodeDecodeError and JSON errors are such
                raise GarbageReply(f"{self.resource} does not speak Kasa's protocol ({cause})") from error
            raise ConnectionLost(
                f"{self.resource} cannot be reached ({cause or error}); firmware with local login (KLAP) "
                "has no port 9999 and is not supported"
            ) from error
        finally:
            await transport.close()

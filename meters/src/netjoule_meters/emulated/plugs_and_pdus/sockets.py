# SPDX-License-Identifier: Apache-2.0
"""Emulated networked sockets: one for each preset, and one for each format that an i-Socket may be mapped to.

They speak the real protocols of the devices (HTTP, SNMP, Modbus/TCP, Kasa's); the documents hold the fields
of the presets and little else. The formats under ``isockets`` are this program's own: nothing is known of
the real device's. Sans-IO. Faults on request, each for ``seconds``: ``stuck`` (answers, measures no more),
and by protocol ``http_500``, ``wrong_json``, ``snmp_error``, ``modbus_exception``, ``babble`` (text without
the value).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from netjoule_meters.emulated.plugs_and_pdus import device_answers
from netjoule_meters.emulated.plugs_and_pdus.http import HttpServer, Login, Page
from netjoule_meters.emulated.plugs_and_pdus.kasa import KasaPlug
from netjoule_meters.emulated.plugs_and_pdus.measurement import SocketMeasurement
from netjoule_meters.emulated.plugs_and_pdus.modbus import ModbusServer
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions

_FAULT_S = 5.0
_LONGEST_LINE = 4096


class Server(Protocol):
    """The protocol of a device: bytes in, bytes out."""

    fail: bool
    """Answer with the protocol's own kind of error."""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""

    def answers(self) -> bytes:
        """What to send."""


class Console:
    """A line READ is answered with a line of text; one that fails has no value in it."""

    fail = False

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._received = b""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._received = (self._received + data)[-_LONGEST_LINE:]

    def answers(self) -> bytes:
        """A line for each READ."""
        *lines, self._received = self._received.split(b"\n")
        text = "self-test passed" if self.fail else self._text()
        asked = sum(line.strip().upper() == b"READ" for line in lines)
        return f"{text}\r\n".encode() * asked


class EmulatedSocket:
    """One device: what it measures, behind the protocol that its variant speaks."""

    def __init__(self, measuring: SocketMeasurement, variant: str, extra: Mapping[str, Any]) -> None:
        self._measuring = measuring
        self._trouble = ""
        self._trouble_until_s = -math.inf
        self._faults, self._server = self._speaking(variant, extra)

    def _speaking(self, variant: str, extra: Mapping[str, Any]) -> tuple[tuple[str, ...], Server]:
        """The faults of a protocol, and its server."""
        if variant in _SITES:
            site, login = _SITES[variant], _login(variant, extra)
            return ("http_500", "wrong_json"), HttpServer(lambda target: self._page(site, target), login)
        if variant in _KASA:
            return (), KasaPlug(lambda request: _KASA[variant](request, self._measuring.shown))
        if variant == "modbus":
            words = device_answers.own_words
            return ("modbus_exception",), ModbusServer(lambda: words(self._measuring.shown))
        if variant == "tcp_text":
            return ("babble",), Console(lambda: device_answers.own_line(self._measuring.shown))
        from netjoule_meters.emulated.plugs_and_pdus.snmp import SnmpAgent

        objects, community = _OBJECTS[variant], str(extra.get("community", "public"))
        return ("snmp_error",), SnmpAgent(lambda: objects(self._measuring.shown), community)

    def _page(self, site: device_answers.Site, target: str) -> Page | None:
        if self._server.fail and self._trouble == "http_500":
            return Page(b"internal error", 500, "text/plain")
        page = site(target, self._measuring.shown)
        if page is not None and self._server.fail:
            return Page(b'{"status": "starting", "values": [', kind=page.kind)
        return page

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        self._measuring.feed(interval)

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._server.receive(data)

    def step(self, now_s: float) -> bytes:
        """Measure what is due and answer."""
        self._measuring.advance(now_s)
        self._server.fail = now_s < self._trouble_until_s
        return self._server.answers()

    def wake_s(self, now_s: float) -> float | None:
        """When the next update is due."""
        return self._measuring.wake_s(now_s)

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """A fault from now on for ``seconds``; False when this device has none of that name."""
        until_s = now_s + float(request.get("seconds", _FAULT_S))
        if name == "stuck":
            self._measuring.stick(until_s)
            return True
        if name not in self._faults:
            return False
        self._trouble, self._trouble_until_s = name, until_s
        return True


_SITES: dict[str, device_answers.Site] = {
    "netio": device_answers.netio,
    "gude": device_answers.gude,
    "shelly1": device_answers.shelly1,
    "shelly2": device_answers.shelly2,
    "tasmota": device_answers.tasmota,
    "json": device_answers.own_json,
    "csv": device_answers.own_csv,
    "text": device_answers.own_text,
}
_KASA = {"kasa": device_answers.kasa, "kasa_old": device_answers.kasa_old}
_OBJECTS = {
    "apc": device_answers.apc,
    "apc_outlet": device_answers.apc_outlet,
    "snmp": device_answers.own_objects,
}


def make_socket(options: EmulationOptions) -> EmulatedSocket:
    """The device of a preset; ``extra`` may hold username, password and community."""
    return _make(options, "netio", 1.0)


def make_isockets(options: EmulationOptions) -> EmulatedSocket:
    """A socket with one of this program's own formats, renewed every 30 s as in the study."""
    return _make(options, "json", 30.0)


def _make(options: EmulationOptions, usual_variant: str, usual_interval_s: float) -> EmulatedSocket:
    variant = options.variant or usual_variant
    interval_s = usual_interval_s if options.update_interval_s is None else options.update_interval_s
    extra = options.known_extra("socket", ("username", "password", "community"))
    measuring = SocketMeasurement(interval_s, options.supply, options.seed)
    return EmulatedSocket(measuring, variant, extra)


def _login(variant: str, extra: Mapping[str, Any]) -> Login | None:
    if "password" not in extra:
        return None
    scheme = "digest" if variant == "shelly2" else "basic"
    return Login(str(extra.get("username", "admin")), str(extra["password"]), scheme)

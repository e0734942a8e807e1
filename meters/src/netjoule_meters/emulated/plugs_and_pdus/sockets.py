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
from netjoule_meters.emulated.plugs_and_pdus.measurement import DisplayedValues, SocketMeasurement
from netjoule_meters.emulated.plugs_and_pdus.modbus import ModbusServer
from netjoule_meters.emulated.plugs_and_pdus.snmp import SnmpAgent
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions

_FAULT_S = 5.0
_LONGEST_LINE = 4096


class Frontend(Protocol):
    """The protocol of a device: bytes in, bytes out."""

    faults: tuple[str, ...]

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        ...

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """What to send; ``trouble`` is a fault of ``faults`` or empty."""
        ...


class HttpFrontend:
    """Pages of JSON or text."""

    faults: tuple[str, ...] = ("http_500", "wrong_json")

    def __init__(self, site: device_answers.Site, login: Login | None) -> None:
        self._site = site
        self._shown = DisplayedValues()
        self._trouble = ""
        self._server = HttpServer(self._page, login)

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._server.receive(data)

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """Pages that were asked for."""
        self._shown, self._trouble = shown, trouble
        return self._server.answers()

    def _page(self, target: str) -> Page | None:
        if self._trouble == "http_500":
            return Page(b"internal error", 500, "text/plain")
        page = self._site(target, self._shown)
        if page is not None and self._trouble == "wrong_json":
            return Page(b'{"status": "starting", "values": [', kind=page.kind)
        return page


class SnmpFrontend:
    """One agent."""

    faults: tuple[str, ...] = ("snmp_error",)

    def __init__(self, objects: Callable[[DisplayedValues], Mapping[str, int | str]], community: str) -> None:
        self._datagrams: list[bytes] = []
        self._shown = DisplayedValues()
        self._agent = SnmpAgent(lambda: objects(self._shown), community)

    def receive(self, data: bytes) -> None:
        """A datagram."""
        if data:
            self._datagrams.append(data)

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """The answer to the last datagram; a port sends one at a time."""
        self._shown, self._agent.fail = shown, bool(trouble)
        waiting, self._datagrams = self._datagrams, []
        return self._agent.answer(waiting[-1]) if waiting else b""


class ModbusFrontend:
    """One Modbus/TCP server."""

    faults: tuple[str, ...] = ("modbus_exception",)

    def __init__(self, words: Callable[[DisplayedValues], Mapping[int, int]]) -> None:
        self._shown = DisplayedValues()
        self._server = ModbusServer(lambda: words(self._shown))

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._server.receive(data)

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """Frames."""
        self._shown, self._server.fail = shown, bool(trouble)
        return self._server.answers()


class KasaFrontend:
    """One plug."""

    faults: tuple[str, ...] = ()

    def __init__(self, answer: Callable[[Any, DisplayedValues], Any]) -> None:
        self._shown = DisplayedValues()
        self._plug = KasaPlug(lambda request: answer(request, self._shown))

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._plug.receive(data)

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """Frames."""
        self._shown = shown
        return self._plug.answers()


class TextFrontend:
    """A console: a line READ is answered with a line of text."""

    faults: tuple[str, ...] = ("babble",)

    def __init__(self, text: Callable[[DisplayedValues], str]) -> None:
        self._text = text
        self._received = b""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._received = (self._received + data)[-_LONGEST_LINE:]

    def answers(self, shown: DisplayedValues, trouble: str) -> bytes:
        """A line for each READ."""
        *lines, self._received = self._received.split(b"\n")
        text = "self-test passed" if trouble else self._text(shown)
        asked = sum(line.strip().upper() == b"READ" for line in lines)
        return f"{text}\r\n".encode() * asked


class EmulatedSocket:
    """One device: what it measures, behind its protocol."""

    def __init__(self, measuring: SocketMeasurement, face: Frontend) -> None:
        self._measuring = measuring
        self._frontend = face
        self._trouble = ""
        self._trouble_until_s = -math.inf

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        self._measuring.feed(interval)

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._frontend.receive(data)

    def step(self, now_s: float) -> bytes:
        """Measure what is due and answer."""
        self._measuring.advance(now_s)
        trouble = self._trouble if now_s < self._trouble_until_s else ""
        return self._frontend.answers(self._measuring.shown, trouble)

    def wake_s(self, now_s: float) -> float | None:
        """When the next update is due."""
        return self._measuring.wake_s(now_s)

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """A fault from now on for ``seconds``; False when this device has none of that name."""
        until_s = now_s + float(request.get("seconds", _FAULT_S))
        if name == "stuck":
            self._measuring.stick(until_s)
            return True
        if name not in self._frontend.faults:
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
    return EmulatedSocket(
        SocketMeasurement(interval_s, options.supply, options.seed), _frontend(variant, extra)
    )


def _frontend(variant: str, extra: Mapping[str, Any]) -> Frontend:
    if variant in _SITES:
        return HttpFrontend(_SITES[variant], _login(variant, extra))
    if variant in ("kasa", "kasa_old"):
        return KasaFrontend(device_answers.kasa if variant == "kasa" else device_answers.kasa_old)
    if variant == "modbus":
        return ModbusFrontend(device_answers.own_words)
    if variant == "tcp_text":
        return TextFrontend(device_answers.own_line)
    objects = {
        "apc": device_answers.apc,
        "apc_outlet": device_answers.apc_outlet,
        "snmp": device_answers.own_objects,
    }[variant]
    return SnmpFrontend(objects, str(extra.get("community", "public")))


def _login(variant: str, extra: Mapping[str, Any]) -> Login | None:
    if "password" not in extra:
        return None
    scheme = "digest" if variant == "shelly2" else "basic"
    return Login(str(extra.get("username", "admin")), str(extra["password"]), scheme)

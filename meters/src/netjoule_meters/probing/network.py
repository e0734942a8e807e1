# SPDX-License-Identifier: Apache-2.0
"""Asking who is there on hosts that a person named; nothing else on the network is touched.

Each try is one short connection that only asks: ``Hello`` and ``Identify`` of a PTDaemon, the page that a
networked socket answers with its readings, ``*IDN?`` over VXI-11.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from netjoule_meters.probing.identification import (
    FoundInstrument,
    recognise_identification,
    recognise_ptdaemon,
)

PTDAEMON_PORT = 8888
HTTP_PORT = 80
VXI11_PORT = 111
KASA_PORT = 9999
_TIMEOUT_S = 2.0
_MOST_BYTES = 262144

Page = tuple[str, str, Callable[[bytes], bool]]
"""Name of a preset, path to GET, whether a body is such a device's."""


def split_host(text: str) -> tuple[str, int | None]:
    """``HOST`` or ``HOST:PORT``."""
    host, colon, port = text.rpartition(":")
    return (host, int(port)) if colon and port.isdecimal() else (text, None)


def identify_host(
    text: str, pages: Sequence[Page], presets: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[list[FoundInstrument], list[str]]:
    """Try everything on one host; what was found, and what else there is to say.

    Args:
        text: HOST, HOST:PORT, or with the scheme of an interface without pages (``snmp:HOST``).
        pages: of sockets that answer with a page.
        presets: names of presets by interface, for the others.
    """
    scheme = text.partition(":")[0]
    if scheme in presets:
        one = identify_resource(text, presets[scheme])
        return ([one], []) if one is not None else ([], [f"no preset reads it over {scheme}"])
    host, port = split_host(text)
    found: list[FoundInstrument] = []
    notes: list[str] = []
    if (daemon := identify_ptdaemon(host, port or PTDAEMON_PORT)) is not None:
        return [daemon], notes
    sockets, note = identify_http(host, port or HTTP_PORT, pages)
    found += sockets
    notes += [note] if note else []
    if port is None and is_open(host, VXI11_PORT):
        instrument, note = identify_vxi11(host)
        found += [instrument] if instrument is not None else []
        notes += [note] if note else []
    if port is None and "kasa" in presets and is_open(host, KASA_PORT):
        plug = identify_resource(f"kasa:{host}", presets["kasa"])
        found += [plug] if plug is not None else []
    return found, notes or ([] if found else ["nothing answers on the ports of meters"])


def identify_resource(resource: str, presets: Sequence[str]) -> FoundInstrument | None:
    """The first preset whose adapter opens a resource that is no page (``kasa:HOST``, ``snmp:HOST``, ...)."""
    from netjoule_meters.config import MeterConfig
    from netjoule_meters.errors import MeterError
    from netjoule_meters.meter_factory import open_meter

    for preset in presets:
        settings = {"preset": preset, "answer_timeout_s": _TIMEOUT_S}
        try:
            meter = open_meter(MeterConfig("probed", "host", "socket", resource, settings))
        except MeterError:
            continue
        meter.close()
        text = meter.identification.text if meter.identification is not None else preset
        return FoundInstrument("socket", resource, text, {"preset": preset})
    return None


def is_open(host: str, port: int) -> bool:
    """Whether a TCP connection can be made."""
    try:
        with socket.create_connection((host, port), _TIMEOUT_S):
            return True
    except OSError:
        return False


def identify_ptdaemon(host: str, port: int) -> FoundInstrument | None:
    """A PTDaemon on this port, or None."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), _TIMEOUT_S) as line:
        line.settimeout(_TIMEOUT_S)
        greeting = _ask_line(line, "Hello")
        if "PTDAEMON" in greeting.upper():
            return recognise_ptdaemon(f"tcp:{host}:{port}", greeting, _ask_line(line, "Identify"))
    return None


def _ask_line(line: socket.socket, question: str) -> str:
    line.sendall(question.encode("ascii") + b"\r\n")
    answer = b""
    while b"\n" not in answer and len(answer) < 4096:
        data = line.recv(4096)
        if not data:
            break
        answer += data
    return answer.decode("ascii", "replace").strip()


def identify_http(host: str, port: int, pages: Sequence[Page]) -> tuple[list[FoundInstrument], str]:
    """A networked socket by the pages that it answers; a note when one asks for a password."""
    note = ""
    for preset, path, is_it in pages:
        try:
            status, body = _get(host, port, path)
        except (OSError, http.client.HTTPException):
            return [], note
        if status == http.HTTPStatus.OK and is_it(body):
            where = host if port == HTTP_PORT else f"{host}:{port}"
            return [
                FoundInstrument("socket", f"http://{where}", f"{preset} at {path}", {"preset": preset})
            ], ""
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            note = (
                f"{path} asks for a password: name the preset yourself and give user and password reference"
            )
    return [], note


def _get(host: str, port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, response.read(_MOST_BYTES)
    finally:
        connection.close()


def identify_vxi11(host: str) -> tuple[FoundInstrument | None, str]:
    """``*IDN?`` over VXI-11; None with a note when PyVISA is not installed or nothing answers."""
    try:
        import pyvisa
    except ImportError:
        return None, "port 111 is open; to ask over VXI-11: pip install './meters[visa]'"
    manager = pyvisa.ResourceManager("@py")
    try:
        instrument = manager.open_resource(f"TCPIP::{host}::INSTR", open_timeout=2000)
        instrument.timeout = 2000
        text = str(instrument.query("*IDN?")).strip()  # type: ignore[attr-defined]
    except Exception as error:
        return None, f"port 111 is open, but nothing answers *IDN? over VXI-11 ({type(error).__name__})"
    finally:
        manager.close()
    return recognise_identification(f"vxi11:{host}", text), ""

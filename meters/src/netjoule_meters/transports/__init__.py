# SPDX-License-Identifier: Apache-2.0
"""Connections to instruments, and how the text ``resource`` names one.

==================================  =============================================================
resource                            interface
==================================  =============================================================
/dev/ttyUSB0, serial:/dev/ttyS0     serial: a serial port or pseudo-terminal
prologix:/dev/ttyUSB0:5             prologix: GPIB address 5 behind a Prologix controller on USB
prologix:HOST:1234:5                prologix: the same, on Ethernet
usbtmc:/dev/usbtmc0                 usbtmc: the kernel's driver for USB test instruments
visa:GPIB0::5::INSTR                visa: anything that PyVISA opens (GPIB, USB, TCPIP)
vxi11:HOST, vxi11:HOST:PORT         visa: TCPIP::HOST::INSTR, TCPIP::HOST,PORT::INSTR
tcp:HOST:PORT                       tcp: lines over a TCP connection
http://HOST/..., https://HOST/...   http
snmp:HOST[:PORT]                    snmp
modbus:HOST[:PORT]                  modbus: Modbus/TCP
kasa:HOST[:PORT]                    kasa
text:HOST:PORT                      text: text over TCP until a pattern matches
sysfs:NAME-OR-PATH                  sysfs: files of this host's kernel
joulescope:[SERIAL]                 joulescope
==================================  =============================================================
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import UsageError
from netjoule_meters.settings import Setting
from netjoule_meters.transports.base import Connection


@dataclass(frozen=True, slots=True)
class Interface:
    """One way to connect an instrument.

    Attributes:
        home: ``module:name`` of a class or function; called with the resource, ``clock`` and the settings as
            keywords it gives a `Connection` that is not open yet.
        settings: what a person may set about it.
    """

    name: str
    home: str
    settings: tuple[Setting, ...] = ()


_SERIAL_SETTINGS = (
    Setting("baud_rate", "Baud rate of the serial port.", 9600),
    Setting("frame", "Data bits, parity, stop bits.", "8N1"),
    Setting("handshake", "Flow control.", "none", ("none", "xon_xoff", "rts_cts", "dsr_dtr")),
    Setting("line_end", "What ends a line.", "lf", ("lf", "crlf", "cr")),
)
_VISA_SETTINGS = (Setting("visa_library", "VISA library for PyVISA, as it names them.", "@py"),)
_HTTP_SETTINGS = (
    Setting("username", "User name; admin where only a password is set.", None),
    Setting("password", "Password, by reference: env:NAME or file:PATH.", None),
    Setting("verify_certificate", "Whether an HTTPS certificate must be trusted.", True, (True, False)),
)
_SNMP_SETTINGS = (
    Setting("snmp_version", "Version of SNMP.", "2c", ("1", "2c")),
    Setting("community", "Community, by reference: env:NAME or file:PATH; None: public.", None),
)
_SYSFS_SETTINGS = (Setting("sysfs_root", "Where sysfs is mounted.", "/sys"),)

INTERFACES = {
    interface.name: interface
    for interface in (
        Interface("serial", "serial_port:serial_port", _SERIAL_SETTINGS),
        Interface("prologix", "prologix:prologix", _SERIAL_SETTINGS),
        Interface("usbtmc", "usbtmc:usbtmc"),
        Interface("visa", "visa:visa", _VISA_SETTINGS),
        Interface("tcp", "tcp_line:tcp_line"),
        Interface("http", "http:HttpSource", _HTTP_SETTINGS),
        Interface("snmp", "snmp:SnmpSource", _SNMP_SETTINGS),
        Interface("modbus", "modbus:ModbusSource"),
        Interface("kasa", "kasa:KasaSource"),
        Interface("text", "tcp_text:TextSource"),
        Interface("sysfs", "sysfs:sysfs", _SYSFS_SETTINGS),
        Interface("joulescope", "joulescope:Joulescope"),
    )
}

_SCHEMES = {"http": "http", "https": "http", "vxi11": "visa"}


def interface_of(resource: str) -> str:
    """Name of the interface that ``resource`` stands for; a bare path is a serial port."""
    scheme, colon, _ = resource.partition(":")
    if not colon or "/" in scheme:
        return "serial"
    return _SCHEMES.get(scheme, scheme)


def interface_settings(names: Sequence[str], defaults: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Settings of the interfaces called ``names``, each once, with an instrument's own ``defaults``."""
    found: dict[str, Setting] = {}
    for name in names:
        for setting in INTERFACES[name].settings:
            default = defaults.get(setting.name, setting.default)
            found.setdefault(setting.name, replace(setting, default=default))
    return tuple(found.values())


def connect(
    resource: str, allowed: Sequence[str], settings: Mapping[str, Any], *, clock: Clock
) -> Connection:
    """The connection that ``resource`` names, not open yet.

    Args:
        resource: see the table above.
        allowed: interfaces that the instrument has.
        settings: resolved settings; those of other interfaces are left alone.

    Raises:
        UsageError: for a resource that is none of ``allowed``.
    """
    if not resource:
        raise UsageError(f"no resource says where the meter is: it is connected by {', '.join(allowed)}")
    name = interface_of(resource)
    if name not in INTERFACES or name not in allowed:
        ways = ", ".join(allowed)
        raise UsageError(f"'{resource}' is not a way to reach this meter: it is connected by {ways}")
    interface = INTERFACES[name]
    module, _, function = interface.home.partition(":")
    make = getattr(importlib.import_module(f"netjoule_meters.transports.{module}"), function)
    wanted = {setting.name: settings[setting.name] for setting in interface.settings}
    connection: Connection = make(resource, clock=clock, **wanted)
    return connection

# SPDX-License-Identifier: Apache-2.0
"""``probe``: which instruments are there, without disturbing anybody; prints a topology snippet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule_meters.cli.options import SettingOption, settings_of
from netjoule_meters.errors import DialogueError, MeterUnavailable, NoAnswer, UsageError

if TYPE_CHECKING:
    from netjoule_meters.probing.identification import FoundInstrument
    from netjoule_meters.probing.network import Page


_CHECKED_UPDATES = 5
_ADVICE_PORTS = (
    "no meter found: check that it is on, its cable, its communication mode, and that you may open the port "
    "(group 'dialout'); name network meters with --host"
)
_ADVICE_HOSTS = (
    "no meter found on the named hosts: check their addresses and that the interface is switched on there "
    "(JSON API, VXI-11, SNMP); a port of its own goes as HOST:PORT, SNMP as snmp:HOST"
)
_WORDS = {True: "confirmed", False: "NOT SO", None: "unchecked"}


def probe_command(
    port: Annotated[
        list[str] | None, typer.Option(help="Only this serial port or USB-TMC device; may be given again.")
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Ask this host: HOST, HOST:PORT, snmp:HOST; may be given again.")
    ] = None,
    hosts_file: Annotated[
        Path | None, typer.Option(help="Hosts to ask, one per line.", metavar="FILE")
    ] = None,
    adapter_name: Annotated[
        str | None,
        typer.Option("--adapter", help="Open the one --port with this adapter and tell what it confirms."),
    ] = None,
    setting: SettingOption = None,
    node: Annotated[
        str, typer.Option(help="Node whose supply the meters are in, for the snippet.")
    ] = "client",
    listen: Annotated[
        bool, typer.Option(help="Also wait 14 s on each silent serial port for meters that only talk.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Find meters on serial ports, USB and named hosts, and print the topology snippet to paste.

    Ports that another program has open are left alone, every question only asks (*IDN?, Identify, a GET), and
    no host is asked that was not named. Opening a serial port raises its DTR line, as any program does.

    Example: netjoule-meters probe --host 192.0.2.17
    """
    if adapter_name is not None:
        _confirm(adapter_name, port, setting, as_json)
        return
    hosts = _hosts(host, hosts_file)
    found: list[FoundInstrument] = []
    notes: list[tuple[str, str]] = []
    for place, instruments, note in _everywhere(port, hosts, listen):
        found += instruments
        notes.append((place, note))
        if not as_json:
            said = "; ".join(f"{one.adapter or 'no adapter'}: {one.text}" for one in instruments)
            typer.echo(f"{place}: {' - '.join(part for part in (said, note) if part)}")
    _report(found, notes, node, as_json, only_hosts=bool(hosts) and port is None)


def _hosts(named: list[str] | None, file: Path | None) -> list[str]:
    hosts = list(named or [])
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot read the list of hosts {file}: {why}") from error
        hosts += [line.split("#")[0].strip() for line in lines]
    return [host for host in dict.fromkeys(hosts) if host]


def _everywhere(
    ports: list[str] | None, hosts: list[str], listen: bool
) -> Iterator[tuple[str, list[FoundInstrument], str]]:
    """Each place with what was found there and a note."""
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.probing.identification import SERIAL_QUERIES
    from netjoule_meters.probing.network import identify_host
    from netjoule_meters.probing.serial_and_usb import identify_serial, identify_usbtmc, serial_exchange
    from netjoule_meters.transports.ports_in_use import use_of
    from netjoule_meters.transports.serial_port import serial_port_names
    from netjoule_meters.transports.usbtmc import usbtmc_devices

    queries = [g for g in SERIAL_QUERIES if listen or g.question is not None]
    # A host that was named is what is asked for: then ports are looked at only when they are named too.
    all_ports = ports if ports is not None else [] if hosts else [*serial_port_names(), *usbtmc_devices()]
    for device in all_ports:
        if not Path(device).exists():
            yield device, [], "there is no such device"
            continue
        use = use_of(device)
        if not use.free:
            yield device, [], use.text()
            continue
        if "usbtmc" in Path(device).name:
            one, note = identify_usbtmc(device)
        else:
            one, note = identify_serial(device, serial_exchange(SystemClock()), queries)
        yield (
            device,
            [one] if one is not None else [],
            one.note if one is not None else f"{note}; {use.text()}",
        )
    for host in hosts:
        instruments, notes = identify_host(host, _pages(), _presets())
        yield host, instruments, "; ".join(notes)


def _pages() -> list[Page]:
    """Pages that networked sockets answer with their readings, from the presets."""
    from functools import partial

    from netjoule_meters.adapters.plugs_and_pdus.networked_socket import recognise
    from netjoule_meters.adapters.plugs_and_pdus.presets import all_presets

    return [
        (name, preset.first_request, partial(recognise, name))
        for name, preset in all_presets().items()
        if "http" in preset.interfaces
    ]


def _presets() -> dict[str, list[str]]:
    """Presets by interface, of the interfaces that have no pages."""
    from netjoule_meters.adapters.plugs_and_pdus.presets import all_presets

    found: dict[str, list[str]] = {}
    for name, preset in all_presets().items():
        for interface in set(preset.interfaces) - {"http"}:
            found.setdefault(interface, []).append(name)
    return found


def _report(
    found: list[FoundInstrument], notes: list[tuple[str, str]], node: str, as_json: bool, *, only_hosts: bool
) -> None:
    from netjoule_meters.probing.topology_snippet import topology_snippet

    snippet = topology_snippet(found, node)
    if as_json:
        places = [{"place": place, "note": note} for place, note in notes]
        typer.echo(
            json.dumps({"found": [asdict(one) for one in found], "places": places, "snippet": snippet})
        )
    elif snippet:
        typer.echo(f"\nPaste into the topology and check with 'netjoule plan':\n\n{snippet}", nl=False)
    if not notes:
        raise MeterUnavailable(
            "no serial port and no USB-TMC device on this host: plug one in or name a --host"
        )
    if not found:
        raise MeterUnavailable(_ADVICE_HOSTS if only_hosts else _ADVICE_PORTS)


def _confirm(name: str, ports: list[str] | None, setting: list[str] | None, as_json: bool) -> None:
    """Open one meter with its adapter and say which provisional statements it confirms."""
    from netjoule_meters.adapters import adapter
    from netjoule_meters.config import MeterConfig
    from netjoule_meters.meter_factory import open_meter
    from netjoule_meters.ranging import widest

    if ports is None or len(ports) != 1:
        raise UsageError("--adapter goes with exactly one --port")
    kind = adapter(name)
    meter = open_meter(widest(MeterConfig("probed", "host", name, ports[0], settings_of(setting))))
    try:
        assert meter.identification is not None
        text = meter.identification.text
        confirm: Any = getattr(meter, "confirm", None)
        seen = [] if confirm is None else list(confirm(_CHECKED_UPDATES))
    except DialogueError as error:
        raise NoAnswer(f"the {meter.model} on {ports[0]} stopped answering: {error}; try again") from error
    finally:
        meter.close()
    told = {one.statement for one in seen}
    rest = [statement for statement in kind.provisional if statement not in told]
    if as_json:
        checked = [{"statement": one.statement, "holds": one.holds, "seen": one.seen} for one in seen]
        typer.echo(json.dumps({"identification": text, "checked": checked, "unchecked": rest}))
        return
    typer.echo(f"{ports[0]}: {name}: {text}")
    for one in seen:
        typer.echo(f"  {_WORDS[one.holds]:<9}  {one.statement} ({one.seen})")
    for statement in rest:
        typer.echo(f"  {_WORDS[None]:<9}  {statement}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for nmcli, networkctl, udevadm, systemctl, chronyc, dhcpcd and ifupdown by its name.

What was asked goes to `calls` in the folder NETJOULE_TEST_STATE; the files in its `units` are units that run.
A unit whose file a role wrote runs the programs that are named there.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

STATE = Path(os.environ["NETJOULE_TEST_STATE"])
UNITS = STATE / "units"
UNIT_FILES = Path("/run/systemd/system")
NETWORKMANAGER_CONF = Path("/run/NetworkManager/conf.d/netjoule.conf")
NETWORKD_CONF = Path("/run/systemd/network/05-netjoule.network")
TRACKING = (
    "C0000203,192.0.2.3,11,1790000000.1,0.000004,1e-06,2e-06,-12.3,0.001,0.05,0.0002,0.0001,4.0,Normal\n"
)


def nmcli(words: list[str]) -> str:
    """Answer as a NetworkManager with the access point's radio; it reads its configuration when told to."""
    unmanaged = STATE / "networkmanager.unmanaged"
    match words:
        case ["general", "reload", "conf"]:
            unmanaged.write_text(NETWORKMANAGER_CONF.read_text() if NETWORKMANAGER_CONF.exists() else "")
            return ""
        case ["--terse", "--fields", "DEVICE,STATE", "device"]:
            kept = unmanaged.read_text() if unmanaged.exists() else ""
            state = "unmanaged" if "interface-name:wlan0" in kept else "disconnected"
            return f"wlan0:{state}\neth0:connected (externally)\n"
    sys.exit(f"the stand-in for nmcli does not know {words}")


def networkctl(words: list[str]) -> str:
    """Answer as a systemd-networkd that reads its configuration when told to; the radio was its own."""
    unmanaged = STATE / "networkd.unmanaged"
    if words == ["reload"]:
        unmanaged.write_text(NETWORKD_CONF.read_text() if NETWORKD_CONF.exists() else "")
        return ""
    kept = unmanaged.read_text() if unmanaged.exists() else ""
    setup = "unmanaged" if "wlan0" in kept else "configuring"
    return f"  1 lo    loopback carrier  unmanaged\n  2 wlan0 wlan     no-carrier {setup}\n"


def start(unit: str) -> None:
    """Start a unit; its main program's number is in the file that says that it runs."""
    file, main_number = UNIT_FILES / unit, ""
    for line in file.read_text().splitlines() if file.exists() else []:
        setting, _, command = line.partition("=")
        words = shlex.split(command.removeprefix("-"))
        nothing = subprocess.DEVNULL
        if setting == "ExecStart":
            main = subprocess.Popen(  # it outlives this program
                words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
            main_number = str(main.pid)
        elif setting == "ExecStartPost":
            subprocess.run(words, check=False, stdin=nothing, stdout=nothing, stderr=nothing)
    (UNITS / unit).write_text(main_number)


def stop(unit: str) -> None:
    """Stop a unit; returns when its main program has ended."""
    running = UNITS / unit
    if running.exists() and (number := running.read_text()):
        main = os.pidfd_open(int(number))
        signal.pidfd_send_signal(main, signal.SIGTERM)
        select.select([main], [], [])
    running.unlink(missing_ok=True)


def systemctl(words: list[str]) -> str:
    """Answer as systemctl does, for units that are all enabled; `not-installed` names what is not there."""
    missing = STATE / "not-installed"
    match words:
        case ["list-units", *rest]:
            wanted = [word for word in rest if not word.startswith("--")]
            return "".join(
                f"{unit} loaded active running Of the test\n" for unit in wanted if (UNITS / unit).exists()
            )
        case ["is-active", unit]:
            return "active\n" if (UNITS / unit).exists() else "inactive\n"
        case ["is-enabled", *_]:
            return "enabled\n"
        case ["show", unit] if missing.exists() and unit in missing.read_text().split():
            return f"Id={unit}\nLoadState=not-found\nActiveState=inactive\n"
        case ["show", unit]:
            state = "active" if (UNITS / unit).exists() else "inactive"
            return f"Id={unit}\nLoadState=loaded\nActiveState={state}\n"
        case ["show", "--property=ExecStart", "--value", unit]:
            file = STATE / f"{unit}.exec"
            return (
                file.read_text()
                if file.exists()
                else "{ path=/sbin/wpa_supplicant ; argv[]=wpa_supplicant -u }\n"
            )
        case ["stop", *units]:
            for unit in units:
                stop(unit)
        case ["start" | "restart", *units]:
            for unit in units:
                stop(unit)
                start(unit)
        case ["daemon-reload" | "--version", *_]:
            pass
        case _:
            sys.exit(f"the stand-in for systemctl does not know {words}")
    return ""


def chronyc(words: list[str]) -> str:
    """Answer as chronyc beside a chronyd that follows its server."""
    if not (UNITS / "chrony.service").exists():
        sys.exit("506 Cannot talk to daemon")
    return TRACKING if "tracking" in words else ""


def ifupdown(name: str, words: list[str]) -> None:
    """Be ifquery --state, ifdown and ifup, with the test's cable up before."""
    down = STATE / "ifupdown.down"
    match name:
        case "ifquery":
            sys.exit(1 if words[-1] != "eth1" or down.exists() else 0)
        case "ifdown":
            down.touch()
        case "ifup":
            down.unlink()


def others(name: str, words: list[str]) -> None:
    """Be dhcpcd, which has eth1 only, and pgrep, which finds it and the keeper of a session."""
    if (name, words) == ("dhcpcd", ["--exit", "wlan0"]):
        sys.exit(1)
    if name == "pgrep" and words != ["-x", "dhcpcd"] and not words[-1].endswith("/session-now"):
        sys.exit(1)


def main() -> None:
    """Be the program of this name."""
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (STATE / "calls").open("a") as calls:
        calls.write(" ".join([name, *words]) + "\n")
    answers = {"nmcli": nmcli, "networkctl": networkctl, "systemctl": systemctl, "chronyc": chronyc}
    if name.startswith("if"):
        ifupdown(name, words)
    others(name, words)
    if name in answers:
        sys.stdout.write(answers[name](words))


main()

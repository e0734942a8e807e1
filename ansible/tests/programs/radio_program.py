#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for iw, hostapd, hostapd_cli, wpa_supplicant and wpa_cli where no radio exists, by its name.

Answers are recorded ones (testbed/radio/tests/data); what is set is kept in the folder NETJOULE_TEST_STATE,
and every call's arguments go to `calls` there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType

STATE = Path(os.environ["NETJOULE_TEST_STATE"])
DATA = Path(os.environ["NETJOULE_TEST_DATA"])
NETWORK = DATA / "state" / os.environ["NETJOULE_TEST_NETWORK"]


def kept(name: str, default: str) -> str:
    """What was set before."""
    file = STATE / name
    return file.read_text() if file.exists() else default


def interface_info(interface: str) -> str:
    """The recorded interface, with the power set last; idle while its daemon does not run."""
    if interface not in ("wlan0", "wlan1"):
        sys.exit("command failed: No such device (-19)")
    side, daemon = ("ap", "hostapd") if interface == "wlan0" else ("client", "wpa_supplicant")
    text = (NETWORK / f"iw_dev_{side}.txt").read_text()
    if not (STATE / f"{daemon}.running").exists():
        text = re.sub(r"\tchannel .*\n|\tssid .*\n", "", text).replace("type AP", "type managed")
    return re.sub(r"txpower .*", f"txpower {float(kept(f'power-{interface}', '2000')) / 100:.2f} dBm", text)


def iw(words: list[str]) -> str:
    """Answer as iw does."""
    country = kept("country", "00")
    match words:
        case ["reg", "get"]:
            return (DATA / f"iw_reg_{'us' if country == 'US' else 'world'}.txt").read_text()
        case ["reg", "set", wanted]:
            (STATE / "country").write_text(wanted)
        case ["phy"]:
            world = (DATA / "iw_phy_hwsim_world.txt").read_text()
            both = world + world.replace("Wiphy phy0\n\twiphy index: 0", "Wiphy phy1\n\twiphy index: 1")
            return (DATA / "iw_phy_hwsim_us.txt").read_text() if country == "US" else both
        case ["--version"]:
            return "iw version 5.19\n"
        case ["dev", _, "station", "dump"]:
            pass  # nobody is there
        case ["dev", _, "link"]:
            return "Not connected.\n"
        case ["dev", interface, "info"]:
            return interface_info(interface)
        case ["dev", interface, "set", "txpower", "fixed", power]:
            (STATE / f"power-{interface}").write_text(power)
        case ["dev", interface, "get", "power_save"]:
            return f"Power save: {kept(f'power_save-{interface}', 'on')}\n"
        case ["dev", interface, "set", "power_save", wanted]:
            (STATE / f"power_save-{interface}").write_text(wanted)
        case ["dev", interface, "set", "bitrates", *rates]:
            (STATE / f"bitrates-{interface}").write_text(" ".join(rates))
        case ["dev", interface, "set", "txpower", "auto"]:
            (STATE / f"power-{interface}").unlink(missing_ok=True)
        case _:
            sys.exit(f"the stand-in for iw does not know {words}")
    return ""


def daemon(name: str, words: list[str]) -> None:
    """Run until SIGTERM; with -B in the background and with a PID file, as hostapd and wpa_supplicant do."""
    (STATE / f"{name}.log-of-starts").open("a").write("started\n")
    running = STATE / f"{name}.running"
    pid_file = Path(words[words.index("-P") + 1]) if "-P" in words else None

    def end(_signal: int, _frame: FrameType | None) -> None:
        running.unlink(missing_ok=True)
        if pid_file is not None:
            pid_file.unlink(missing_ok=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    ready, tell = os.pipe()
    if "-B" in words:
        if os.fork():
            os.close(tell)
            os.read(ready, 1)  # the caller may rely on the PID file, as with the real ones
            return
        os.setsid()
    if pid_file is not None:
        pid_file.write_text(f"{os.getpid()}\n")
    running.write_text(str(os.getpid()))
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    os.write(tell, b"!")
    while True:
        signal.pause()


def control(name: str, words: list[str]) -> str:
    """Answer as hostapd_cli and wpa_cli do: the recorded status of a running daemon."""
    running = STATE / f"{name}.running"
    if not running.exists():
        sys.exit(f"Failed to connect to {name} - wpa_ctrl_open: No such file or directory")
    match words[-1]:
        case "ping":
            return "PONG\n"
        case "status":
            return (NETWORK / ("hostapd_status.txt" if name == "hostapd" else "wpa_status.txt")).read_text()
        case "terminate":
            os.kill(int(running.read_text()), signal.SIGTERM)
            return "OK\n"
    sys.exit(f"the stand-in for {name} does not know {words}")


def main() -> None:
    """Be the program of this name."""
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (STATE / "calls").open("a") as calls:
        calls.write(" ".join([name, *words]) + "\n")
    match name:
        case "iw":
            sys.stdout.write(iw(words))
        case "hostapd" | "wpa_supplicant":
            daemon(name, words)
        case "hostapd_cli" | "wpa_cli":
            sys.stdout.write(control("hostapd" if name == "hostapd_cli" else "wpa_supplicant", words))


main()

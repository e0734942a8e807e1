# SPDX-License-Identifier: Apache-2.0
"""hostapd and wpa_supplicant read rendered files themselves: before they open the driver, without a radio."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

NO_RADIO = "nj-no-radio"
_FAULTS = {
    "hostapd": r"(?m)^Line \d+|errors? found in configuration file|Failed to set up interface",
    "wpa_supplicant": r"(?m)^Line \d+|Failed to read or parse configuration",
}


def said_of(program: str, configuration: str, folder: Path) -> str:
    """What a program says when it is started with a configuration on an interface that does not exist."""
    file = folder / f"{program}.conf"
    file.write_text(configuration)
    command = [_found(program)]
    command += [str(file)] if program == "hostapd" else ["-D", "nl80211", "-i", NO_RADIO, "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


def assert_read(program: str, configuration: str, folder: Path) -> None:
    """The program read the whole file without a fault, and came as far as the driver."""
    # A bridge would be asked for before the driver.
    said = said_of(program, re.sub(r"(?m)^bridge=.*\n", "", configuration), folder)
    assert not re.search(_FAULTS[program], said), said
    assert "nl80211" in said, f"{program} did not come as far as the driver: {said}"


def _found(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(
            f"NOT CHECKED: {program} is missing here, so nothing has read its rendered files; install it"
        )
    return found

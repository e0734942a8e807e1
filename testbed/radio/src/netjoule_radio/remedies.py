# SPDX-License-Identifier: Apache-2.0
"""Known complaints of hostapd, wpa_supplicant, iw and the kernel -> what to do about them."""

from __future__ import annotations

import re

_REMEDIES = (
    (
        r"not allowed for AP mode, flags: .*NO-IR",
        "the regulatory domain forbids to send there first: set the right country, install wireless-regdb "
        "(signed database), see `iw reg get`, or choose another channel",
    ),
    (
        r"RADAR|DFS.*(start|fail)",
        "the channel has radar duty: choose 36-48 or 149-161, or set dfs: true and wait",
    ),
    (
        r"does not support configured channel|Could not select hw_mode and channel",
        "the radio does not have this channel in this country: see the frequencies that `iw phy` lists",
    ),
    (
        r"does not support configured (HT|VHT) capab|Configured VHT capability",
        "a capability was announced that the radio lacks: provision again, so that they are read anew",
    ),
    (
        r"unknown configuration item",
        "this program lacks an option of its configuration: install Debian's 2.10 or newer",
    ),
    (
        r"(?i)rf-?kill.*hard",
        "the radio is switched off by hardware: use its switch or the firmware's setting",
    ),
    (r"(?i)rf-?kill(?!.*hard)", "the radio is blocked by software: `rfkill unblock wifi`"),
    (
        # SAE has no reason of its own for a wrong password: the peer's commit is rejected.
        r"WRONG_KEY|pre-shared key may be incorrect|PSK-MISMATCH"
        r"|AUTH-REJECT \S+ auth_type=3 .*status_code=1\b",
        "the passphrase differs from the access point's: both must come from the same reference",
    ),
    (
        r"Could not configure driver|Device or resource busy|Match already configured",
        "something else uses the radio: keep NetworkManager, iwd and other wpa_supplicants off it",
    ),
    (
        r"No such device|Could not read interface",
        "there is no such interface: correct radio.interface (`iw dev` lists them)",
    ),
    (
        r"Operation not supported|\(-95\)",
        "the driver cannot do this: use rates: automatic, or another radio",
    ),
    (r"ctrl_iface exists and seems to be in use", "another one already runs on this interface: end it first"),
    (
        r"'nl80211' generic netlink not found|nl80211 not found",
        "the kernel offers no nl80211 here: load the radio's driver",
    ),
)


def remedies(log: str) -> list[str]:
    """Remedies for what a log complains of, each once, in the order above; empty when nothing is known."""
    return [remedy for pattern, remedy in _REMEDIES if re.search(pattern, log)]

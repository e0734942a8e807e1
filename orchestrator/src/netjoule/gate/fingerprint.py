# SPDX-License-Identifier: Apache-2.0
"""What a rig must keep for its gates, and for two campaigns, to be held against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule.store.fingerprint import host_fingerprint


def fingerprint(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """Kernel, CPU and meters with their ranges that a campaign.json names; `{}` gives those of this host."""
    host = campaign.get("host") or host_fingerprint()
    hosts = campaign["topology"]["hosts"] if "topology" in campaign else {}
    client: Mapping[str, Any] = next(
        (one for one in campaign.get("lab_hosts", ()) if "client" in hosts[one["host"]]["roles"]), {}
    )
    meters = campaign.get("meters", ())
    sources = {passport["power_source"] for passport in meters}
    return {
        "fingerprint": {
            "kernel": (client or host)["kernel"],
            "cpu_model": (client or host).get("cpu_model", "unknown"),
            "meters": [_meter_words(passport) for passport in meters],
        },
        "power_source": "measured" if sources == {"measured"} else "modelled",
    }


def _meter_words(passport: Mapping[str, Any]) -> str:
    ranges = passport.get("range") or {}
    text = ", ".join(
        f"{value:g} {name.rpartition('_')[2].upper()}" for name, value in ranges.items() if value
    )
    made = " ".join(str(passport[name]) for name in ("make", "model") if passport.get(name))
    return f"{passport['meter_id']}: {made}" + (f", {text}" if text else "")

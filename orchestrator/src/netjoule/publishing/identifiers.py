# SPDX-License-Identifier: Apache-2.0
"""What tells whose bench it was: kinds of such values, the fields that hold them, names that name nobody."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.topology.hosts import ROLES
from netjoule_meters.adapters import adapter_names


class Kind(StrEnum):
    """Kinds that are masked unless they are asked for, by their names on the command line."""

    SSID = "ssid"
    MAC = "mac"
    IP = "ip"
    HOST = "host"
    USER = "user"
    SERIAL = "serial"


FIELDS = {
    **dict.fromkeys(("ssid", "essid"), Kind.SSID),
    **dict.fromkeys(
        ("host", "hosts", "hostname", "node", "client", "server", "control_address", "address", "fqdn"),
        Kind.HOST,
    ),
    "labgrid": Kind.HOST,
    **dict.fromkeys(("user", "username", "login"), Kind.USER),
    **dict.fromkeys(("serial", "serial_number"), Kind.SERIAL),
}
"""Fields and columns, in whatever document, whose value is a name of this kind.

Addresses need none: they are known by their form wherever they stand.
"""

_RUN = r"b\d{2,}m\d{3,}-[a-z-]+-a\d+"
_CHOICES = {
    name: "|".join(map(re.escape, entry["value"]["enum"]))
    for name, entry in contracts.factors().items()
    if name in FIELDS and "enum" in entry["value"]
}
"""Of factors that are called like roles of hosts."""
_DAY = r"\d{4}-\d\d-\d\d"
_TIME = _DAY + r"T\d\d:\d\d:\d\d(?:\.\d+)?Z"
KEPT = {
    name: re.compile(pattern)
    for name, pattern in {
        "run_id": _RUN,
        "runs": _RUN,
        "flow_id": _RUN + "|[0-9a-f-]{8,64}",
        "boot_id": "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "event": "[a-z0-9_]+",
        "sha256": "[0-9a-f]{64}",
        "schedule_digest": "fnv1a64:[0-9a-f]{16}",
        "date": _DAY,
        "calibration_date": _DAY,
        "rig": r"rig\d+",
        "load": "|".join(contracts.loads()),
        **_CHOICES,
        "t_utc": _TIME,
        "created_utc": _TIME,
        "started_utc": _TIME,
        "ended_utc": _TIME,
    }.items()
}
"""Fields with a form of netjoule's own, by which files are joined: a value of that form is not masked."""

SECRET_FIELD = re.compile(
    r"pass(?:word|phrase|wd)|(?<![a-z])psk|secret|(?<!owner_)token|credential|community|(?:api|private)[_-]?key|"
    r"authori[sz]ation",
    re.IGNORECASE,
)
"""Names of fields whose value, unless it is a reference, is a secret."""

# What many machines, accounts and instruments are called as delivered.
_HOSTS = (
    "localhost localhost.localdomain ip6-localhost ip6-loopback unknown none emulated linux debian ubuntu "
    "raspberrypi fedora openwrt"
)
_USERS = "root nobody user users shared public pi debian ubuntu admin vagrant unknown"
_SERIALS = "0 none null unknown n/a emulated"
_NOBODY = {
    Kind.HOST: frozenset(_HOSTS.split()),
    Kind.USER: frozenset(_USERS.split()),
    Kind.SERIAL: frozenset(_SERIALS.split()),
}
_ROLE = re.compile(
    "(?:" + "|".join(role.replace("_", "[-_ ]?") for role in ROLES) + r"|ap|sta|station)[-_]?\d*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PROGRAMS = ("netjoule", "netjoule-traffic", "netjoule-link", "netjoule-meters", "netjoule-device")


def nobody(kind: Kind, text: str) -> bool:
    """Whether a name identifies nobody: empty, a role of the topology, or as machines come from the shop."""
    name = text.strip().casefold()
    return not name or name in _NOBODY.get(kind, ()) or (kind is Kind.HOST and bool(_ROLE.fullmatch(name)))


@cache
def own_words() -> frozenset[str]:
    """Words of netjoule's own files in lower case: fields, their choices, codes, transports, adapters.

    A name that is one of them cannot be masked in running text, where it mostly means something else, and
    found there it tells nothing.
    """
    root = contracts.root()
    paths = [*root.glob("schemas/*.json"), *root.glob("tables/*.json"), root / "transports.json"]
    words = {*_PROGRAMS, *adapter_names(), *device_models()}
    for path in [*paths, root / "reasons.json"]:
        words.update(_words(json.loads(path.read_text(encoding="utf-8"))))
    parts = {part for word in words for part in re.split(r"[-_]", word)}
    return frozenset(word.casefold() for word in words | parts if word)


@cache
def own_prose() -> str:
    """What netjoule itself writes into bundles, in lower case: columns' descriptions, sentences."""
    paths = [*contracts.root().glob("tables/*.json"), Path(__file__).with_name("papers.py")]
    return "\n".join(path.read_text(encoding="utf-8").casefold() for path in paths)


@cache
def device_models() -> frozenset[str]:
    """Names of the shipped device models; empty where netjoule-device is not installed."""
    found = importlib.util.find_spec("netjoule_devices")  # its data files alone: the package is a program
    folders = found.submodule_search_locations if found is not None else None
    return frozenset(path.stem for folder in folders or () for path in Path(folder, "models").glob("*.yaml"))


def _words(value: Any) -> Iterator[str]:
    """Names of fields and texts of one word, of a contract."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _words(name)
            yield from _words(part)
    elif isinstance(value, list):
        for part in value:
            yield from _words(part)
    elif isinstance(value, str) and _WORD.fullmatch(value):
        yield value

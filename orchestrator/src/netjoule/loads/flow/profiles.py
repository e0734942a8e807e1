# SPDX-License-Identifier: Apache-2.0
"""Profiles of workloads: what is sent instead of a constant rate. Contract: profile.schema.json.

What a profile sends when is computed by netjoule-traffic alone. Here a profile is found, held to its
contract, and compared with what the workload says of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netjoule.core import programs, yamlfile
from netjoule.core.errors import HostLacks, InvalidData, UsageError, file_errors
from netjoule.core.yamlfile import Document
from netjoule_contracts import reading

_SHAPES = ("messages", "talk_spurts", "video_chunks", "trace")
_FOLDER = "profiles"
_PLACE = ("factors", "profile")
_MOST_BYTES = 4 << 20  # as netjoule-traffic takes


def embed(document: Document, folder: Path | None) -> None:
    """Replace the name of a profile by the profile itself, so that a campaign needs no other file.

    Args:
        document: an effective workload.
        folder: where its file is. A name is a path from there, ``profiles/NAME.json`` there or among ours.

    Raises:
        UsageError: when there is no such profile, or it is no JSON.
    """
    values = document.value["factors"].get("profile", [])
    document.value["factors"] |= (
        {"profile": [_found(document, one, folder) for one in values]} if values else {}
    )


def _found(document: Document, named: Any, folder: Path | None) -> Any:
    """The profile of a name; what is no name stays."""
    if not isinstance(named, str):
        return named
    beside = [] if folder is None else [folder]
    library = [*(place / _FOLDER for place in beside), *_shipped()]
    places = [*(place / named for place in beside), *(place / f"{named}.json" for place in library)]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        known = ", ".join(sorted({p.stem for place in library for p in place.glob("*.json")})) or "none"
        raise document.refuse(_PLACE, f"there is no profile {named!r}", f"name a file, or one of: {known}")
    return _read(path)


def _shipped() -> list[Path]:
    """The folder of the shipped profiles, where there is one."""
    try:
        return [programs.shipped("workloads") / "flow" / _FOLDER]
    except HostLacks:
        return []


def _read(path: Path) -> dict[str, Any]:
    try:
        with file_errors("read", path):
            profile = reading.document(path, _MOST_BYTES)
    except InvalidData as error:
        raise UsageError(error.what, where=error.where) from error
    if not isinstance(profile, dict):
        raise UsageError("not a profile: a JSON object is wanted", where=str(path))
    return profile


def check(document: Document) -> None:
    """Hold the profile of a workload to its contract, and sizes and rates of the workload to the profile.

    Raises:
        UsageError: naming the field that does not fit.
    """
    factors = document.value["factors"]
    if "profile" not in factors:
        return
    if len(factors["profile"]) != 1:
        raise document.refuse(_PLACE, "each profile has its own size and rate", "name one in a workload")
    (profile,) = factors["profile"]
    for place, message in yamlfile.defects(profile, "profile"):
        raise document.refuse((*_PLACE, 0, *place), message)
    if sum(name in profile for name in _SHAPES) != 1:
        raise document.refuse(_PLACE, f"exactly one of {', '.join(_SHAPES)} says what is sent")
    try:
        greatest = greatest_message_bytes(profile)
    except (KeyError, ValueError, IndexError) as error:
        raise document.refuse(_PLACE, f"its greatest message cannot be determined ({error})") from error
    if factors["payload_bytes"] != [greatest]:
        raise document.refuse(
            ("factors", "payload_bytes"),
            f"the greatest message of profile {profile['name']} has {greatest} bytes",
            f"write payload_bytes: [{greatest}]",
        )
    if len(factors["offered_rate_mbps"]) != 1:
        what = f"profile {profile['name']} has one mean rate"
        raise document.refuse(("factors", "offered_rate_mbps"), what, "name that one alone")


def shape(profile: Mapping[str, Any]) -> str:
    """What kind of profile it is, as in its document."""
    return next(name for name in _SHAPES if name in profile)


def words(profile: Mapping[str, Any]) -> str:
    """A profile in words: ``talk (talk_spurts), messages of 172 bytes at most``."""
    return (
        f"{profile['name']} ({shape(profile)}), messages of {greatest_message_bytes(profile)} bytes at most"
    )


def greatest_message_bytes(profile: Mapping[str, Any]) -> int:
    """Greatest message in bytes that a schedule of the profile can hold.

    Args:
        profile: a document that fits its contract.

    Raises:
        KeyError, ValueError, IndexError: for a law or a trace whose parameters are missing.
    """
    kind = shape(profile)
    given = profile[kind]
    if kind == "trace":
        return max(int(line.split(",")[1]) for line in given["csv"].split()[1:])
    if kind == "video_chunks":
        return max(16, min(_whole(given["message_bytes"]), _greatest(given["chunk_bytes"])))
    return _greatest(given["size_bytes"])


def _greatest(law: Any) -> int:
    """Greatest value of a distribution of sizes."""
    if not isinstance(law, dict):
        return _whole(law)
    if law["distribution"] == "constant":
        return _whole(law["value"])
    if law["distribution"] == "empirical":
        weights = law.get("weights", [1] * len(law["values"]))
        return max(_whole(value) for value, weight in zip(law["values"], weights, strict=True) if weight)
    return _whole(law["max"])


def _whole(size_bytes: float) -> int:
    return math.floor(size_bytes + 0.5)

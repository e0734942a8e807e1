# SPDX-License-Identifier: Apache-2.0
"""Presets of networked sockets: which settings one kind of device needs. A preset is data.

Those that come with the package are in ``socket_presets``; one of your own is a YAML file of the same form,
named by its path. Settings given beside a preset win over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from netjoule_meters.errors import UsageError

_HOME = "socket_presets"
_FIELDS = {"make", "model", "interfaces", "source", "settings", "variants", "provisional"}


@dataclass(frozen=True, slots=True)
class Preset:
    """One kind of device.

    Attributes:
        interfaces: how it is connected; empty: however the resource says.
        source: where the mapping comes from.
        settings: values of adapter settings.
        variants: settings of other models or firmwares of this kind, tried in turn at the first contact.
        provisional: statements that no document at hand confirms.
    """

    make: str = "unknown"
    model: str = "networked socket"
    interfaces: tuple[str, ...] = ()
    source: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()
    provisional: tuple[str, ...] = ()

    @property
    def first_request(self) -> str:
        """What is asked for outlet 1; empty where the interface has no request of its own."""
        return str(self.settings.get("request") or "").replace("{outlet}", "1").replace("{index}", "0")


def all_presets() -> dict[str, Preset]:
    """All presets that come with the package, by name."""
    return {name: load_preset(name) for name in preset_names()}


def preset_names() -> list[str]:
    """Presets that come with the package."""
    files = resources.files(__package__).joinpath(_HOME).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def load_preset(name: str) -> Preset:
    """The preset called ``name``, or in the YAML file of that path.

    Raises:
        UsageError: when there is none, or it is not one.
    """
    names = preset_names()
    if name in names:
        text = resources.files(__package__).joinpath(_HOME, f"{name}.yaml").read_text(encoding="utf-8")
        return parse_preset(text, f"preset {name}")
    if not name.endswith((".yaml", ".yml")):
        raise UsageError(f"no preset '{name}': there are {', '.join(names)}, or name a YAML file of your own")
    try:
        text = Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"cannot read the preset {name}: {reason}") from error
    return parse_preset(text, name)


def parse_preset(text: str, where: str) -> Preset:
    """The preset in a YAML text; ``where`` names it in messages.

    Raises:
        UsageError: when it is not of the form of a preset.
    """
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or not isinstance(document.get("settings"), dict):
        raise UsageError(f"{where} is no preset: it is a mapping with 'settings'")
    unknown = sorted(map(str, set(document) - _FIELDS))
    if unknown:
        raise UsageError(f"{where}: unknown field '{unknown[0]}'; a preset has {', '.join(sorted(_FIELDS))}")
    for name, kind in (("interfaces", str), ("provisional", str), ("variants", dict)):
        entries = document.get(name) or []
        if not isinstance(entries, list) or not all(isinstance(entry, kind) for entry in entries):
            raise UsageError(f"{where}: {name} is a list of {'texts' if kind is str else 'mappings'}")
    return Preset(
        make=str(document.get("make", "unknown")),
        model=str(document.get("model", "networked socket")),
        interfaces=tuple(document.get("interfaces") or ()),
        source=None if document.get("source") is None else str(document["source"]),
        settings=document["settings"],
        variants=tuple(document.get("variants") or ()),
        provisional=tuple(document.get("provisional") or ()),
    )

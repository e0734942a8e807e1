# SPDX-License-Identifier: Apache-2.0
"""Networked sockets that are polled: HTTP with JSON, CSV or text, SNMP, Modbus/TCP, Kasa, text over TCP.

What such a device answers is configured, not built in: a preset for those whose interface is documented
(``socket_presets``), settings for the rest. Their readings are spot values or means over an unknown window,
and makers seldom state an accuracy: it stays unknown unless the settings say it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, ClassVar

from netjoule_meters.adapters.base import Quantity, Semantics
from netjoule_meters.adapters.plugs_and_pdus.mapping import (
    FORMATS_OF,
    MAPPING_SETTINGS,
    SocketMapping,
    identity_request,
    mapping_of,
    placed,
)
from netjoule_meters.adapters.plugs_and_pdus.presets import Preset, load_preset
from netjoule_meters.adapters.plugs_and_pdus.response_values import ListTooShort, NotThere, finder
from netjoule_meters.adapters.polled import PolledMeter, Sample
from netjoule_meters.adapters.provisional_checks import Finding, sample_updates
from netjoule_meters.clock import Clock
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import GarbageReply, ReplyTimeout, UsageError, WrongInstrument
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange, Passport
from netjoule_meters.settings import Setting, resolve
from netjoule_meters.transports import interface_of
from netjoule_meters.transports.base import Source

_IDENTITY_PATHS = ("model_path", "serial_path", "firmware_path")


def _settings(update_interval_s: float, preset_doc: str) -> tuple[Setting, ...]:
    return (
        Setting("preset", preset_doc, None),
        Setting("outlet", "Which outlet, counted from 1; {outlet} and {index} (from 0) stand for it.", 1),
        Setting("update_interval_s", "How often it is asked; at best as it updates.", update_interval_s),
        Setting("answer_timeout_s", "Time for an answer; for text, until the pattern matches.", 2.0),
        *MAPPING_SETTINGS,
        Setting(
            "semantics",
            "What a reading is.",
            Semantics.INSTANTANEOUS.value,
            tuple(kind.value for kind in Semantics),
        ),
        Setting(
            "quantity", "Which power it is.", Quantity.ACTIVE.value, tuple(kind.value for kind in Quantity)
        ),
        Setting("counter_modulus_j", "Where the energy counter starts again from 0; None: nowhere.", None),
        Setting("stale_after_updates", "So many answers without any change are stale; None: no rule.", None),
        Setting("lag_s", "Lag of this device; None stands for 0.", None),
        Setting("resolution_w", "Least step of the power it shows, where known.", None),
        Setting("range_w", "Largest power that it measures, where known.", None),
        Setting("accuracy_reading_percent", "Limit of error, percent of the reading; None: unknown.", None),
        Setting("accuracy_w", "Limit of error to be added in watts; wants range_w.", 0.0),
    )


class NetworkedSocket(PolledMeter):
    """A networked socket whose answers a mapping describes."""

    name: ClassVar[str] = "socket"
    make: ClassVar[str] = "configured"
    model: ClassVar[str] = "networked socket"
    interfaces: ClassVar[tuple[str, ...]] = ("http", "snmp", "modbus", "kasa", "text")
    semantics: ClassVar[Semantics] = Semantics.INSTANTANEOUS
    advice_no_answer: ClassVar[str] = (
        "check the address, that the interface is switched on in the device, and the preset or mapping"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = _settings(
        1.0, "Kind of device (netio, gude, shelly1, ...) or a YAML file of your own; None: settings only."
    )
    own_presets_only: ClassVar[bool] = False

    def __init__(
        self,
        transport: Source,
        settings: Mapping[str, Any],
        *,
        clock: Clock,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.preset = self._preset(settings.get("preset"))
        super().__init__(transport, {**self.preset.settings, **settings}, clock=clock, notify=notify)
        self._given = frozenset(settings)
        variants = [{**self.settings, **self._not_given(variant)} for variant in self.preset.variants]
        self._mappings = [mapping_of(candidate) for candidate in (self.settings, *variants)]
        self._mapping = self._mappings[0]
        self._in_trouble = False
        if self.settings["accuracy_w"] and self.settings["range_w"] is None:
            raise UsageError(f"{self.name}: accuracy_w wants range_w, the largest power the device measures")

    @classmethod
    def _preset(cls, name: object) -> Preset:
        if name is None:
            return Preset()
        if cls.own_presets_only and not str(name).endswith((".yaml", ".yml")):
            raise UsageError(
                f"{cls.name} has no preset '{name}': no document of its interface is public. Name a YAML "
                "file that you wrote for your device, or set power_path and the rest"
            )
        return load_preset(str(name))

    def _not_given(self, variant: Mapping[str, Any]) -> dict[str, Any]:
        """What a variant says, but for what a person has set."""
        unknown = sorted(set(variant) - set(self.settings))
        if unknown:
            raise UsageError(f"{self.name}: unknown setting '{unknown[0]}' in a variant of the preset")
        return {name: value for name, value in variant.items() if name not in self._given}

    # -- what it is ------------------------------------------------------------------------------------

    @property
    def measuring_range(self) -> MeasuringRange:
        """The largest power, if settings tell it."""
        range_w = self.settings["range_w"]
        return MeasuringRange(None, None, None if range_w is None else float(range_w))

    @property
    def counter_modulus_j(self) -> float | None:
        """As set."""
        modulus_j = self.settings["counter_modulus_j"]
        return None if modulus_j is None else float(modulus_j)

    @property
    def mapping_source(self) -> str | None:
        """The preset and its source, and what settings changed in it."""
        own = self.settings["mapping_source"]
        if not self.preset.settings:
            return str(own or "configuration, without a source")
        mapped = {setting.name for setting in MAPPING_SETTINGS} & set(self.preset.settings) & self._given
        changed = f"; changed by settings: {', '.join(sorted(mapped))}" if mapped else ""
        kind = f"preset {self.settings['preset']}: {self.preset.source or 'without a source'}"
        return f"{kind}{changed}{f'; {own}' if own else ''}"

    @property
    def resolution(self) -> float | None:
        """As set, or as the preset knows; a counter's step is not stated."""
        step_w = self.settings["resolution_w"]
        return None if step_w is None or self._mapping.counts_energy else float(step_w)

    @property
    def stale_after_updates(self) -> int | None:
        """As set."""
        updates = self.settings["stale_after_updates"]
        return None if updates is None else int(updates)

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """What settings say, since makers of sockets state nothing for the presets here."""
        percent, range_w = self.settings["accuracy_reading_percent"], self.settings["range_w"]
        if percent is None:
            return Accuracy(None, None, "unknown: no accuracy in the settings, and the preset states none")
        absolute_w = float(self.settings["accuracy_w"] or 0.0)
        of_range = absolute_w / float(range_w) if absolute_w else 0.0
        text = f"settings: {percent} % of the reading + {absolute_w:g} W, at any time since calibration"
        return Accuracy(float(percent) / 100, of_range, text)

    def passport(self, config: MeterConfig, today: date) -> Passport:
        """The passport with what the mapping says about semantics and quantity."""
        return replace(
            super().passport(config, today),
            semantics=self.settings["semantics"],
            quantity=self.settings["quantity"],
            provisional=(*self.provisional, *self.preset.provisional),
        )

    # -- life ------------------------------------------------------------------------------------------

    def open(self) -> Identification:
        """Check that mapping and resource fit, then connect."""
        self._check_mapping()
        return super().open()

    def _check_mapping(self) -> None:
        resource = self._transport.resource
        interface = interface_of(resource)
        allowed = self.preset.interfaces
        if allowed and interface not in allowed:
            raise UsageError(
                f"preset {self.settings['preset']} is spoken over {' or '.join(allowed)}, not at {resource}: "
                f"name the resource {allowed[0]}:..."
            )
        if not self._mapping.complete:
            wanted = "energy_path" if self._mapping.counts_energy else "power_path"
            raise UsageError(
                f"{self.name}: nothing says where the reading is in the answer of {resource}: "
                f"choose a preset or set {wanted}, format and request"
            )
        formats = FORMATS_OF.get(interface, ())
        if formats and self._mapping.form not in formats:
            raise UsageError(
                f"format {self._mapping.form} does not come over {interface}: set format to {formats[0]}"
            )

    def _identify(self) -> Identification:
        self._mapping = self._fitting_mapping()
        found = self._identity()
        model, serial, firmware = (found.get(name) for name in _IDENTITY_PATHS)
        told = " ".join(filter(None, (model, serial, firmware)))
        text = told or f"tells no identity ({self.preset.make} {self.preset.model})"
        return Identification(text, self.preset.make, model or self.preset.model, serial, firmware)

    def _fitting_mapping(self) -> SocketMapping:
        """The first of the preset's variants that has all its values in the answer."""
        misfits: list[NotThere] = []
        for mapping in self._mappings:
            try:
                mapping.sample(self._ask(mapping.request))
            except NotThere as error:
                misfits.append(error)
            else:
                return mapping
        outlet = int(self.settings["outlet"])
        for misfit in misfits:
            if isinstance(misfit, ListTooShort) and misfit.entries and misfit.wanted == outlet - 1:
                raise self._no_outlet(outlet, misfit.entries)
        raise WrongInstrument(
            f"another device answers on {self._transport.resource}, or the mapping does not fit: "
            f"{misfits[0]}; name the right address, preset, outlet or paths"
        )

    def _no_outlet(self, outlet: int, there: int) -> WrongInstrument:
        numbers = "1" if there == 1 else f"a number from 1 to {there}"
        return WrongInstrument(
            f"{self._transport.resource} has no outlet or phase {outlet}, its answer lists {there}: "
            f"set outlet to {numbers}"
        )

    def _identity(self) -> dict[str, str]:
        """What the device says of itself, as far as it is mapped and there; its silence is no failure."""
        paths = {name: path for name in _IDENTITY_PATHS if (path := placed(self.settings, name)) is not None}
        found: dict[str, str] = {}
        if not paths:
            return found
        try:
            answer = self._ask(identity_request(self.settings, list(paths.values())))
            find = finder(self._mapping.form, answer, self._mapping.pattern, self._mapping.separator)
        except (GarbageReply, ReplyTimeout) as error:
            self._log.info("%s: no identity: %s", self._transport.resource, error)
            return found
        for name, path in paths.items():
            try:
                found[name] = str(find(path)).strip()
            except NotThere as error:
                self._log.info("%s: no identity: %s", self._transport.resource, error)
        return {name: text for name, text in found.items() if text and text != "None"}

    def confirm(self, updates: int = 5) -> list[Finding]:
        """What so many readings show, beside each provisional statement: a person decides."""
        readings = sample_updates(self._read_update, updates, self._transport.resource)
        shown = [f"{reading.power_w:g}" for reading in readings if reading.power_w is not None]
        counted = [f"{reading.energy_j:g}" for reading in readings if reading.energy_j is not None]
        words = (
            f"power {', '.join(shown)} W" if shown else "no power",
            f"counter {', '.join(counted)} J" if counted else "no counter",
        )
        seen = f"{updates} answers, {self.update_interval_s:g} s apart: {'; '.join(words)}"
        return [Finding(text, None, seen) for text in (*self.provisional, *self.preset.provisional)]

    # -- readings ----------------------------------------------------------------------------------------

    def _ask(self, request: str) -> bytes:
        if interface_of(self._transport.resource) == "text":
            request = f"{request}\n{self._mapping.pattern}"
        return self._transport.fetch(request, float(self.settings["answer_timeout_s"]))

    def _fetch(self) -> Sample:
        """One sample; the first of several unreadable answers is told to the person, in its own words."""
        try:
            sample = self._mapping.sample(self._ask(self._mapping.request))
        except GarbageReply as error:
            if not self._in_trouble:
                self._notify(str(error))
            self._in_trouble = True
            raise
        self._in_trouble = False
        return sample


class ISockets(NetworkedSocket):
    """i-Sockets, polled every 30 s as in the study, with a mapping that the configuration supplies."""

    name: ClassVar[str] = "isockets"
    make: ClassVar[str] = "i-Sockets"
    model: ClassVar[str] = "networked socket"
    settings_declared: ClassVar[tuple[Setting, ...]] = _settings(
        30.0, "A YAML file with the mapping of your device; None: settings only."
    )
    provisional: ClassVar[tuple[str, ...]] = (
        "no document of the i-Sockets' interface is public: the mapping is the configuration's",
        "what window a reading of the i-Sockets stands for, and its accuracy, are unknown",
    )
    own_presets_only: ClassVar[bool] = True

    @classmethod
    def _preset(cls, name: object) -> Preset:
        found = super()._preset(name)
        return replace(found, make=cls.make, model=cls.model) if found.make == "unknown" else found


def recognise(preset_name: str, answer: bytes) -> bool:
    """Whether ``answer`` has the values of outlet 1 where the preset says; for probing an address."""
    preset = load_preset(preset_name)
    base = resolve(NetworkedSocket.settings_declared, preset.settings, preset_name)
    for variant in ({}, *preset.variants):
        try:
            mapping_of({**base, **variant}).sample(answer)
        except GarbageReply:
            continue
        return True
    return False

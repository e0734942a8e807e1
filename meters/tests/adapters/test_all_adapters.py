# SPDX-License-Identifier: Apache-2.0
"""One test walks all adapters: a new one is tested by being in the table."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import string
from datetime import date

import pytest
from meter_dialogue import Dialogue

from netjoule_contracts import document_defects, schema
from netjoule_meters.adapters import adapter, adapter_names
from netjoule_meters.adapters.base import Meter, Quantity, Semantics
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.registry import EMULATED, EmulationOptions, make_instrument
from netjoule_meters.errors import UsageError
from netjoule_meters.passport import Identification
from netjoule_meters.settings import REQUIRED, resolve
from netjoule_meters.transports import INTERFACES

NAMES = adapter_names()
SUFFIX_OF_UNIT = {"s": "_s", "V": "_v", "A": "_a", "W": "_w", "J": "_j", "Hz": "_hz", "ms": "_ms"}
SETTINGS_SCHEMA = schema("meter_config")["properties"]["meters"]["items"]["properties"]["settings"][
    "properties"
]
LEAST: dict[str, dict[str, object]] = {}
"""Settings by adapter that a person must choose and that neither have choices nor are numbers."""


def least_settings(kind: type[Meter]) -> dict[str, object]:
    """A value for each setting that a person must choose."""
    required = [setting for setting in kind.settings_declared if setting.default is REQUIRED]
    chosen = {setting.name: setting.choices[-1] if setting.choices else 1.0 for setting in required}
    return {**chosen, **LEAST.get(kind.name, {})}


@pytest.fixture(params=NAMES)
def kind(request) -> type[Meter]:
    return adapter(request.param)


@pytest.fixture
def meter(kind, clock) -> Meter:
    return kind(Dialogue([]), least_settings(kind), clock=clock)


def test_every_adapter_that_is_written_is_in_the_table():
    from netjoule_meters import adapters

    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}.")
    ]
    written = {
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, Meter) and not inspect.isabstract(kind)
    }
    assert written == {adapter(name) for name in NAMES}


def test_name_and_docstring(kind):
    assert adapter(kind.name) is kind
    assert kind.make and kind.model
    assert kind.__doc__ and kind.__doc__.strip().endswith(".")
    assert inspect.getmodule(kind).__doc__.count("\n") >= 1, "the module says which manual it follows"


def test_semantics_quantity_and_interfaces_are_known_words(kind):
    assert isinstance(kind.semantics, Semantics) and isinstance(kind.quantity, Quantity)
    assert kind.interfaces and set(kind.interfaces) <= set(INTERFACES)
    assert all(len(statement) > 20 for statement in kind.provisional)


def test_an_adapter_does_not_open_ports_itself(kind):
    source = inspect.getsource(inspect.getmodule(kind))
    for forbidden in ("serial", "socket", "os.open", "time."):
        assert f"import {forbidden}" not in source and f"{forbidden}(" not in source


def test_settings_have_units_docs_and_defaults_that_are_choices(kind):
    names = [setting.name for setting in kind.all_settings()]
    assert len(names) == len(set(names))
    assert "update_interval_s" in names and "stuck_after_s" in names
    for setting in kind.settings_declared:
        assert setting.doc.endswith(".")
        unit = SETTINGS_SCHEMA[setting.name].get("unit")
        assert setting.name.endswith(SUFFIX_OF_UNIT.get(unit, "")), f"{setting.name} is in {unit}"
        if setting.choices is not None and setting.default is not REQUIRED:
            assert setting.default in setting.choices
        assert setting.name in setting.describe()


def test_settings_are_in_the_contract(kind):
    assert {setting.name for setting in kind.all_settings()} <= set(SETTINGS_SCHEMA)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e9, 1e-9, 0.0, -1.0])
def test_an_update_interval_that_cannot_be_is_refused(kind, clock, value):
    with pytest.raises(UsageError, match="update_interval_s cannot be"):
        kind(Dialogue([]), {**least_settings(kind), "update_interval_s": value}, clock=clock)


def test_null_stands_for_the_default_of_every_setting(kind):
    settings = least_settings(kind)
    optional = [setting for setting in kind.all_settings() if setting.default is not REQUIRED]
    nulls = {setting.name: None for setting in optional}
    assert resolve(kind.all_settings(), {**settings, **nulls}, kind.name) == resolve(
        kind.all_settings(), settings, kind.name
    )


def test_unknown_settings_are_refused(kind):
    with pytest.raises(UsageError, match="unknown setting 'colour'"):
        resolve(kind.settings_declared, {**least_settings(kind), "colour": "red"}, kind.name)


def test_commands_use_declared_settings(kind):
    names = {setting.name for setting in kind.settings_declared}
    for command in getattr(kind, "set_up_commands", ()):
        used = {field for _, field, _, _ in string.Formatter().parse(command.text) if field}
        assert used <= names
        assert (command.query is None) == (command.keeps is None)
        assert command.keeps is None or command.keeps in names


def test_range_lag_and_accuracy_with_the_least_settings(kind, meter):
    assert meter.update_interval_s > 0
    assert meter.gap_s == pytest.approx(kind.gap_updates * meter.update_interval_s)
    assert meter.lag_s >= 0
    limits = meter.measuring_range
    if None not in (limits.power_w, limits.voltage_v, limits.current_a):
        assert limits.power_w == pytest.approx(limits.voltage_v * limits.current_a)
    assert meter.accuracy(None).status == "unknown"
    for days in (10.0, 300.0):
        accuracy = meter.accuracy(days)
        assert accuracy.source
        if accuracy.status == "known":
            assert 0 <= accuracy.reading_ratio < 0.1 and 0 <= accuracy.range_ratio < 0.1


def test_a_range_is_chosen_from_what_can_be_set_or_there_is_one(kind, meter):
    try:
        chosen = meter.choose_range(most_v=235.0, most_a=0.35, most_w=80.0)
    except UsageError as error:
        assert "one range" in str(error)
        return
    settings = resolve(kind.all_settings(), {**least_settings(kind), **chosen}, kind.name)
    limits = kind(Dialogue([]), settings, clock=meter._clock).measuring_range
    assert limits.voltage_v is None or limits.voltage_v >= 1.1 * 235.0
    assert limits.current_a is None or limits.current_a >= 1.1 * 0.35


def test_passport_fits_the_contract(kind, meter):
    meter.identification = Identification("someone", kind.make, kind.model)
    config = MeterConfig("m1", "client", kind.name, "dialogue", calibration_date="2026-09-01")
    document = meter.passport(config, date(2026, 11, 21)).document()
    assert document_defects("meter_passport", document) == []
    assert document["provisional"] == list(kind.provisional)


def test_advice_for_silence_is_a_sentence(kind):
    assert len(kind.advice_no_answer) > 20


def test_no_such_adapter():
    with pytest.raises(UsageError, match=r"no adapter 'wt9000': this build has .*wt210"):
        adapter("wt9000")


@pytest.mark.parametrize("name", sorted(EMULATED))
@pytest.mark.parametrize("interval_s", [math.nan, math.inf, 1e9, 1e-9, 0.0, -1.0])
def test_no_emulated_instrument_has_an_impossible_interval_or_an_unknown_variant(name, interval_s):
    with pytest.raises(UsageError, match=r"update interval .* cannot be"):
        make_instrument(name, EmulationOptions(update_interval_s=interval_s))
    with pytest.raises(UsageError, match=f"no variant 'x' of an emulated {name}: "):
        make_instrument(name, EmulationOptions(variant="x"))
    with pytest.raises(UsageError, match="has no option 'colour'"):
        make_instrument(name, EmulationOptions(extra={"colour": "red"}))


@pytest.mark.parametrize("name", sorted(EMULATED))
def test_every_emulated_instrument_can_be_made_for_an_adapter_that_there_is(name):
    model = EMULATED[name]
    assert adapter(model.adapter)
    for variant in model.variants or ("",):
        for seed in (None, 1):
            instrument = make_instrument(name, EmulationOptions(seed=seed, variant=variant))
            assert instrument.step(0.0) == b"" and instrument.wake_s(0.0) is None

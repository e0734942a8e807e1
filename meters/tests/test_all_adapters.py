# SPDX-License-Identifier: Apache-2.0
"""One test walks all adapters: a new one is tested by being in the table."""

from __future__ import annotations

import inspect
import string

import pytest

from netjoule_meters.adapters import adapter, adapter_names
from netjoule_meters.adapters.base import Meter
from netjoule_meters.adapters.settings import REQUIRED, resolve
from netjoule_meters.errors import UsageError
from netjoule_meters.transports.dialogue import Dialogue

NAMES = adapter_names()
UNIT_SUFFIXES = ("_s", "_v", "_a", "_w", "_hz")
WITHOUT_UNIT = {"mode", "crest_factor", "line_filter", "frequency_filter", "power_factor"}


def least_settings(kind: type[Meter]) -> dict[str, object]:
    """A value for each setting that a person must choose."""
    required = [setting for setting in kind.settings_declared if setting.default is REQUIRED]
    return {setting.name: setting.choices[-1] if setting.choices else 1.0 for setting in required}


@pytest.fixture(params=NAMES)
def kind(request) -> type[Meter]:
    return adapter(request.param)


@pytest.fixture
def meter(kind, clock) -> Meter:
    return kind(Dialogue([]), least_settings(kind), clock=clock)


def test_name_and_docstring(kind):
    assert adapter(kind.name) is kind
    assert kind.make and kind.model
    assert kind.__doc__ and kind.__doc__.strip().endswith(".")
    assert inspect.getmodule(kind).__doc__.count("\n") >= 1, "the module says which manual it follows"


def test_an_adapter_does_not_open_ports_itself(kind):
    source = inspect.getsource(inspect.getmodule(kind))
    for forbidden in ("serial", "socket", "os.open", "time."):
        assert f"import {forbidden}" not in source and f"{forbidden}(" not in source


def test_settings_have_units_docs_and_defaults_that_are_choices(kind):
    names = [setting.name for setting in kind.all_settings()]
    assert len(names) == len(set(names))
    assert "update_interval_s" in names
    for setting in kind.settings_declared:
        assert setting.doc.endswith(".")
        assert setting.name.endswith(UNIT_SUFFIXES) or setting.name in WITHOUT_UNIT
        if setting.choices is not None and setting.default is not REQUIRED:
            assert setting.default in setting.choices
        assert setting.name in setting.describe()


def test_settings_are_in_the_contract(kind):
    from netjoule_contracts import schema

    known = schema("meter_config")["properties"]["meters"]["items"]["properties"]["settings"]["properties"]
    assert {setting.name for setting in kind.all_settings()} <= set(known)


def test_unknown_settings_are_refused(kind):
    with pytest.raises(UsageError, match="unknown setting 'colour'"):
        resolve(kind.settings_declared, {**least_settings(kind), "colour": "red"}, kind.name)


def test_commands_use_declared_settings(kind):
    names = {setting.name for setting in kind.settings_declared}
    for command in kind.set_up_commands:
        used = {field for _, field, _, _ in string.Formatter().parse(command.text) if field}
        assert used <= names
        assert (command.query is None) == (command.keeps is None)
        assert command.keeps is None or command.keeps in names


def test_range_lag_and_accuracy_with_the_least_settings(meter):
    assert meter.update_interval_s > 0
    assert meter.gap_s == pytest.approx(3 * meter.update_interval_s)
    assert meter.lag_s >= 0
    limits = meter.measuring_range
    if limits.power_w is not None:
        assert limits.power_w == pytest.approx(limits.voltage_v * limits.current_a)
    assert meter.accuracy(None).status == "unknown"
    for days in (10.0, 300.0):
        accuracy = meter.accuracy(days)
        assert accuracy.source
        if accuracy.status == "known":
            assert 0 <= accuracy.reading_ratio < 0.1 and 0 <= accuracy.range_ratio < 0.1


def test_advice_for_silence_is_a_sentence(kind):
    assert len(kind.advice_no_answer) > 20


def test_no_such_adapter():
    with pytest.raises(UsageError, match="no adapter 'wt9000': this build has wt210"):
        adapter("wt9000")

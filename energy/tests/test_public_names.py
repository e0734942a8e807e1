# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import pytest

import netjoule_energy


def test_every_public_name_is_there():
    for name in netjoule_energy.__all__:
        module = type(netjoule_energy)
        assert type(getattr(netjoule_energy, name)) is not module, "a module of this name hides it"


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'Colour'"):
        netjoule_energy.Colour  # noqa: B018


def test_limits_are_there_without_the_libraries_of_arithmetic_and_of_schemas():
    script = (
        "import sys; from netjoule_energy import GREATEST_FLOOR_RATIO; "
        "print(sorted({'numpy', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

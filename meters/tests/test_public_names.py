# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import pytest

import netjoule_meters
from netjoule_meters import energy

PACKAGES = pytest.mark.parametrize("package", [netjoule_meters, energy])


@PACKAGES
def test_every_public_name_is_there(package):
    for name in package.__all__:
        assert type(getattr(package, name)) is not type(package), "a module of this name hides it"


@PACKAGES
def test_other_names_are_not(package):
    with pytest.raises(AttributeError, match="no attribute 'Colour'"):
        package.Colour  # noqa: B018


def test_the_command_starts_without_what_it_does_not_need():
    script = (
        "import sys, netjoule_meters.cli; from netjoule_meters.energy import GREATEST_FLOOR_RATIO; "
        "print(sorted({'numpy', 'jsonschema', 'serial', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

from golden_sentences import raises

import netjoule_meters


def test_every_public_name_is_there():
    for name in netjoule_meters.__all__:
        module = type(netjoule_meters)
        assert type(getattr(netjoule_meters, name)) is not module, "a module of this name hides it"


def test_other_names_are_not():
    with raises(AttributeError):
        netjoule_meters.Colour  # noqa: B018


def test_the_command_starts_without_what_it_does_not_need():
    script = (
        "import sys, netjoule_meters.cli; "
        "print(sorted({'numpy', 'jsonschema', 'serial', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

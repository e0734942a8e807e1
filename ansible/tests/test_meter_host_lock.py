# SPDX-License-Identifier: Apache-2.0
"""What a meter host fetches from a package index: pinned, hashed, whole, and nothing else."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from render import ANSIBLE

ROOT = ANSIBLE.parent
PYTHONS = [{"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0"} for minor in range(11, 15)]
"""What a host may have."""
LOCK = (ROOT / "scripts/requirements.txt").read_text(encoding="utf-8")
VARIABLES: dict[str, Any] = yaml.safe_load(
    (ANSIBLE / "roles/meter_host/vars/main.yml").read_text(encoding="utf-8")
)


def project(folder: str) -> dict[str, Any]:
    document = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(document["project"])


def all_of(texts: Iterable[str]) -> set[str]:
    """Names of these requirements and of what they require, on any Python of a host."""
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in texts if text != "netjoule-contracts"]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, extras := frozenset(one.extras)) in seen:
            continue
        seen.add((name, extras))
        found.add(name)
        for needed in map(Requirement, requires(name) or []):
            places = [python | {"extra": extra} for python in PYTHONS for extra in extras or {""}]
            if needed.marker is None or any(needed.marker.evaluate(place) for place in places):
                waiting.append(needed)
    return found


def test_the_names_are_those_that_the_program_and_its_extras_need() -> None:
    meters = project("meters")
    core = all_of([*meters["dependencies"], *project("protocols/contracts")["dependencies"]])
    needs = {name: set(packages) for name, packages in VARIABLES["meter_host_needs"].items()}
    assert needs.pop("core") == core
    extras = meters["optional-dependencies"]
    assert needs == {name: all_of(extras[name]) - core for name in needs}
    # The library of the Joulescope is installed by hand.
    assert {*extras} - {*needs} == {"joulescope"}


@pytest.mark.parametrize("extra", VARIABLES["meter_host_needs"])
def test_each_is_locked_with_hashes_and_no_address(extra: str) -> None:
    for name in VARIABLES["meter_host_needs"][extra]:
        entries = re.findall(f"(?m)^{name}" + VARIABLES["meter_host_lock_entry"], LOCK)
        assert len(entries) == 1
        assert re.fullmatch(r"[^ ]+==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+", entries[0])

# SPDX-License-Identifier: Apache-2.0
"""The built packages carry what they need: a wheel works outside of any source tree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import netjoule_contracts

REPOSITORY = Path(__file__).resolve().parents[3]
USE = """
import netjoule_contracts
from netjoule_meters.config import meter_configs
from netjoule_energy.campaign.files import invalidating_codes
from netjoule_meters.adapters.plugs_and_pdus.presets import all_presets
meter = {"meter_id": "m", "node": "client", "adapter": "wt210", "resource": "/dev/x"}
print(len(meter_configs({"schema_version": 1, "meters": [meter]})), bool(all_presets()))
print(sorted(invalidating_codes())[0], netjoule_contracts.root())
"""


DOCUMENTED = re.compile(r"pip install ('[^']+'|[\w./\[\],-]+(?: (?!#)[\w./\[\],-]+)*)")


def documented(*, locks: bool = False) -> list[list[str]]:
    """What pages and messages of this repository tell people to install, each once; `locks`: extras alone."""
    rooms = [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/**/*.md"),
        *REPOSITORY.glob("testbed/**/README.md"),
    ]
    rooms += [*REPOSITORY.glob("*/README.md"), *REPOSITORY.glob("*/src/**/*.py")]
    texts = [page.read_text(encoding="utf-8") for page in rooms]
    found = dict.fromkeys(words for text in texts for words in DOCUMENTED.findall(text))
    lines = [shlex.split(words) for words in found]
    return [words for words in lines if ("-r" in words) == locks]


def copied_to(place: Path) -> None:
    """The two packages as a source tree has them; nothing is built in the true one."""
    for name in ("protocols/contracts", "meters"):
        without = shutil.ignore_patterns("tests", "vectors", "*.egg-info", "__pycache__", ".*_cache")
        shutil.copytree(REPOSITORY / name, place / name, symlinks=True, ignore=without)


@pytest.mark.parametrize("words", documented(), ids=" ".join)
def test_a_documented_install_takes_paths_and_asks_no_index_for_our_names(
    words: list[str], tmp_path: Path
) -> None:
    assert [word for word in words if not word.startswith("./")] == []
    copied_to(tmp_path)
    fresh = tmp_path / "fresh"
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(fresh)]
    subprocess.run(
        [sys.executable, "-P", "-m", "pip", "install", *options, *words],
        cwd=tmp_path,
        check=True,
        timeout=300,
    )
    assert (fresh / "netjoule_meters").is_dir()


@pytest.mark.parametrize("words", documented(locks=True), ids=" ".join)
def test_a_documented_extra_is_locked_with_hashes_and_names_nothing_of_ours(words: list[str]) -> None:
    assert words[:-1] == ["--no-deps", "--require-hashes", "-r"]
    locked = (REPOSITORY / words[-1]).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    packages = [line for line in locked if line.strip() and not line.lstrip().startswith("#")]
    assert packages
    assert all("==" in line and "--hash=sha256:" in line for line in packages)
    assert not any("netjoule" in line or "://" in line for line in packages)


def test_a_documented_install_names_all_of_ours_that_it_needs() -> None:
    # An extra is added to a package that is there, and what that one needs with it.
    for words in (words for words in documented() if "[" not in "".join(words)):
        projects = [tomllib.loads((REPOSITORY / word / "pyproject.toml").read_text()) for word in words]
        needed = {name for one in projects for name in one["project"]["dependencies"]}
        ours = {re.split(r"[^\w-]", name)[0] for name in needed if name.startswith("netjoule-")}
        assert ours <= {one["project"]["name"] for one in projects}, words


def test_the_documented_installs_are_found() -> None:
    assert ["./protocols/contracts", "./meters"] in documented()
    assert len(documented()) > 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with both packages as wheels bring them; built from copies, so that no source tree changes."""
    place = tmp_path_factory.mktemp("wheels")
    copied_to(place / "source")
    for name in ("protocols/contracts", "meters"):
        copy = place / "source" / name
        build = ("-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index")
        subprocess.run([sys.executable, *build, "-w", place, copy], check=True, timeout=120)
    for wheel in place.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


def test_a_wheel_works_without_the_source_tree(installed: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "NETJOULE_CONTRACTS"}
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=env | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    first, second = done.stdout.splitlines()
    assert first == "1 True"
    assert second.endswith(str(installed / "netjoule_contracts" / "data"))


def test_a_wheel_holds_every_schema_and_table(installed: Path) -> None:
    carried = installed / "netjoule_contracts" / "data"
    source = netjoule_contracts.root()
    for name in ("schemas", "tables"):
        assert {p.name for p in (carried / name).iterdir()} == {p.name for p in (source / name).iterdir()}

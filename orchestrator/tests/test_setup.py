# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh on hosts that lack something: it ends with the thing's name and the way to get it."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "cat", "cut", "dirname", "env", "grep", "head", "id", "mkdir", "rm", "sort", "tail")
PYTHON = 'case "$2" in *version_info*) echo 3.11;; *ensurepip*) exit {ensurepip};; esac'
READY = {
    "apt-get": "exit 0",
    "dpkg": "exit 0",
    "dpkg-query": "echo 'install ok installed'",
    "python3": PYTHON.format(ensurepip=0),
    "cargo": "exit 0",
    "rustc": "echo 'rustc 1.90.0 (x 2026-01-01)'",
}


def set_up(tmp_path: Path, level: str = "run", **changed: str | None) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script where only some programs exist; a change of None takes one away."""
    place, path = tmp_path / "tree", tmp_path / "bin"
    (place / "scripts").mkdir(parents=True)
    path.mkdir()
    script = shutil.copy(ROOT / "scripts" / "setup.sh", place / "scripts")
    for lock in ROOT.glob("scripts/requirements*.txt"):
        shutil.copy(lock, place / "scripts")
    for tool in TOOLS:
        (path / tool).symlink_to(str(shutil.which(tool)))
    programs = READY | {name.replace("_", "-"): body for name, body in changed.items()}
    for name, body in programs.items():
        if body is not None:
            (path / name).unlink(missing_ok=True)
            (path / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
            (path / name).chmod(0o755)
    return subprocess.run(
        [str(shutil.which("bash")), script, level],
        env={"PATH": str(path), "HOME": str(tmp_path), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("changed", "what", "how"),
    [
        ({"apt_get": None}, "there is no apt-get here", "RUN_PACKAGES"),
        ({"python3": None}, "no python3 on PATH", "apt-get install python3 python3-venv"),
        ({"python3": "echo 3.9"}, "Python 3.9 is too old", "use Python 3.11 or newer"),
        ({"python3": PYTHON.format(ensurepip=1)}, "no ensurepip", "Debian's /usr/bin/python3"),
        ({"cargo": None}, "no Rust toolchain (cargo) on PATH", "https://rustup.rs"),
        ({"rustc": None}, "rustc does not run", "rustup default stable"),
        ({"rustc": "echo 'rustc 1.63.0'"}, "Rust 1.63.0 is too old", "rustup update stable"),
        (
            {"dpkg_query": "exit 1", "id": "echo 1000"},
            "neither root nor sudo: build-essential cmake",
            "as root: apt-get install --no-install-recommends build-essential cmake",
        ),
        (
            {"dpkg_query": "exit 1", "id": "echo 0", "apt_get": "echo E: no network; exit 100"},
            "apt-get could not install: build-essential",
            "read .setup/apt.log",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_get_it(tmp_path, changed, what, how):
    ended = set_up(tmp_path, **changed)
    *_, first, second = ended.stderr.splitlines()
    assert ended.returncode == 3
    assert first.startswith("setup: ")
    assert what in first
    assert how in second


def test_sudo_installs_for_an_ordinary_user(tmp_path):
    note = tmp_path / "asked"
    ended = set_up(
        tmp_path,
        dpkg_query="exit 1",
        id="echo 1000",
        sudo=f'echo "$*" >>{note}; exit 7',
    )
    assert ended.returncode == 3
    assert [line.split()[-1] for line in note.read_text().splitlines()] == ["update", "lftp"]


def test_another_program_that_holds_apts_lock_is_waited_for_and_named(tmp_path):
    held = (
        f'echo "$*" >>{tmp_path}/asked; [ "$(grep -c . {tmp_path}/asked)" -gt 3 ] || '
        '{ echo "E: Could not get lock /var/lib/dpkg/lock-frontend. Held by process 1"; exit 100; }'
    )
    ended = set_up(tmp_path, dpkg_query="exit 1", id="echo 0", apt_get=held, sleep="exit 0")
    said = "setup: Debian packages: another program holds apt's lock; waiting for it, at most 10 minutes"
    assert ended.stdout.splitlines().count(said) == 1
    asked = [line.split()[1:4] for line in (tmp_path / "asked").read_text().splitlines() if "Lock" in line]
    lock = "DPkg::Lock::Timeout="
    assert asked == [
        ["-o", f"{lock}{wait}", verb]
        for wait, verb in ((0, "update"), (60, "update"), (60, "update"), (60, "update"), (0, "install"))
    ]


def test_programs_that_boringssls_build_starts_are_installed(tmp_path):
    """A machine with nothing on it has no git, which the build script of boring-sys patches sources with."""
    version = re.search(r'name = "boring-sys"\nversion = "([^"]+)"', (ROOT / "Cargo.lock").read_text())[1]
    sources = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
    (script,) = sources.glob(f"*/boring-sys-{version}/build/main.rs")
    started = set(re.findall(r'Command::new\("([^"]+)"\)', script.read_text())) - {"xcrun"}  # macOS's
    assert started
    ended = set_up(tmp_path, dpkg_query="exit 1", id="echo 1000")
    assert started <= set(ended.stderr.splitlines()[0].partition(": ")[2].split())


def test_the_program_that_campaigns_start_is_linked_last_and_optimised_across_crates(tmp_path):
    python = tmp_path / "tree/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    quiet = dict.fromkeys(("cat", "find", "flock", "sha256sum", "xargs", "R"), "while read -r; do :; done")
    ended = set_up(tmp_path, **quiet, cargo=f'echo "$*" >>{tmp_path}/asked')
    assert ended.returncode == 0, ended.stderr
    build, program = (tmp_path / "asked").read_text().splitlines()
    assert build.split() == ["build", "--quiet", "--release", "--locked", "--workspace"]
    assert program.split()[0] == "rustc"
    assert program.endswith("--bin netjoule-traffic -- -C lto=thin")
    # Without bitcode in the libraries rustc refuses that.
    settings = tomllib.loads((ROOT / ".cargo/config.toml").read_text())
    assert "embed-bitcode=yes" in settings["build"]["rustflags"]


def test_tests_have_the_optional_packages_and_a_run_has_a_web_server_alone(tmp_path):
    quiet = dict.fromkeys(("cat", "find", "flock", "xargs", "R"), "while read -r; do :; done")
    quiet |= {"sha256sum": "while read -r; do :; done; echo new", "go": "exit 0"}
    for level, locks in (("run", ["web"]), ("test", ["web", "postgresql", "trend", "rigs"])):
        for environment in (".venv", ".labgrid"):
            python = tmp_path / level / "tree" / environment / "bin/python"
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/{level}{environment}.asked\n')
            python.chmod(0o755)
        ended = set_up(tmp_path / level, level=level, **quiet)
        assert ended.returncode == 0, ended.stderr
        asked = (tmp_path / f"{level}.venv.asked").read_text().splitlines()
        extras = [line for line in asked if "requirements-" in line]
        assert [line.partition("requirements-")[2] for line in extras] == [f"{lock}.txt" for lock in locks]
        assert all("--no-deps --require-hashes" in line for line in extras)
        of_its_own = tmp_path / f"{level}.labgrid.asked"
        assert of_its_own.exists() == (level == "test")
    assert "--require-hashes -r scripts/requirements-labgrid.txt" in of_its_own.read_text()


@pytest.mark.parametrize(
    ("level", "there", "not_there"),
    [
        ("guest", ["qemu-system-x86", "kmod"], "shellcheck"),
        ("guest-test", ["qemu-system-x86", "tshark", "shellcheck"], ""),
    ],
)
def test_the_guest_has_levels_of_its_own(tmp_path, level, there, not_there):
    ended = set_up(tmp_path, level=level, dpkg_query="exit 1", id="echo 1000")
    assert ended.returncode == 3
    missing = ended.stderr.splitlines()[0].partition(": ")[2].split()
    assert set(there) <= set(missing)
    assert not_there not in missing


def test_an_unknown_level_is_refused(tmp_path):
    ended = set_up(tmp_path, level="tset")
    assert ended.returncode == 3
    assert "unknown level 'tset'" in ended.stderr
    assert not (tmp_path / "tree" / ".venv").exists()

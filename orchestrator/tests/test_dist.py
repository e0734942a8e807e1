# SPDX-License-Identifier: Apache-2.0
"""scripts/dist.sh with stand-ins for compilers and cargo: what it builds and refuses, and what it notes."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("netjoule-traffic", "netjoule-transfer", "netjoule-link")
TOOLS = ("bash", "chmod", "cp", "dirname", "env", "grep", "mkdir", "rm", "sed", "tr")
MACHINES = {"x86_64": "", "aarch64": "aarch64-linux-gnu-"}
COMMIT = "0123456789ab"
OLD, NEW = "old", "new"
# Its target is the word after --target; the programs of the packages that it is told say what they are.
CARGO = """
while [ "$1" != --target ]; do shift; done
target=$2
{ echo "$target"; env; } >>cargo.$target
mkdir -p target/dist/$target/release
for word in "$@"; do
  case $word in --package=*) program=target/dist/$target/release/${word#--package=} ;; *) continue ;; esac
  printf '#!%s\\necho new\\n' "$BASH" >$program
  chmod +x $program
done
"""
READY = {
    "uname": "echo x86_64",
    "rustc": "echo .",
    "cargo": CARGO,
    "readelf": "echo LOAD",
    **{f"{prefix}gcc": "" for prefix in MACHINES.values()},
    **{f"{prefix}g++": "echo /usr/lib/libc.a" for prefix in MACHINES.values()},
    **{f"{prefix}strip": 'cp "$3" "$2"' for prefix in MACHINES.values()},
}


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path):
    """A copy of the script where programs of a former commit were built."""
    place = tmp_path / "tree"
    (place / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/dist.sh", place / "scripts")
    program(place / "scripts/rust-commit.sh", f"echo {COMMIT}")
    for machine in MACHINES:
        for name in PROGRAMS:
            program(place / f"target/dist/{machine}-unknown-linux-gnu/release/{name}", f"echo {OLD}")
            program(place / f"dist/{machine}/{name}", f"echo {OLD}")
        (place / f"dist/{machine}/commit").write_text("ffffffffffff\n")
    return place


def dist(tree: Path, *machines: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
    """Run it where only some programs exist; a change of None takes one away."""
    path = tree.parent / "bin"
    path.mkdir()
    for tool in TOOLS:
        (path / tool).symlink_to(str(shutil.which(tool)))
    for name, body in (READY | changed).items():
        if body is not None:
            program(path / name, body)
    return subprocess.run(
        [str(shutil.which("bash")), tree / "scripts/dist.sh", *machines],
        env={"PATH": str(path), "HOME": str(tree), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def built(tree: Path, machine: str) -> bool:
    """Whether all programs are the new ones, with what they are of beside them."""
    folder = tree / "dist" / machine
    new = all((folder / name).read_text().endswith(f"{NEW}\n") for name in PROGRAMS)
    commit = folder / "commit"
    assert not commit.exists() or (commit.read_text() == f"{COMMIT}\n") == new
    return new and commit.exists()


def test_both_machines_are_built_static_each_by_its_own_compiler(tree):
    ended = dist(tree)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "dist/x86_64/netjoule-link: new, run here" in ended.stdout
    assert "dist/aarch64/netjoule-link: static; not run, this is x86_64" in ended.stdout
    for machine, prefix in MACHINES.items():
        assert built(tree, machine)
        told = (tree / f"cargo.{machine}-unknown-linux-gnu").read_text().splitlines()
        upper = f"CARGO_TARGET_{machine.upper()}_UNKNOWN_LINUX_GNU"
        assert {f"{upper}_LINKER={prefix}gcc", f"{upper}_RUSTFLAGS=-C target-feature=+crt-static"} <= set(
            told
        )
        assert f"CXX_{machine}_unknown_linux_gnu={prefix}g++" in told


def test_only_the_machine_that_is_named_is_built(tree):
    assert dist(tree, "aarch64").returncode == 0
    assert [machine for machine in MACHINES if built(tree, machine)] == ["aarch64"]


@pytest.mark.parametrize(
    ("changed", "machine", "words"),
    [
        (
            {"rustc": 'case "$*" in *aarch64*) echo none ;; *) echo . ;; esac'},
            "aarch64",
            "Rust's target aarch64-unknown-linux-gnu ('rustup target add aarch64-unknown-linux-gnu')",
        ),
        (
            {"aarch64-linux-gnu-g++": None},
            "aarch64",
            "the compiler aarch64-linux-gnu-g++ ('apt-get install g++-aarch64-linux-gnu')",
        ),
        ({"g++": None}, "x86_64", "the compiler g++ ('apt-get install g++')"),
        ({"g++": "echo libc.a"}, "x86_64", "a static C library for x86_64 (libc6-dev)"),
    ],
)
def test_what_a_machine_lacks_is_said_and_the_other_is_built(tree, changed, machine, words):
    ended = dist(tree, **changed)
    assert ended.returncode == 3
    assert f"dist: {machine}: not built, this machine lacks {words}\n" in ended.stdout
    assert {one: built(tree, one) for one in MACHINES} == {one: one != machine for one in MACHINES}


@pytest.mark.parametrize(
    "changed",
    [
        {"cargo": f'case "$*" in *aarch64*) exit 101 ;; esac\n{CARGO}'},
        {"aarch64-linux-gnu-strip": "exit 1"},
        {"readelf": 'case "$*" in *aarch64*) echo INTERP ;; esac'},
    ],
)
def test_what_failed_is_not_taken_for_a_build_of_this_commit(tree, changed):
    assert dist(tree, **changed).returncode == 1
    assert built(tree, "x86_64")
    commit = tree / "dist/aarch64/commit"
    assert not commit.exists() or commit.read_text() != f"{COMMIT}\n"

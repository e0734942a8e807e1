# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st

from netjoule.core import files, programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.store.fingerprint import host_fingerprint

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "t_s": st.floats(0, 1e7),
                "host": st.text(st.characters(exclude_categories=["C"]), min_size=1),
                "offset_s": finite,
                "drift_ppm": st.one_of(st.none(), finite),
                "residual_s": finite,
                "method": st.just("same_boot"),
            }
        ),
        max_size=5,
    )
)
def test_a_table_is_read_as_it_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "clocks.csv"
    files.append_table(path, "clocks", rows[:2])
    files.append_table(path, "clocks", rows[2:])
    back = files.read_table(path, "clocks")
    assert [r["host"] for r in back] == [r["host"] for r in rows]
    assert [float(r["offset_s"]) for r in back] == [r["offset_s"] for r in rows]
    assert [float(r["drift_ppm"]) if r["drift_ppm"] else None for r in back] == [r["drift_ppm"] for r in rows]
    assert [float(r["t_s"]) for r in back] == pytest.approx([r["t_s"] for r in rows], abs=1e-6)


def test_a_document_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    files.write_json(tmp_path / "a.json", {"x": 1})
    files.write_json(tmp_path / "a.json", {"x": 2})
    assert files.read_json(tmp_path / "a.json") == {"x": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_not_a_number_never_reaches_a_document(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()


def test_no_link_is_written_through(tmp_path):
    ours = tmp_path / "authorized_keys"
    ours.write_text("ssh-ed25519 ours")
    folder = tmp_path / "campaign"
    folder.mkdir()
    for name in (".a.json.tmp", "a.json", "clocks.csv", ".lock"):
        (folder / name).symlink_to(ours)
    files.write_json(folder / "a.json", {"x": 1})
    assert not (folder / "a.json").is_symlink()
    with pytest.raises(RunFailed):
        files.append_table(folder / "clocks.csv", "clocks", [])
    with pytest.raises(RunFailed):
        files.cut_torn_line(folder / "clocks.csv")
    with pytest.raises(OSError):
        files.take_lock(folder)
    assert ours.read_text() == "ssh-ed25519 ours"


def test_a_program_is_looked_up_in_the_named_folder_first_then_on_the_path(tmp_path, monkeypatch):
    for folder in ("named", "path"):
        (tmp_path / folder).mkdir()
        for name in ("netjoule-demo-tool", "other-tool") if folder == "path" else ("netjoule-demo-tool",):
            (tmp_path / folder / name).write_text("#!/bin/sh\n")
            (tmp_path / folder / name).chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert programs.find("netjoule-demo-tool") == str(tmp_path / "named" / "netjoule-demo-tool")
    assert programs.find("other-tool") == str(tmp_path / "path" / "other-tool")
    with raises(HostLacks):
        programs.find("no-such-tool")


def test_the_way_to_a_program_of_ours_is_a_verb_of_the_makefile(monkeypatch):
    makefile = (Path(__file__).parents[3] / "Makefile").read_text()
    named = {verb for how in programs._HOW.values() for verb in re.findall(r"'make ([a-z-]+)'", how)}
    assert named
    assert all(f"\n{verb}:" in makefile for verb in named)


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this host")
def test_the_commit_is_that_of_a_checkout_and_none_elsewhere(tmp_path):
    assert programs.commit(None) is None
    assert programs.commit(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert programs.commit(tmp_path) is None  # nothing committed yet
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert programs.commit(tmp_path) == head[:12]


def test_shipped_files_are_those_of_the_installation_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "analysis-r/exec").mkdir(parents=True)
    for name in ("testbed-topology.yaml", "analysis-r/exec/analyse.R", "nothing-of-the-kind"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[3]
    for name in ("testbed-topology.yaml", "analysis-r/exec/analyse.R"):
        assert programs.shipped(name) == root / name
    with raises(HostLacks):
        programs.shipped("nothing-of-the-kind")
    monkeypatch.setattr(programs, "checkout", lambda: None)
    with raises(HostLacks):
        programs.shipped("testbed-topology.yaml")


def test_the_fingerprint_tells_the_machine_and_not_whose_it_is():
    found = host_fingerprint()
    assert found["kernel"] == os.uname().release
    assert isinstance(found["memory_bytes"], int)
    assert found["memory_bytes"] > 10**8
    assert socket.gethostname() not in {str(v) for v in found.values()}


def test_a_host_that_tells_nothing_is_unknown_and_not_an_error(tmp_path):
    found = host_fingerprint(proc=tmp_path, os_release=Path("/nonexistent"))
    assert (found["distribution"], found["cpu_model"], found["memory_bytes"]) == ("unknown", "unknown", 0)

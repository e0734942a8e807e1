# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from netjoule import doctor, sandbox
from netjoule.cli import run_command
from netjoule.sandbox import Probe


def program(folder, name, body):
    path = folder / name
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host that has everything, made of small scripts."""
    for name in ("netjoule-traffic", "netjoule-link", "netjoule-meters", "netjoule-device", "iperf3"):
        program(tmp_path, name, f"echo {name} 1.2.3\n")
    program(tmp_path, "Rscript", "echo 4.2.2\n")
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))
    monkeypatch.setattr(sandbox, "probe", lambda: Probe("rootless", None))
    return tmp_path


def findings(results):
    return {f.name: f for f in doctor.examine(results)}


def test_a_complete_host(host, tmp_path):
    found = findings(tmp_path / "results" / "deep")
    assert all(f.ok for f in found.values() if f.needed), found
    assert found["namespaces"].seen == "a trial sandbox came up as rootless"
    assert found["iperf3"].seen.startswith("iperf3 1.2.3")
    assert "R 4.2.2 with ggplot2" in found["R"].seen
    assert f"free in {tmp_path}" in found["disk"].seen


@pytest.mark.parametrize(
    ("name", "body", "what", "words"),
    [
        ("netjoule-link", "exit 1\n", "netjoule-link", "does not run"),
        ("Rscript", "echo 4.2.2 ggplot2 netjoule\n", "R", "R 4.2.2 without ggplot2, netjoule"),
        ("Rscript", "exit 1\n", "R", "does not run"),
    ],
)
def test_what_is_broken_is_named_with_what_to_do(host, tmp_path, name, body, what, words):
    program(host, name, body)
    found = findings(tmp_path)[what]
    assert not found.ok
    assert words in found.seen
    assert found.fix


def test_refused_namespaces_say_what_the_sandbox_said(host, tmp_path, monkeypatch):
    monkeypatch.setattr(
        sandbox, "probe", lambda: Probe(None, "unshare: Operation not permitted; run with sudo")
    )
    found = findings(tmp_path)["namespaces"]
    assert not found.ok
    assert "run with sudo" in found.seen


def test_the_command_exits_3_only_for_what_is_needed(host, tmp_path, capsys):
    program(host, "iperf3", "exit 1\n")
    assert run_command(["doctor", "--results", str(tmp_path)]) == 0
    assert "note  iperf3" in capsys.readouterr().out
    program(host, "netjoule-traffic", "exit 1\n")
    assert run_command(["doctor", "--results", str(tmp_path), "--json"]) == 3
    seen = capsys.readouterr()
    assert "this host lacks: netjoule-traffic" in seen.err
    by_name = {f["name"]: f for f in map(json.loads, seen.out.splitlines())}
    assert by_name["netjoule-traffic"]["ok"] is False


def test_a_results_folder_that_is_not_ours_is_a_finding(monkeypatch, tmp_path):
    def closed(_self):
        raise PermissionError

    monkeypatch.setattr(doctor.Path, "exists", closed)
    found = doctor._disk(tmp_path / "x")
    assert (found.ok, found.needed) == (False, True)
    assert found.seen == f"{tmp_path / 'x'}: permission denied"

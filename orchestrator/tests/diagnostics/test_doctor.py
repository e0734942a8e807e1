# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace
from pathlib import Path

import pytest
from golden_sentences import same_sentence

from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks
from netjoule.diagnostics import doctor
from netjoule.hosts import sandbox
from netjoule.hosts.sandbox import SandboxError
from netjoule.testbeds.guest import boot, kernel, trial

CARRIERS = json.dumps(
    [
        {"name": "udp", "available": True},
        {"name": "raw", "available": False, "reason": "no CAP_NET_RAW"},
        {"name": "kernel", "available": False, "reason": "removed in Linux 6.16"},
    ]
)


def program(folder, name, body):
    path = folder / name
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host that has everything, made of small scripts."""
    for name in ("netjoule-traffic", "netjoule-link", "netjoule-meters", "netjoule-device", "iperf3"):
        program(tmp_path, name, f"echo {name} 1.2.3\n")
    program(
        tmp_path,
        "netjoule-traffic",
        f"[ $1 = carriers ] && echo '{CARRIERS}' || echo netjoule-traffic 1.2.3\n",
    )
    program(tmp_path, "Rscript", "echo 4.2.2\n")
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))
    monkeypatch.setattr(sandbox, "probe", lambda: "rootless")
    program(tmp_path, "qemu", "echo QEMU emulator 7\n")
    monkeypatch.setattr(boot, "qemu_program", lambda: str(tmp_path / "qemu"))
    monkeypatch.setattr(boot, "busybox_program", lambda: tmp_path / "busybox")
    monkeypatch.setattr(kernel, "cached", lambda: None)
    monkeypatch.setattr(doctor, "_raw_in_sandbox", lambda: False)
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
    ("name", "body", "what"),
    [
        ("netjoule-link", "exit 1\n", "netjoule-link"),
        ("Rscript", "echo 4.2.2 ggplot2 netjoule\n", "R"),
        ("Rscript", "exit 1\n", "R"),
    ],
)
def test_what_is_broken_is_named_with_what_to_do(host, tmp_path, name, body, what):
    program(host, name, body)
    found = findings(tmp_path)[what]
    assert not found.ok
    same_sentence(found.seen)
    assert found.fix


def test_refused_namespaces_say_what_the_sandbox_said(host, tmp_path, monkeypatch):
    def refused() -> str:
        raise SandboxError("unshare: Operation not permitted", next_step="run with sudo")

    monkeypatch.setattr(sandbox, "probe", refused)
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
    same_sentence(seen.err)
    by_name = {f["name"]: f for f in map(json.loads, seen.out.splitlines())}
    assert by_name["netjoule-traffic"]["ok"] is False


def test_a_results_folder_that_is_not_ours_is_a_finding(monkeypatch, tmp_path):
    def closed(_self):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(doctor.Path, "exists", closed)
        found = doctor._disk(tmp_path / "x")
    assert (found.ok, found.needed) == (False, True)
    same_sentence(found.seen)


def test_carriers_of_dccp_say_why_not(host, tmp_path):
    found = findings(tmp_path)
    assert found["dccp over UDP (RFC 6773)"].seen == "yes"
    raw = found["dccp over raw IP (protocol 33)"]
    assert (raw.ok, raw.needed, raw.seen) == (False, False, "no CAP_NET_RAW")
    same_sentence(found["dccp-kernel"].seen)


def test_raw_sockets_of_the_sandbox_count(host, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_raw_in_sandbox", lambda: True)
    raw = findings(tmp_path)["dccp over raw IP (protocol 33)"]
    assert (raw.ok, raw.seen) == (True, "in campaigns of the emulated testbed; else no CAP_NET_RAW")


@pytest.mark.parametrize("kernel_has_dccp", [True, False])
def test_generators_promise_dccp_only_where_the_kernel_has_it(host, tmp_path, monkeypatch, kernel_has_dccp):
    program(tmp_path, "ITGSend", "")
    program(tmp_path, "ITGRecv", "")
    program(tmp_path, "ITGDec", "")
    socket = doctor.Support("kernel", kernel_has_dccp, "")
    monkeypatch.setattr(doctor.CARRIERS, "ask", lambda: [socket])
    seen = findings(tmp_path)["ditg"].seen
    assert seen == ("there; does dccp-kernel, tcp, udp" if kernel_has_dccp else "there; does tcp, udp")


def test_a_netjoule_traffic_that_knows_no_carriers_is_a_note(host, tmp_path):
    program(host, "netjoule-traffic", "echo netjoule-traffic 0.0.1\n")
    found = findings(tmp_path)["dccp"]
    assert (found.ok, found.needed) == (False, False)
    assert "carriers" in found.seen


def test_the_other_generators_are_notes(host, tmp_path):
    found = findings(tmp_path)
    assert all(not found[name].needed for name in ("iperf-dccp", "ditg", "netperfmeter"))


KERNEL = kernel.Kernel("linux-image-x", "6.1.1-1", "6.1.0-1-amd64", Path("/k"), Path("/m"))


@pytest.mark.parametrize(
    "image",
    [
        None,
        KERNEL,
        replace(KERNEL, release="6.16.3-amd64"),
    ],
)
def test_the_guest_says_what_it_boots(host, tmp_path, monkeypatch, image):
    monkeypatch.setattr(kernel, "cached", lambda: image)
    monkeypatch.setattr(trial, "verdict", lambda _kernel, _say: trial.Verdict(False, "no /dev/kvm"))
    found = findings(tmp_path)
    assert found["guest"].ok
    same_sentence(found["guest"].seen)
    if image is not None:
        same_sentence(found["guest with KVM"].seen)


def test_no_qemu_is_a_note_with_the_package(host, tmp_path, monkeypatch):
    def lacking():
        raise HostLacks("no QEMU", next_step="install the package qemu-system-x86")

    monkeypatch.setattr(boot, "qemu_program", lacking)
    found = findings(tmp_path)["guest"]
    assert (found.ok, found.needed, found.fix) == (False, False, "install the package qemu-system-x86")

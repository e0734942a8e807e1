# SPDX-License-Identifier: Apache-2.0
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic
from golden_sentences import raises

from netjoule.core import secrets
from netjoule.core.errors import HostLacks, UsageError

CANARY = "canary-7f3a91-never-to-be-seen"


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(secrets, "_known", set())


def test_a_variable_a_file_and_a_vault_are_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("NETJOULE_TEST_PSK", "one")
    (tmp_path / "psk").write_text("two\nsecond line\n")
    vault = tmp_path / "vault"
    vault.write_text('#!/bin/sh\n[ "$1" = "lab/psk" ] && echo three\n')
    vault.chmod(0o755)
    monkeypatch.setenv("NETJOULE_VAULT", str(vault))
    assert secrets.resolve("env:NETJOULE_TEST_PSK").reveal() == "one"
    assert secrets.resolve(f"file:{tmp_path / 'psk'}").reveal() == "two"
    assert secrets.resolve("vault:lab/psk").reveal() == "three"


@pytest.mark.parametrize("reference", ["env:NETJOULE_NOT_SET", "file:/nonexistent/psk", "vault:lab/psk"])
def test_a_missing_secret_is_named_by_its_reference(monkeypatch, reference):
    monkeypatch.delenv("NETJOULE_VAULT", raising=False)
    with raises(HostLacks) as caught:
        secrets.resolve(reference, where="wifi.passphrase")
    assert str(caught.value).startswith("wifi.passphrase: ")


def test_a_vault_without_the_entry_says_so_without_its_words(tmp_path, monkeypatch):
    vault = tmp_path / "vault"
    vault.write_text(f"#!/bin/sh\necho {CANARY} >&2\nexit 5\n")
    vault.chmod(0o755)
    monkeypatch.setenv("NETJOULE_VAULT", str(vault))
    with raises(HostLacks) as caught:
        secrets.resolve("vault:lab/psk")
    assert CANARY not in str(caught.value)


def test_a_literal_is_refused_without_showing_it():
    with pytest.raises(UsageError) as caught:
        secrets.resolve(CANARY)
    assert CANARY not in str(caught.value)


def test_a_secret_does_not_print_format_or_serialise(monkeypatch):
    monkeypatch.setenv("NETJOULE_TEST_PSK", CANARY)
    secret = secrets.resolve("env:NETJOULE_TEST_PSK")
    assert CANARY not in f"{secret} {secret!r} {secret:>30} {[secret]}"
    assert secrets.redact(f"login with {CANARY} failed") == "login with *** failed"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps({"psk": secret})


def test_references_are_found_anywhere():
    document = {"wifi": {"passphrase": "env:A"}, "meters": [{"settings": {"password": "file:/b", "port": 3}}]}
    assert secrets.references(document) == ["env:A", "file:/b"]


def test_no_trace_of_a_secret_in_results_output_or_arguments(tmp_path):
    """The canary: a whole command with a secret in its topology, in a process of its own."""
    topology = {
        **synthetic.topology().document,
        "wifi": {"ssid": "net", "passphrase": "env:NETJOULE_TEST_PSK"},
    }
    (tmp_path / "t.yaml").write_text(json.dumps(topology))
    (tmp_path / "w.yaml").write_text(json.dumps(synthetic.workload().document))
    answer = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT_A_TESTBED, "t.yaml", "w.yaml"],
        cwd=tmp_path,
        env=os.environ | {"NETJOULE_TEST_PSK": CANARY, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1, answer.stderr
    assert "login with *** failed" in answer.stderr
    assert CANARY not in answer.stdout + answer.stderr
    files = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert any(p.name == "campaign.json" for p in files)
    assert not [p for p in files if CANARY.encode() in p.read_bytes()]
    assert b"env:NETJOULE_TEST_PSK" in (tmp_path / "out" / "campaign.json").read_bytes()


# Everything of `netjoule run` but the testbed itself, which fails with an error that quotes the secret;
# it also looks at the arguments of every process that it can see.
RUN_WITHOUT_A_TESTBED = """
import os, sys
from pathlib import Path
from netjoule.cli.app import run_command
from netjoule.core.errors import RunFailed
from netjoule.execution import runner
from netjoule.hosts import sandbox

def seen_in_arguments():
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.environ["NETJOULE_TEST_PSK"].encode() in place.read_bytes():
                return True
        except OSError:
            pass
    return False

def run_campaign(campaign, sink):
    assert not seen_in_arguments()
    try:
        raise ValueError("inner " + os.environ["NETJOULE_TEST_PSK"])
    except ValueError as error:
        raise RunFailed("login with " + os.environ["NETJOULE_TEST_PSK"] + " failed") from error

runner.run_campaign = run_campaign
sandbox.inside = lambda: "rootless"
sys.exit(run_command(["run", sys.argv[2], "--testbed", sys.argv[1], "--out", "out", "-v", "--json"]))
"""


def test_a_vaults_secret_reaches_a_program_by_its_environment_only(monkeypatch):
    monkeypatch.setenv("NETJOULE_VAULT", "echo shown-by")
    environ = {}
    settings = {"password": "vault:plug", "community": "env:SNMP", "file": "file:/x", "outlet": 1}
    given = secrets.into_environment({"meters": [{"settings": settings}]}, environ)
    (changed,) = [meter["settings"] for meter in given["meters"]]
    assert changed == settings | {"password": f"env:{next(iter(environ))}"}
    assert list(environ.values()) == ["shown-by plug"]
    assert "shown-by" not in str(given)

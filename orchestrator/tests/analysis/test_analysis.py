# SPDX-License-Identifier: Apache-2.0
"""The R program is replaced by small shell scripts that say what it says."""

import os
from pathlib import Path

import pytest
import synthetic
from golden_sentences import raises

from netjoule.analysis import analysis
from netjoule.cli import launch
from netjoule.core import programs
from netjoule.core.errors import HostLacks, InvalidData, RunFailed


@pytest.fixture
def rscript(tmp_path, monkeypatch):
    def make(body):
        path = tmp_path / "Rscript"
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)
        monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))

    return make


def run(tmp_path, verb="analyse"):
    seen = []
    analysis.run_analysis(verb, tmp_path, seen.append)
    return seen


def test_events_are_passed_on_and_other_lines_are_not(rscript, tmp_path):
    rscript('echo \'{"event":"table","path":"x.csv"}\'\necho hello\necho \'[1]\'\n')
    assert run(tmp_path) == [{"event": "table", "path": "x.csv"}]


def test_it_gets_the_campaign_the_contracts_and_the_library(rscript, tmp_path):
    body = (
        'case "$2" in *analysis-r/exec/analyse.R) ;; *) exit 9;; esac\n'
        '[ -d "$NETJOULE_CONTRACTS/schemas" ] && [ -n "$NETJOULE_R_LIBRARY" ] || exit 8\n'
        'echo "{\\"event\\":\\"args\\",\\"rest\\":\\"$3 $4 $5\\"}"\n'
    )
    rscript(body)
    assert run(tmp_path)[0]["rest"] == f"{tmp_path} --json "
    assert run(tmp_path, "report")[0]["rest"] == f"{tmp_path} --json --report"


def test_campaigns_of_table_iv_are_asked_for_together(rscript, tmp_path):
    rscript('shift 2\nprintf \'{"event":"args","rest":"%s"}\\n\' "$*"\n')
    seen = []
    analysis.run_table_iv([tmp_path / "a", tmp_path / "b"], seen.append)
    assert seen == [{"event": "args", "rest": f"{tmp_path}/a --json --table-iv {tmp_path}/b"}]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            "echo 'The R package netjoule is not installed in x: run make setup.' >&2; exit 1",
            HostLacks,
            "make setup",
        ),
        (
            'echo \'{"event":"error","message":"plan.csv is broken."}\'; exit 4',
            InvalidData,
            "plan.csv is broken; ",
        ),
        ("echo warning >&2; echo 'cannot draw' >&2; exit 1", RunFailed, "analyse: cannot draw"),
        ("exit 7", RunFailed, "exit code 7"),
    ],
)
def test_its_failures_become_ours(rscript, tmp_path, body, kind, words):
    rscript(body)
    with pytest.raises(kind, match=words):
        run(tmp_path)


def test_without_r_the_way_to_get_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises(HostLacks) as caught:
        analysis.run_analysis("analyse", tmp_path, print)
    assert caught.value.exit_code == 3


def test_a_package_older_than_its_sources_is_refused_before_a_campaign(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "checkout", lambda: tmp_path)
    monkeypatch.setenv("NETJOULE_R_LIBRARY", str(tmp_path / "library"))
    installed = tmp_path / "library" / "netjoule" / "DESCRIPTION"
    sources = [tmp_path / "analysis-r" / name for name in ("DESCRIPTION", "R/words.R")]
    for place, file in enumerate([*sources, installed]):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (place, place))
    analysis.require_fresh_r()
    os.utime(sources[1], (9, 9))
    with raises(HostLacks):
        analysis.require_fresh_r()
    workload, topology = synthetic.workload(), synthetic.topology()
    with pytest.raises(HostLacks, match="older than its sources"):
        launch.require_programs(launch.Inputs(workload, topology, Path("w"), Path("t")))
    installed.unlink()
    analysis.require_fresh_r()


def test_a_flood_of_warnings_does_not_block(rscript, tmp_path):
    warning = "Warning: a long line of warnings from R"
    body = f"i=0; while [ $i -lt 3000 ]; do echo '{warning}' >&2; i=$((i+1)); done\n"
    rscript(body + 'echo \'{"event":"end"}\'\n')
    assert run(tmp_path) == [{"event": "end"}]

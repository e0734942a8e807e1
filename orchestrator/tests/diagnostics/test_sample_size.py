# SPDX-License-Identifier: Apache-2.0
"""Blocks for a difference: R's number, the plan's time. The R program is replaced by shell scripts."""

import json
from pathlib import Path

import pytest
import synthetic
from golden_sentences import raises, same_sentence

from netjoule.analysis import analysis
from netjoule.cli.app import run_command
from netjoule.core import programs
from netjoule.core.console import Output
from netjoule.core.errors import InvalidData, UsageError
from netjoule.design.duration import forecast
from netjoule.design.multiplicity import LEAST_BLOCKS_TESTED, MOST_TESTS
from netjoule.diagnostics import sample_size
from netjoule.diagnostics.sample_size import Request

ROOT = Path(__file__).parents[3]
ANSWER = {"event": "blocks_needed", "words": ["12 blocks find it.", "TCP against UDP: 12"], "blocks_n": 12}


@pytest.fixture
def rscript(tmp_path, monkeypatch):
    """Puts a shell script in the place of Rscript."""

    def make(body):
        path = tmp_path / "Rscript"
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)
        found = programs.find
        monkeypatch.setattr(programs, "find", lambda name: str(path) if name == "Rscript" else found(name))
        return str(path)

    return make


@pytest.mark.parametrize(("text", "value"), [("3%", 3.0), ("3", 3.0), (" 2.5 % ", 2.5), ("0.5%", 0.5)])
def test_a_percentage_is_read_with_or_without_its_sign(text, value):
    assert sample_size.percent(text, "--mde") == value


@pytest.mark.parametrize("text", ["", "0", "0%", "100%", "-3%", "three", "3%%", "1e2", "nan"])
def test_what_is_no_percentage_is_refused(text):
    with raises(UsageError):
        sample_size.percent(text, "--mde")


def test_r_gets_the_effective_workload_and_its_answer_is_passed_on(rscript, campaign_dir):
    workload = synthetic.workload(transports=["udp", "tcp", "null"], blocks=8)
    body = (
        'seen="$3"; shift 3\n'
        'while [ $# -gt 0 ]; do case "$1" in --mde) mde=$2; shift;; --power) power=$2; shift;;'
        ' --workload) name=$(sed "s/.*\\"blocks\\": \\([0-9]*\\).*/\\1/" "$2"); shift;; esac; shift; done\n'
        'echo "{\\"event\\":\\"args\\",\\"seen\\":\\"$seen\\",\\"rest\\":\\"$mde $power $name\\"}"\n'
    )
    rscript(body)
    events = []
    analysis.run_blocks_needed(campaign_dir, workload.document, 3.0, 0.9, events.append)
    assert events == [{"event": "args", "seen": str(campaign_dir), "rest": "3.0 0.9 8"}]


def test_the_blocks_are_told_with_their_time(rscript, campaign_dir, capsys):
    rscript(f"echo '{json.dumps(ANSWER)}'\n")
    workload = synthetic.workload()
    size = forecast(workload, synthetic.topology())
    sample_size.tell(Request("3%", campaign_dir, None), workload, size, Output())
    lines = capsys.readouterr().out.splitlines()
    same_sentence(lines[0])
    same_sentence(lines[1].strip())
    same_sentence(lines[2].strip())
    sample_size.tell(Request("3%", campaign_dir, None), workload, size, Output(json_lines=True))
    assert json.loads(capsys.readouterr().out) == ANSWER


def test_without_an_end_there_is_no_time(rscript, campaign_dir, capsys):
    rscript(f"echo '{json.dumps(ANSWER | {'blocks_n': None})}'\n")
    workload = synthetic.workload()
    size = forecast(workload, synthetic.topology())
    sample_size.tell(Request("3%", campaign_dir, None), workload, size, Output())
    assert "take" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "request_",
    [
        Request("3%", None, None),
        Request(None, Path("x"), None),
        Request(None, None, "80%"),
        Request("3%", Path("nowhere"), None),
        Request("3%", Path("nowhere"), "0%"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(request_):
    workload = synthetic.workload()
    with raises(UsageError):
        sample_size.tell(request_, workload, forecast(workload, synthetic.topology()), Output())


def test_an_answer_that_was_printed_ends_with_0(rscript, campaign_dir, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = [*ANSWER["words"], "As it is, the workload finds nothing: 3 blocks can give p = 0.25 at least."]
    rscript(f"echo '{json.dumps(ANSWER | {'words': words})}'\n")
    assert run_command(["plan", "demo", "--mde", "3%", "--pilot", str(campaign_dir)]) == 0
    seen = capsys.readouterr()
    same_sentence(seen.out)
    assert seen.err == ""


def test_a_pilot_that_decides_nothing_is_invalid_data(rscript, campaign_dir):
    workload = synthetic.workload()
    rscript('echo \'{"event":"error","message":"The pilot has no two blocks."}\'\nexit 4\n')
    with raises(InvalidData):
        sample_size.tell(
            Request("3%", campaign_dir, None), workload, forecast(workload, synthetic.topology()), Output()
        )


def test_a_plan_without_a_question_asks_nothing_of_r(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(analysis, "run_blocks_needed", lambda *_: pytest.fail("R is not asked"))
    assert run_command(["plan", "demo"]) == 0
    assert "blocks find" not in capsys.readouterr().out


def test_a_plan_says_from_how_many_blocks_on_tests_are_made(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert run_command(["plan", "demo"]) == 0
    said = "0.25 possible with 3 blocks (sign-flip test); tests need 8 blocks or more"
    assert said in capsys.readouterr().out
    assert run_command(["plan", "table-i"]) == 0
    assert "tests need" not in capsys.readouterr().out
    # The number is R's.
    family = (ROOT / "analysis-r" / "R" / "statistics.R").read_text()
    assert f"least_blocks_tested <- {LEAST_BLOCKS_TESTED}L" in family
    assert f"most_tests <- {MOST_TESTS}L" in family


def test_a_margin_reaches_r(rscript, campaign_dir):
    rscript('echo "{\\"event\\":\\"args\\",\\"rest\\":\\"$4 $5 $6 $7\\"}"\n')
    events = []
    analysis.run_analysis("report", campaign_dir, events.append, margin_percent=3.0)
    assert events[0]["rest"] == "--json --report --margin 3.0"


def test_the_family_is_told_by_analyse(campaign_dir, monkeypatch, capsys):
    def fake_r(verb, campaign, sink, **_):
        (campaign / "tables").mkdir(exist_ok=True)
        (campaign / "tables/ea_summary.csv").write_text(
            "meter_id,node,transport,payload_bytes,offered_rate_mbps,ea_j_per_mbit_mean\n"
        )
        (campaign / "tables/contrasts.csv").write_text(
            "transport,in_family,inference,p_holm,words\n"
            "tcp,true,tested,0.047,TCP took less.\n"
            "quic,true,intervals_only,,QUIC: 3 % less.\n"
            "dccp,false,exploratory,,\n"
        )

    monkeypatch.setattr(analysis, "run_analysis", fake_r)
    assert run_command(["analyse", str(campaign_dir), "--margin", "3%"]) == 0
    text = capsys.readouterr().out
    assert "TCP took less." in text
    assert "QUIC: 3 % less." not in text
    assert run_command(["analyse", str(campaign_dir), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    contrasts = [e for e in events if e["event"] == "contrast"]
    assert [c["transport"] for c in contrasts] == ["tcp", "quic", "dccp"]
    assert contrasts[0]["p_holm"] == 0.047
    assert run_command(["analyse", str(campaign_dir), "--margin", "wide"]) == 2
    same_sentence(capsys.readouterr().err)

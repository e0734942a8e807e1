# SPDX-License-Identifier: Apache-2.0
import csv
import subprocess

import pytest
import verdict_documents as made
from go_programs import BENCHSTAT, built

from netjoule.gate.outputs import benchstat


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return built(BENCHSTAT, tmp_path_factory.mktemp("go"))


def told(program, text: str, tmp_path) -> tuple[list[list[str]], str]:
    """Rows of benchstat's CSV, and what it complains about."""
    file = tmp_path / "gate.txt"
    file.write_text(text)
    words = [program, "-format", "csv", "-col", "arm", file]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [row for row in csv.reader(done.stdout.splitlines()) if row], done.stderr


def test_benchstat_prints_our_lines(program, tmp_path):
    rows, complaints = told(program, benchstat.text(made.verdict("inconclusive")), tmp_path)
    assert rows[:4] == [
        ["rig: emulated"],
        ["workload: gate-64"],
        ["session: first"],
        ["", "base", "", "head", "", "", ""],
    ]
    (line,) = [row for row in rows if row[0].startswith("Gate_64")]
    assert (float(line[1]), float(line[3])) == (pytest.approx(0.02), pytest.approx(0.021))
    assert "syntax" not in complaints


def test_a_session_is_a_table_of_its_own(program, tmp_path):
    rows, _ = told(program, benchstat.text(made.verdict("fail")), tmp_path)
    sessions = [row[0] for row in rows if row[0].startswith(("session:", "Gate_64"))]
    assert sorted(sessions) == ["Gate_64", "Gate_64", "session: confirming", "session: first"]


def test_one_line_per_block_and_arm():
    lines = benchstat.text(made.verdict("pass")).splitlines()
    assert lines[:5] == [
        "Unit J/Mb better=lower",
        "rig: emulated",
        "workload: gate-64",
        "session: first",
        "arm: base",
    ]
    assert lines.count("BenchmarkGate_64 1 0.02 J/Mb") == 3
    assert sum(line.startswith("Benchmark") for line in lines) == 8


@pytest.mark.parametrize("objective", ["energy", "throughput", "cpu_time", "p99_delay"])
def test_less_is_better_of_every_objective(objective):
    first, *_ = benchstat.text(made.verdict("pass", objective=objective, unit="s/Mb")).splitlines()
    assert first == "Unit s/Mb better=lower"


def test_hostile_names_stay_names(program, tmp_path):
    text = benchstat.text(made.hostile())
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    rows, complaints = told(program, text, tmp_path)
    assert "syntax" not in complaints
    assert [float(row[1]) for row in rows if row[0].startswith("A_b__")] == [1.5]

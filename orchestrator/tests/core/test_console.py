# SPDX-License-Identifier: Apache-2.0
import io
import json

import pytest
import synthetic
from golden_sentences import raises
from rich.console import Console

from netjoule.cli.progress import ea_text, event_document, progress_sink
from netjoule.core.console import Output, describe_error, duration_text
from netjoule.core.errors import HostLacks, InvalidData, NetjouleError, RunFailed, UsageError, file_errors
from netjoule.design.run_table import expand
from netjoule.execution.progress import ProgressEvent

ROW = expand(synthetic.workload(), 1)[0]
NODE = {"meter_id": "m", "ea_j_per_mbit": 0.12345, "u95_ea_j_per_mbit": 0.0123, "power_source": "modelled"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.6, "1 min 0 s"), (390, "6 min 30 s"), (12_000, "3 h 20 min"), (90_000, "1 day 1 h"),
     (1_052_000, "12 days 4 h")],
)  # fmt: skip
def test_lengths_of_time(seconds, text):
    assert duration_text(seconds) == text


def test_exit_codes_of_the_tree():
    codes = [kind("x").exit_code for kind in (NetjouleError, RunFailed, UsageError, HostLacks, InvalidData)]
    assert codes == [1, 1, 2, 3, 4]


def test_an_error_says_where_what_and_what_next():
    error = UsageError("7 is too much", where="w.yaml, line 3", next_step="use 6")
    assert str(error) == "w.yaml, line 3: 7 is too much; use 6"


def test_file_errors_become_sentences(tmp_path):
    with (
        raises(RunFailed) as caught,
        file_errors("read", tmp_path / "nothing"),
    ):
        (tmp_path / "nothing").read_text()
    assert list(describe_error(caught.value, chain=True))[1].startswith("  caused by FileNotFoundError")
    assert len(list(describe_error(caught.value))) == 1


def test_an_event_for_machines_holds_its_run_and_its_ea():
    event = ProgressEvent("run_result", 12.3456789, 3, 96, 300.04, ROW, "valid", [NODE])
    document = json.loads(json.dumps(event_document(event)))
    assert document["event"] == "run_result"
    assert document["t_s"] == 12.345679
    assert document["run_id"] == ROW.run_id
    assert document["nodes"][0]["ea_j_per_mbit"] == 0.12345


def test_the_bar_shows_remaining_time_and_the_last_ea():
    output = Output()
    screen = io.StringIO()
    output.errors = Console(file=screen, force_terminal=True, width=160)
    with progress_sink(output, 96) as sink:
        sink(ProgressEvent("run_started", 1.0, 2, 96, 330.0, ROW))
        sink(ProgressEvent("run_result", 2.0, 3, 96, 300.0, ROW, "valid", [NODE]))
    text = screen.getvalue()
    assert "3/96 runs, 5 min 0 s left" in text
    assert "E_A 0.123 ±0.012 J/Mb (modelled)" in text


def test_a_grade_stands_beside_ea_and_below_resolution_is_only_a_limit():
    assert ea_text([{**NODE, "grade": "C"}]) == "E_A 0.123 ±0.012 J/Mb (modelled, grade C)"
    below = ea_text([{**NODE, "grade": "below_resolution"}])
    assert below == "E_A under 0.14 J/Mb, below resolution (modelled)"


def test_a_client_without_a_flow_does_not_stand_for_the_run():
    idle = {**NODE, "meter_id": "of-tablet", "ea_j_per_mbit": None, "ea_reason": "took_no_part"}
    assert ea_text([idle, NODE]) == ea_text([NODE]) == "E_A 0.123 ±0.012 J/Mb (modelled)"
    assert ea_text([idle]) == "took no part"


def test_a_run_without_ea_says_why(capsys):
    output = Output()
    with progress_sink(output, 2) as sink:
        node = {**NODE, "ea_j_per_mbit": None, "ea_reason": "below_resolution"}
        sink(ProgressEvent("run_result", 1.0, 1, 2, 4.0, ROW, "valid", [node]))
        sink(ProgressEvent("repeat", 1.0, 1, 2, 4.0, ROW, "invalid (meter_gap: 3 s missing), again"))
        sink(ProgressEvent("run_result", 1.0, 1, 2, 4.0, ROW, "meter_gap: 3 s missing", [NODE]))
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.endswith("below resolution (4 s left)")
    assert "invalid (meter_gap: 3 s missing), again" in second
    assert third.endswith("meter_gap: 3 s missing (4 s left)")  # E_A of a run that does not count is not told


def test_what_a_terminal_would_obey_is_written_out(capsys):
    output = Output()
    output.say("file \x1b[31m1\nfile \u202e2")
    output.error("file \x1b]0;title\x07\nend")
    seen = capsys.readouterr()
    assert seen.out == "file \\x1b[31m1\nfile \\u202e2\n"
    assert seen.err == "file \\x1b]0;title\\x07 end\n"


def test_energy_of_work_that_is_not_in_megabits_is_told_per_unit_of_it() -> None:
    node = {"power_source": "modelled", "work_unit": "run", "energy_per_work_j": 0.104, "grade": "C"}
    assert ea_text([{**node, "u95_energy_per_work_j": 0.048}]) == "0.104 ±0.048 J/run (modelled, grade C)"
    below = {**node, "energy_per_work_j": None, "upper_limit_energy_per_work_j": 0.00112}
    assert ea_text([below]) == "under 0.0011 J/run, below resolution (modelled)"
    none = {**node, "energy_per_work_j": None, "ea_reason": "idle_missing"}
    assert ea_text([none]) == "idle missing"

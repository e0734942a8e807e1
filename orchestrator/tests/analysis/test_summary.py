# SPDX-License-Identifier: Apache-2.0
"""Grades, warnings and verdicts in words, out of the results of a campaign."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from result_documents import result_document

from netjoule.analysis.energy_table import energy_tables
from netjoule.analysis.floor_warnings import floor_warnings, wake_ups_line
from netjoule.analysis.summary import (
    FAIRNESS_FILE,
    VERDICT_FILE,
    grade_lines,
    rows_of,
    tell,
)
from netjoule.core.console import Output
from netjoule.core.tables import Table
from netjoule.design.run_table import PlanRow
from netjoule.loads.flow.energy_table import fairness_line, outside_lines, summary_tables
from netjoule.store.planfile import append_status, write_plan
from netjoule.workload.cell import Cell
from netjoule_contracts import transports


def result(campaign: Path, run_id: str, valid: bool, *nodes: dict[str, Any]) -> None:
    folder = campaign / "runs" / run_id
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result_document(*nodes, valid=valid)))


def cells_of(table: Table, name: str) -> list[str]:
    """The cells of a column."""
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in table.rows if row]


def test_grades_are_counted_by_meter_and_what_limits_them_is_said(tmp_path: Path) -> None:
    coarse = {"meter_id": "plug", "grade": "C", "grade_limits": ["accuracy_unknown", "wide"]}
    result(tmp_path, "a", True, coarse, {"meter_id": "wt", "grade": "A", "grade_limits": []})
    result(tmp_path, "b", True, {**coarse, "grade": "below_resolution", "grade_limits": ["accuracy_unknown"]})
    result(tmp_path, "c", False, coarse)
    result(tmp_path, "d", True, {"meter_id": "plug", "grade": None})
    assert grade_lines(tmp_path) == [
        "grade of meter plug: 1 x C, 1 x below resolution"
        "; a better grade is ruled out by: accuracy of the meter unknown, u95 over 5 %",
        "grade of meter wt: 1 x A",
    ]


def floored(campaign: Path, run_id: str, floor_w: float | None, *codes: str, **changes: Any) -> None:
    node = {"meter_id": "m", "delta_p_w": 1.0, "below_resolution": False, "floor": {"floor_w": floor_w}}
    document = result_document(
        node | changes.pop("node", {}),
        payload_bytes=64,
        offered_rate_mbps=1.0,
        reasons=[{"code": code, "detail": ""} for code in codes],
        **{"transport": run_id if run_id in transports() else "udp"} | changes,
    )
    folder = campaign / "runs" / run_id
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(document))


def planned(run_id: str, mini_block: int, cell: Cell) -> PlanRow:
    """A valid run."""
    return PlanRow(run_id, 1, mini_block, 1, 1, "flow", "work", "udp", 1, cell, status="valid")


def write(campaign: Path, rows: Sequence[PlanRow]) -> None:
    """Its plan with the status of each run."""
    write_plan(campaign, rows)
    append_status(campaign, rows, 1, datetime.now(UTC))


def warned(campaign: Path, *superseded: str) -> list[dict[str, Any]]:
    """Warnings of a campaign whose plan has all runs that were written."""
    names = sorted(path.name for path in (campaign / "runs").iterdir())
    rows = []
    for order, name in enumerate(names, start=1):
        # Each run has its own cell; a valid one whose mini-block was repeated is superseded.
        rows.append(planned(name, order, Cell({"payload_bytes": 63 + order})))
        if name in superseded:
            rows.append(replace(planned(f"{name}-again", order, rows[-1].cell), attempt=2))
    write(campaign, rows)
    return floor_warnings(campaign)


def test_a_large_floor_is_counted_by_meter_with_its_worst_cell(tmp_path: Path) -> None:
    floored(tmp_path, "udp", 0.3, "floor_large")
    floored(tmp_path, "tcp", 0.45, "floor_large")
    floored(tmp_path, "quic", 0.1)
    floored(tmp_path, "dccp", None)
    floored(tmp_path, "lost", 0.9, "floor_large", valid=False)
    floored(tmp_path, "weak", 0.9, node={"below_resolution": True})
    floored(tmp_path, "repeated", 0.9, "floor_large")
    (warning,) = warned(tmp_path, "repeated")
    assert warning == {
        "code": "floor_large",
        "meter_id": "m",
        "runs": 2,
        "of_runs": 3,
        "floor_ratio": pytest.approx(0.45),
        "cell": "tcp 64 B, 1 Mb/s",
    }


def test_cells_with_a_run_that_was_refused_a_floor_for_its_outcome_are_not_warned_of(tmp_path: Path) -> None:
    refused = {"floor": {"floor_w": None, "reason": "floor_core_busy"}}
    runs: list[tuple[str, int, float | None, dict[str, Any]]] = [
        ("b01m001-udp-a1", 0, 0.3, {}),
        ("b01m001-tcp-a1", 0, 0.9, {}),
        ("b02m003-tcp-a1", 0, None, refused),
        ("b01m002-tcp-a1", 200, 0.4, {}),
    ]
    rows = []
    for run_id, window_us, floor_w, node in runs:
        transport = run_id[8:11]
        floored(tmp_path, run_id, floor_w, "floor_large", transport=transport, node=node)
        cell = Cell({"payload_bytes": 64, "window_us": window_us})
        rows.append(replace(planned(run_id, len(rows) + 1, cell), arm=transport))
    write(tmp_path, rows)
    (warning,) = floor_warnings(tmp_path)
    assert (warning["runs"], warning["of_runs"]) == (2, 2)
    assert (warning["floor_ratio"], warning["cell"]) == (pytest.approx(0.4), "tcp 64 B, 1 Mb/s")


def test_null_runs_that_woke_up_otherwise_are_counted_with_the_worst_of_them(tmp_path: Path) -> None:
    code = "floor_wake_ups_differ"

    def woken(run_id: str, null: str, *codes: str, **changes: Any) -> None:
        floor = {"floor": {"floor_w": 0.1, "run_id": null}}
        floored(tmp_path, run_id, 0.1, *codes, wake_ups_per_message=1.0, node=floor, **changes)

    woken("udp", "null-a", code)
    woken("tcp", "null-b", code)
    woken("quic", "null-a")
    woken("lost", "null-b", code, valid=False)
    floored(tmp_path, "null-a", None, wake_ups_per_message=1.6)
    floored(tmp_path, "null-b", None, wake_ups_per_message=3.0)
    (warning,) = warned(tmp_path)
    assert warning == {
        "code": code,
        "runs": 2,
        "of_runs": 3,
        "wake_ups_per_message": 1.0,
        "wake_ups_per_message_of_null": 3.0,
        "cell": "tcp 64 B, 1 Mb/s",
    }
    assert wake_ups_line(warning).startswith(
        "warning floor_wake_ups_differ: in 2 of 3 runs wake-ups per message differ from those of the"
        " null run by more than a factor of 1.5, worst 1 against 3 (tcp 64 B, 1 Mb/s)"
    )


def test_no_large_floor_no_warning(tmp_path: Path) -> None:
    floored(tmp_path, "udp", 0.19)
    assert warned(tmp_path) == []


def test_the_pacers_verdict_is_read_where_there_is_one(tmp_path: Path) -> None:
    assert rows_of(tmp_path, VERDICT_FILE) == []
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/pacer_verdict.csv").write_text('transport,words\nudp,"It spins, so there."\n')
    assert rows_of(tmp_path, VERDICT_FILE) == [{"transport": "udp", "words": "It spins, so there."}]


def test_fairness_is_told_where_runs_have_several_flows(tmp_path: Path) -> None:
    assert rows_of(tmp_path, FAIRNESS_FILE) == []
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/fairness.csv").write_text(
        "transport,payload_bytes,offered_rate_mbps,pacing,window_us,gso,flows,jain_goodput,jain_demand_met\n"
        "udp,1440,25,absolute,0,false,2,0.81234,\n"
        "tcp,1440,25,spin,0,false,2,1,0.5\n"
    )
    udp, tcp = map(fairness_line, rows_of(tmp_path, FAIRNESS_FILE))
    assert udp == "fairness of udp 1440 B 25 Mb/s, 2 flows: Jain's index 0.812, of demand met none"
    assert tcp.startswith("fairness of tcp 1440 B 25 Mb/s, pacing spin, 2 flows: Jain's index 1.000")


def row(**changes: str) -> dict[str, str]:
    names = ("node", "transport", "payload_bytes", "offered_rate_mbps", "ea_j_per_mbit_mean")
    plain = dict(zip(names, ("client", "udp", "64", "1", "0.1"), strict=True))
    return plain | {"meter_id": "m", "n": "2"} | changes


def test_cells_of_different_pacing_stand_in_tables_of_their_own() -> None:
    rows = [row(pacing=pacing, window_us="0", gso="false") for pacing in ("absolute", "spin")]
    first, second = summary_tables([*rows, row(pacing="spin", transport="null")])
    assert [len(table.rows) for table in (first, second)] == [1, 1]
    assert str(first.title).endswith("; pacing absolute")
    assert str(second.title).endswith("; pacing spin")
    windowed = rows[0] | {"window_us": "200", "gso": "true"}
    _, third = summary_tables([rows[0], windowed])
    assert str(third.title).endswith("; pacing absolute, window 200 us, offload")
    (alone,) = summary_tables(rows[:1])
    assert "pacing" not in str(alone.title)


def test_the_table_says_which_flows_ran_at_once_where_there_were_several() -> None:
    words = "udp up 5 Mb/s + tcp up 100 Mb/s"
    alone = row(offered_rate_mbps="9", flows_at_once="")
    (several,) = summary_tables([row(flows_at_once=words), alone])
    assert cells_of(several, "flows at once") == [words, ""]
    assert "E_A, sent and loss are of all flows at once" in str(several.caption)
    (plain,) = summary_tables([row()])
    assert "flows at once" not in [column.name for column in plain.columns]
    assert "flows at once" not in str(plain.caption)


def test_e_a_above_floor_stands_beside_e_a_where_the_floor_is_large() -> None:
    large = row(floor_ratio="0.45", ea_above_floor_j_per_mbit="0.055")
    small = row(offered_rate_mbps="6", floor_ratio="0.1", ea_above_floor_j_per_mbit="0.09")
    refused = row(offered_rate_mbps="9", floor_ratio="", ea_above_floor_j_per_mbit="")
    (table,) = summary_tables([large, small, refused])
    names = [column.name for column in table.columns]
    assert names.index("above floor") == names.index("E_A J/Mb") + 1
    assert list(cells_of(table, "above floor")) == ["0.055", "0.09", "none"]
    assert "over 20 % of P_A - P_I in 1 of 3 cells (at most 45 %)" in str(table.caption)
    at_limit = row(floor_ratio="0.2", ea_above_floor_j_per_mbit="0.08")
    extrapolated = large | {"hollow": "true", "offered_rate_mbps": "2"}
    for rows in ([small, refused], [at_limit], [extrapolated]):
        (plain,) = summary_tables(rows)
        assert "above floor" not in [column.name for column in plain.columns]
        assert "above floor" not in str(plain.caption)
    (both,) = summary_tables([large, extrapolated])
    assert list(cells_of(both, "above floor")) == ["0.055", "none"]


def test_a_large_floor_is_in_the_table_and_no_warning_to_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    floored(tmp_path, "udp", 0.45, "floor_large")
    assert len(warned(tmp_path)) == 1
    columns = row(n="1", floor_ratio="0.45", ea_above_floor_j_per_mbit="0.055")
    (tmp_path / "tables").mkdir()
    lines = (",".join(columns), ",".join(columns.values()))
    (tmp_path / "tables/ea_summary.csv").write_text("\n".join(lines) + "\n")
    tell(tmp_path, Output())
    told = capsys.readouterr().out
    assert "above floor: E_A without" in told
    assert "0.055" in told
    assert "warning" not in told
    tell(tmp_path, Output(json_lines=True))
    assert '"floor_large"' in capsys.readouterr().out


def test_a_second_device_outside_its_validity_is_one_line() -> None:
    inside = row()
    outside = [
        row(meter_id="ap", node="access_point", device_model="bridge", hollow="true", transport=transport)
        for transport in ("udp", "tcp", "null")
    ]
    (table,) = summary_tables([inside, *outside])
    assert "meter m)" in str(table.title)
    assert outside_lines([inside, *outside]) == [
        "E_A of access_point (meter ap): all 2 cells lie outside the validity of device model bridge;"
        " they are in tables/ea_summary.csv"
    ]
    # One cell that is inside brings the table back, and the first device always has its own.
    partly = [*outside[:1], {**outside[1], "hollow": "false"}]
    assert len(list(summary_tables([inside, *partly]))) == 2
    assert outside_lines([inside, *partly]) == []
    assert len(list(summary_tables(outside))) == 1
    assert outside_lines(outside) == []


def test_a_campaign_without_results_has_no_grades(tmp_path: Path) -> None:
    assert grade_lines(tmp_path) == []


def test_without_any_power_there_are_measures_alone() -> None:
    row = {"node": "client", "meter_id": "client", "device_model": "", "power_source": "modelled"}
    row |= {
        "radio_source": "simulated",
        "scaling": "none",
        "kind": "work",
        "p_a_w": "",
        "energy_per_work_j": "",
    }
    measures = {"t_a_mbps": "9.5", "t_a_mbps_ci95_low": "9.4", "jitter_ms": "", "jitter_ms_ci95_low": ""}
    (table,) = energy_tables([row | measures | {"n": "3", "work_unit": "Mb"}])
    assert [column.name for column in table.columns] == ["scaling", "t_a_mbps", "n"]
    assert cells_of(table, "t_a_mbps") == ["9.5"]


def test_a_control_row_has_its_kind_and_an_empty_cell_where_others_have_a_measure() -> None:
    ends = {"energy_per_work_j_ci95_high": "", "late_ms_ci95_low": "", "tail_energy_j": ""}
    row = dict.fromkeys(("upper_limit_energy_per_work_j", "u95_energy_per_work_j", "e_d_j", "e_t_j"), "")
    row |= ends | {
        "p_a_w": "5",
        "below_resolution_n": "0",
        "runs_n": "2",
        "hollow": "false",
        "n": "2",
        "work_unit": "Mb",
    }
    head = {"node": "client", "meter_id": "m", "device_model": "", "power_source": "measured"}
    head |= {"radio_source": "wired"}
    rows = [
        head | {"size": "64", "kind": "work", "energy_per_work_j": "0.5", "late_ms": "3"} | row,
        head | {"size": "", "kind": "control", "energy_per_work_j": "", "late_ms": ""} | row,
    ]
    (table,) = energy_tables(rows)
    assert cells_of(table, "size") == ["64", "control"]
    assert cells_of(table, "late_ms") == ["3", ""]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, "0.35"),
        ({"floor_w": "0.39"}, None),
        ({"hollow": "true"}, None),
        ({"below_resolution_n": "1"}, None),
    ],
)
def test_energy_above_floor_stands_beside_energy_where_the_floor_is_over_a_fifth(
    change: dict[str, str], shown: str | None
) -> None:
    row = dict.fromkeys(("upper_limit_energy_per_work_j", "u95_energy_per_work_j", "e_d_j", "e_t_j"), "")
    row |= {
        "energy_per_work_j_ci95_high": "",
        "tail_energy_j": "",
        "runs_n": "2",
        "n": "2",
        "work_unit": "Mb",
    }
    row |= {"node": "client", "meter_id": "m", "device_model": "", "power_source": "measured"}
    row |= {"radio_source": "wired", "p_a_w": "7", "delta_p_w": "2", "energy_per_work_j": "0.5"}
    row |= {"below_resolution_n": "0", "hollow": "false"}
    with_floor = {
        "client": "fixed",
        "kind": "work",
        "floor_w": "0.6",
        "energy_per_work_above_floor_j": "0.35",
    }
    without = {"client": "null", "kind": "control", "floor_w": "", "energy_per_work_above_floor_j": ""}
    (table,) = energy_tables([row | with_floor | change, row | without])
    columns = [column.name for column in table.columns]
    found = cells_of(table, "above floor") if "above floor" in columns else None
    assert found == (None if shown is None else [shown, "none"])
    assert ("above floor: E without" in table.caption) is (shown is not None)

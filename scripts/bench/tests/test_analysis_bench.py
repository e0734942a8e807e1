# SPDX-License-Identifier: Apache-2.0
"""The bench of the analysis, on figures that are known."""

import pytest

from netjoule_bench.benches.analysis import Found, Taken, compared, judged
from netjoule_synthetic import cells, table_i, tiny


def section(again_s=40.0, peak_mb=1500.0, covered=0.95):
    first = Taken(90.0, 80.0, peak_mb)
    again = Taken(again_s, 35.0, 1400.0)
    return judged(table_i(), 95.0, 3.1, first=first, again=again, found=Found(384, 0.017, covered))


def words(made):
    return [verdict.word for verdict in made.verdicts]


def test_time_counts_beyond_the_first_pass_and_memory_with_it():
    assert words(section()) == ["met"] * 4
    assert words(section(again_s=60.1)) == ["NOT met", "met", "met", "met"]
    assert words(section(peak_mb=2000.5)) == ["met", "met", "NOT met", "met"]
    assert words(section(covered=0.5)) == ["met", "met", "met", "NOT met"]


def test_the_table_tells_what_was_analysed():
    made = section()
    assert [row[0] for row in made.rows] == [
        "write the campaign",
        "first analysis",
        "analysis with the per-run pass kept",
    ]
    assert made.rows[1][1:] == ["90.0", "80.0", "1,500"]
    assert "9,600 runs (udp+dccp+tcp+quic+null), 500 h of power at 10 Hz from 2 meters, 3.1 GB" in made.note
    streams = table_i(device_stream=True)
    first = Taken(90.0, 80.0, 1500.0)
    note = judged(streams, 95.0, 8.0, first=first, again=first, found=Found(384, 0.017, 0.95)).note
    assert "from 2 meters and of their device models' terms, 8.0 GB" in note


def rows_of(design, factor=1.0, width=0.02):
    return [
        {
            "meter_id": cell.meter_id,
            "transport": cell.transport,
            "payload_bytes": str(cell.payload_bytes),
            "offered_rate_mbps": f"{cell.offered_rate_mbps:g}",
            "ea_j_per_mbit_mean": str(factor * cell.ea_j_per_mbit),
            "ea_ci95_low": str((factor - width) * cell.ea_j_per_mbit),
            "ea_ci95_high": str((factor + width) * cell.ea_j_per_mbit),
        }
        for cell in cells(design)
    ]


def test_means_and_intervals_are_held_to_the_truth():
    design = tiny()
    found = compared(rows_of(design, factor=1.01), cells(design))
    assert (found.cells, found.covered) == (4, 1.0)
    assert found.greatest_error == pytest.approx(0.01)
    assert compared(rows_of(design, factor=1.03), cells(design)).covered == 0


def test_a_cell_that_is_missing_is_no_success():
    design = tiny()
    rows = rows_of(design)
    with pytest.raises(RuntimeError, match="no E_A of Cell"):
        compared(rows[1:], cells(design))
    rows[0]["ea_j_per_mbit_mean"] = ""
    with pytest.raises(RuntimeError, match="no E_A of Cell"):
        compared(rows, cells(design))

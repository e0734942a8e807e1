# SPDX-License-Identifier: Apache-2.0
"""Every table of the terminal at every width: no cell loses a character, no column goes without a mark."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule.cli import table_iv
from netjoule.core import tables
from netjoule.core.tables import Column, Table
from netjoule.diagnostics import selftest
from netjoule.loads.flow import energy_table

ROOT = Path(__file__).parents[3]


def of_summary() -> Table:
    """As ``demo``, ``quick``, ``run``, ``analyse`` and ``report`` print it."""
    names = ("node", "meter_id", "transport", "payload_bytes", "offered_rate_mbps", "ea_j_per_mbit_mean")
    cells = ("client", "client-cross-factor", "quic-datagram", "1440", "0.065", "0.0000891")
    more = {"ea_ci95_high": "0.0000985", "u95_meter": "0.00012", "achieved_ratio": "0.9987", "n": "40"}
    more |= {"loss_ratio": "0.0000123", "power_source": "modelled", "radio_source": "link-model"}
    rows = [dict(zip(names, cells, strict=True)) | more | {"transport": name} for name in ("udp", cells[2])]
    flows = {"flows_at_once": "udp up 5 Mb/s + tcp up 100 Mb/s"}
    (table,) = energy_table.summary_tables([row | flows for row in rows])
    return table


def of_selftest() -> Table:
    """As ``selftest`` prints it."""
    certificate = {
        "error_us": {"p50": 12345.6, "p99": 123456.7, "max": 1234567.8},
        "within_50us_ratio": 0.987,
        "back_to_back_ratio": 0.123,
        "achieved_ratio": 0.999,
        "cpu_ratio": 0.0123,
        "passed": False,
        "failed": ["max_error_us 60: it is 1234567.8", "min_achieved_ratio 0.99999: it is 0.999"],
    }
    flows = [{"transport": name, "pacing_certificate": certificate} for name in ("null", "udp")]
    pacing = {"mode": "absolute", "window_us": 50, "gso": True}
    document = {"host": "client", "payload_bytes": 1440, "offered_rate_mbps": 0.065, "pacing": pacing}
    return selftest.table([document | {"flows": flows, "flows_at_once": 3}])


def of_table_iv() -> Table:
    """As ``table-iv`` prints it."""
    row = {"application": "youtube", "transport": "dccp", "campaign_label": "an evening in autumn, repeated"}
    row |= {"node": "client", "meter_id": "m", "power_source": "modelled", "radio_source": "link-model"}
    row |= {"ea_cell": "< 0.0000891 °", "ea_j_per_mbit_mean": 8.91e-5, "ea_ci95_high": 9.85e-5, "n": 8}
    row |= {"u95_meter": 1.23e-4, "difference_j_per_mbit": -1.23e-5, "difference_percent": -26.4}
    row |= {"difference_p_a_w": -0.00325}
    published = {"ea_j_per_mbit": 45, "difference_j_per_mbit": -120, "difference_percent": -26}
    row |= {f"published_{name}": value for name, value in published.items()}
    (table,) = table_iv._tables([row | {"in_this_model": True, "differs": "power_source"}])
    return table


ALL = {"summary": of_summary, "selftest": of_selftest, "table-iv": of_table_iv}


@pytest.mark.parametrize("width", [20, 40, 80, 120, None])
@pytest.mark.parametrize("name", ALL)
def test_every_figure_and_every_heading_is_there_whole(name: str, width: int | None) -> None:
    table = ALL[name]()
    lines = list(tables.lines(table, width))
    words = " ".join("\n".join(lines).split())
    for number, column in enumerate(table.columns):
        assert all(word in words for word in column.name.split()), column
        for cell in (row[number] for row in table.rows if row):
            # A figure keeps its unit and marks beside it; words may fold.
            whole = [cell] if not column.text and width != 20 else cell.split()
            assert all(part in words for part in whole), (column, cell)
    assert "…" not in words
    if width is not None:
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize("name", ALL)
def test_without_a_width_a_table_has_one_line_a_row(name: str) -> None:
    table = ALL[name]()
    lines = list(tables.lines(table, None))
    around = (table.title != "") + (table.caption != "")
    assert len(lines) == around + 2 + len(table.rows)  # heading and rule


def test_parts_begin_with_what_names_the_row() -> None:
    columns = [Column("arm", right=False, key=True), *(Column(f"figure {n}") for n in range(4))]
    table = Table(columns, [["udp", "1.25e-05", "2.55e-05", "3.75e-05", "5e-05"]])
    assert list(tables.lines(table, 24)) == [
        *("arm  figure 0  figure 1", "───────────────────────", "udp  1.25e-05  2.55e-05", ""),
        *("               figure", "arm  figure 2       3", "─────────────────────", "udp  3.75e-05   5e-05"),
    ]
    assert list(tables.lines(table, 12))[:3] == ["arm: udp", "figure 0:", "1.25e-05"]


figure = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"{x:.3g}")


@given(rows=st.lists(st.tuples(*[figure] * 4), min_size=1, max_size=4), width=st.integers(12, 90))
def test_no_width_costs_a_digit(rows: list[tuple[str, ...]], width: int) -> None:
    columns = [Column("a", key=True), Column("b c"), Column("d", text=True), Column("e")]
    lines = list(tables.lines(Table(columns, rows), width))
    assert {cell for row in rows for cell in row} <= set(" ".join(lines).split())
    assert max(map(len, lines)) <= width


SHOW = """
import sys
from netjoule.cli.progress import progress_sink
from netjoule.core.console import Output, write_what_can_be_written
from netjoule.core.tables import Column, Table
from netjoule.execution.progress import ProgressEvent
from test_tables import ALL
write_what_can_be_written()
output = Output()
output.show(ALL[sys.argv[1]]())
with progress_sink(output, 3) as sink:
    sink(ProgressEvent("testbed_ready", 1.0, 1, 3, 4.0))
"""


def shown(name: str, *, columns: int | None, **environment: str) -> str:
    """What a process prints of a table: on a terminal of so many columns, or into a pipe."""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    env |= {"PYTHONPATH": str(Path(__file__).parent), "TERM": "xterm-256color", **environment}
    argv = [sys.executable, "-c", SHOW, name]
    if columns is None:
        encoding = environment.get("PYTHONIOENCODING", "utf-8")
        return subprocess.run(argv, env=env, capture_output=True, encoding=encoding, check=True).stdout
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(columns)], stdin=theirs, check=True)
    with subprocess.Popen(argv, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("name", ALL)
def test_a_pipe_has_no_width_and_no_style(name: str) -> None:
    text = shown(name, columns=None, COLUMNS="40", FORCE_COLOR="1")
    assert text == "".join(f"{line}\n" for line in tables.lines(ALL[name](), None))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_its_signs_gets_others_and_columns_line_up(encoding: str) -> None:
    whole = list(tables.lines(of_summary(), None))
    text = shown("summary", columns=None, LC_ALL="C", PYTHONIOENCODING=encoding)
    assert "\\" not in text
    assert "±" in "".join(whole)
    assert ("+/-" if encoding == "ascii" else "±") in text
    lines = text.splitlines()
    (rule,) = (number for number, line in enumerate(lines) if line and not line.strip("-"))
    assert len(lines[rule]) == max(map(len, lines[rule - 1 : rule + 3]))
    assert len(lines) == len(whole)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_gets_its_width_and_with_no_color_no_style(columns: int) -> None:
    expected = "".join(f"{line}\n" for line in tables.lines(of_summary(), columns))
    assert shown("summary", columns=columns).startswith(expected)
    plain = shown("summary", columns=columns, NO_COLOR="1")
    assert plain.startswith(expected)
    styles = [part.partition("m")[0] for part in plain.split("\x1b[")[1:] if part[:1].isdigit()]
    assert not [style for style in styles if style.replace(";", "").isdigit()]
    coloured = shown("summary", columns=columns)
    assert "\x1b[3" in coloured or "\x1b[1" in coloured or "\x1b[38" in coloured  # the bar has, where it may

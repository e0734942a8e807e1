# SPDX-License-Identifier: Apache-2.0
"""What is right of a coursework's campaigns: intervals, cells, and what R's tables say."""

import csv
import os
import subprocess

import coursework_folders as folders
import pytest
from golden_sentences import raises, same_sentence
from plans import plan

from netjoule.analysis import analysis, intervals
from netjoule.analysis.intervals import differ_clearly, half_width
from netjoule.core import programs
from netjoule.core.errors import HostLacks
from netjoule.coursework.cells import CannotTell, Cell, Cells, Run
from netjoule.coursework.exercises import EXERCISES


def test_intervals_are_those_of_printed_tables():
    for degrees, printed in folders.T_975.items():
        blocks = [1.0] + [0.0] * degrees  # their standard error is that of the printed table's t
        assert half_width(blocks) * (degrees + 1) == pytest.approx(printed, abs=6e-5)
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    with raises(ValueError):
        half_width([1.0])
    assert differ_clearly([(2.0, 1.0), (2.1, 1.05), (2.2, 1.1)])
    assert not differ_clearly([(1.0, 2.0), (2.0, 1.0), (3.0, 3.1)])
    assert not differ_clearly([(2.0, 1.0)])


def test_without_the_r_package_the_sentence_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("NETJOULE_R_LIBRARY", str(tmp_path))
    with intervals._r.__wrapped__("--intervals") as process:
        monkeypatch.setattr(intervals, "_r", lambda verb: process)
        with raises(HostLacks):
            half_width([4.0, 5.0, 7.0])


def cell(transport, values, name="ea_j_per_mbit", payload_bytes=64, rate_mbps=6.0):
    key = (transport, payload_bytes, rate_mbps)
    return [(key, Run(block, {name: value})) for block, value in enumerate(values, start=1)]


def test_transports_without_a_clear_difference_are_both_right():
    question = next(q for n, q in folders.QUESTIONS if q.name == "dearest_transport")
    near = Cells([*cell("udp", [1, 1.1, 0.9]), *cell("tcp", [2, 2.4, 1.7]), *cell("quic", [2.1, 2.2, 1.8])])
    assert question.right(near) == frozenset({"tcp", "quic"})
    apart = Cells([*cell("udp", [1, 1.1, 0.9]), *cell("tcp", [2, 2.1, 1.9]), *cell("quic", [3, 3.1, 2.8])])
    assert question.right(apart) == frozenset({"quic"})


def test_a_floor_that_a_run_was_refused_for_its_outcome_is_the_cells_no_more():
    def floor_of(reason):
        runs = (Run(1, {"floor_w": 0.3}), Run(2, {"delta_p_w": 0.5}, floor_reason=reason))
        return Cell(("udp", 64, 12.0), runs).mean("floor_w")

    assert floor_of("null_run_invalid") == 0.3
    with raises(CannotTell):
        floor_of("floor_core_busy")


@pytest.mark.parametrize(
    ("quic_above", "answers"),
    [
        ([1.0, 1.02, 0.98], {"above_floor"}),
        ([0.6, 0.61, 0.59], {"in_ea"}),
        ([0.6, 0.75, 0.95], {"above_floor", "in_ea"}),
        ([1.0, -0.1, 0.0], {"above_floor", "in_ea"}),
    ],
)
def test_where_transports_differ_more_is_decided_by_blocks(quic_above, answers):
    """E_A of QUIC is 1.5 times that of UDP in each block; above the floor UDP has 0.5 J/Mb."""
    names = ("ea_j_per_mbit", "ea_above_floor_j_per_mbit")
    runs = []
    for block, above in enumerate(quic_above, start=1):
        runs.append((("udp", 64, 12.0), Run(block, dict(zip(names, (1.0, 0.5), strict=True)))))
        runs.append((("quic", 64, 12.0), Run(block, dict(zip(names, (1.5, above), strict=True)))))
    question = next(q for _, q in folders.QUESTIONS if q.name == "transports_differ_more")
    assert question.right(Cells(runs)) == frozenset(answers)


def scaled(changes=()):
    """Cells of three blocks, by way of scaling and path: goodput, service rate and saving of each."""
    rates = {"none": 10.0, "practra-10": 8.0, "practra-100": 9.0, "practra-1000": 10.0}
    goodputs = {"none": 9.0, "practra-10": 7.2, "practra-100": 7.8, "practra-1000": 8.1}
    changes, found = dict(changes), []
    for path in ("rtt-10", "rtt-100", "rtt-10-bursts", "rtt-100-bursts"):
        for way, rate in rates.items():
            goodput = changes.get((way, path), goodputs[way])
            for block, off in enumerate((1.0, 1.001, 0.999), start=1):
                numbers = {
                    "goodput_mbps": goodput * off,
                    "service_rate_mbps": rate * off,
                    "saving_linear_ratio": max(0.0, 1 - rate / 10),
                }
                found.append(((way, path), Run(block, numbers)))
    return Cells(found)


def right_of(name, found):
    return next(q for _, q in folders.QUESTIONS if q.name == name).right(found)


def test_what_a_router_takes_and_saves_follows_from_the_campaign():
    assert right_of("loses_least_alone", scaled()) == {"practra-1000"}
    both = scaled({("practra-100", "rtt-100"): 8.1})
    assert right_of("loses_least_alone", both) == {"practra-100", "practra-1000"}
    assert right_of("saves_most_near", scaled()) == {"practra-10"}
    assert right_of("far_goodput_lost_percent", scaled()).value == pytest.approx(20.0)
    assert right_of("energy_more_percent", scaled()).value == pytest.approx(100 * (0.9 / 0.8 - 1))


def test_where_energy_per_megabit_stays_follows_from_what_is_saved_and_lost():
    question = scaled({("practra-10", "rtt-100"): 8.1})
    assert right_of("break_even_static_ratio", question).value == pytest.approx(1 - 0.1 / 0.2)
    for goodput in (9.0, 7.0):  # nothing is lost, or more than is saved
        with raises(CannotTell):
            right_of("break_even_static_ratio", scaled({("practra-10", "rtt-100"): goodput}))


def test_why_a_long_mrci_loses_more_is_asked_only_where_it_does():
    reversed_by_bursts = scaled({("practra-10", "rtt-100-bursts"): 8.5})
    assert right_of("long_mrci_loses_more_because", reversed_by_bursts) == {"rate_rises_too_late"}
    with raises(CannotTell):
        right_of("long_mrci_loses_more_because", scaled())


def test_a_router_that_brings_more_than_it_serves_is_none_of_the_model():
    strays = EXERCISES["scaling"].strays
    assert list(strays(scaled())) == []
    assert [*strays(scaled({("practra-10", "rtt-10"): 8.3}))] == [
        "practra-10, rtt-10 brings more than its router serves"
    ]


def test_a_cell_counts_blocks_once_and_says_what_it_lacks():
    key = ("udp", 64, 12.0)
    runs = (Run(1, {"floor_w": 1.0}), Run(1, {"floor_w": 3.0}), Run(2, {"floor_w": 5.0}), Run(3, {}))
    assert Cell(key, runs).mean("floor_w") == pytest.approx(3.5)
    with raises(CannotTell):
        Cell(key, runs).mean("loss_ratio")
    spun = Cell(key, (Run(1, {}, floor_reason="floor_spinning"),))
    with raises(CannotTell):
        spun.mean("floor_w")
    with raises(CannotTell):
        Cell(key, (Run(1, {"floor_w": 1.0}, hollow=True),)).mean("floor_w")
    with raises(CannotTell):
        Cells([]).at("udp", 64, 12)
    with raises(CannotTell):
        Cell(key, (Run(1, {"loss_ratio": 0.1}),)).half_width("loss_ratio")


def test_a_share_that_rounds_to_nothing_may_not_be_below_0():
    question = next(q for _, q in folders.QUESTIONS if q.name == "dccp_loss_ratio")
    none = question.right(Cells(cell("dccp", [0.0, 0.0], "loss_ratio", rate_mbps=20.0)))
    assert none.holds(0)
    assert none.holds(0.001)
    assert not none.holds(-0.0001)
    same_sentence(none.slip(-0.0001))
    assert none.slip(0.01) == ""


def test_invalid_and_superseded_runs_do_not_count(tmp_path):
    from netjoule.coursework import cells

    design = folders.designs(invalid_share=0.5, invalid_error_w=50.0)["envelope"]
    folders.fly(tmp_path, "envelope", design)
    assert {"invalid", "superseded"} <= {row["status"] for row in plan(tmp_path / "envelope")}
    found = cells.read(tmp_path / "envelope").at("udp", 64, 12)
    expected = folders.values(tmp_path / "envelope", ("udp", 64, 12.0), "ea_j_per_mbit")
    assert list(found.by_block("ea_j_per_mbit").values()) == pytest.approx(expected)
    assert len(expected) == folders.BLOCKS


def row(folder, table, transport, rate):
    """Numbers of a 64-byte cell at the first meter, out of one of R's tables; an envelope has all sizes."""
    with (folder / f"tables/{table}.csv").open(newline="") as handle:
        found = next(
            one
            for one in csv.DictReader(handle)
            if (one["meter_id"], one["transport"]) == ("client-cpu", transport)
            and (one.get("payload_bytes", "64"), float(one["offered_rate_mbps"])) == ("64", rate)
        )
    return lambda column: float(found[column])


def read_in_tables(folder):
    """Answers of somebody who reads the right columns."""
    return {
        "envelope": read_of_envelope(folder / "envelope"),
        "floor": read_of_floor(folder / "floor"),
        "congestion": read_of_congestion(folder / "congestion"),
        "scaling": read_of_scaling(folder / "scaling"),
        "transfers": read_of_transfers(folder / "transfers"),
    }


def read_of_envelope(folder):
    udp, band = (row(folder, table, "udp", 12) for table in ("ea_summary", "envelope"))
    return {
        "least_ea_payload_bytes": int(band("payload_bytes_least")),
        "udp_ea_j_per_mbit": udp("ea_j_per_mbit_mean"),
        "udp_ea_half_width_j_per_mbit": (udp("ea_ci95_high") - udp("ea_ci95_low")) / 2,
        "udp_envelope_ratio": band("ea_greatest_j_per_mbit") / band("ea_least_j_per_mbit"),
        "dearest_transport": "quic",
        "holds_for_a_real_laptop": False,
    }


def read_of_floor(folder):
    udp, quic = (row(folder, "ea_summary", transport, 12) for transport in ("udp", "quic"))
    ea, above = "ea_j_per_mbit_mean", "ea_above_floor_j_per_mbit"
    return {
        "floor_w": udp("floor_w"),
        "floor_share_ratio": udp("floor_ratio"),
        "udp_ea_above_floor_j_per_mbit": udp(above),
        "quic_over_udp_ea_ratio": quic(ea) / udp(ea),
        "quic_over_udp_above_floor_ratio": quic(above) / udp(above),
        "transports_differ_more": "above_floor",
        "floor_grows_with": "messages_per_second",
    }


def read_of_congestion(folder):
    udp, dccp, tcp = (row(folder, "ea_summary", transport, 20) for transport in ("udp", "dccp", "tcp"))
    return {
        "udp_goodput_mbps": udp("goodput_mbps"),
        "udp_arrivals_pps": udp("goodput_mbps") * 1e6 / 512,
        "udp_loss_ratio": udp("loss_ratio"),
        "dccp_not_sent_ratio": 1 - dccp("achieved_ratio"),
        "dccp_loss_ratio": dccp("loss_ratio"),
        "cheaper_transport": "dccp",
        "tcp_frames_per_message": tcp("frames_per_message"),
        "tcp_brings_more_because": "messages_share_packets",
        "cap_is_measured": False,
    }


def of_far(folder, table, **wanted):
    """Numbers of practra-10 over rtt-100, out of one of R's tables."""
    wanted = {"arm": "practra-10", "path": "rtt-100", **wanted}
    with (folder / f"tables/{table}.csv").open(newline="") as handle:
        found = next(one for one in csv.DictReader(handle) if wanted.items() <= one.items())
    return lambda column: float(found[column])


def read_of_scaling(folder):
    linear = of_far(folder, "router_energy", form="linear", static_ratio="0")
    goodput = of_far(folder, "measure_contrasts", measure="t_a_mbps")
    lost, saved = -goodput("difference_percent") / 100, linear("saving_ratio")
    half = of_far(folder, "router_energy", form="linear", static_ratio="0.5")
    cubic = of_far(folder, "router_energy", form="cubic", static_ratio="0")
    return {
        "far_service_rate_mbps": linear("service_rate_mbps"),
        "far_saving_ratio": saved,
        "far_saving_cubic_ratio": cubic("saving_ratio"),
        "far_goodput_lost_percent": 100 * lost,
        "energy_more_percent": half("energy_difference_percent"),
        "break_even_static_ratio": 1 - lost / saved,
        "saves_most_near": "practra-10",
        "loses_least_alone": "practra-1000",
        "loses_least_with_bursts": "practra-10",
        "long_mrci_loses_more_because": "rate_rises_too_late",
        "measured_on_a_router": False,
    }


def read_of_transfers(folder):
    with (folder / "tables/transfer_summary.csv").open(newline="") as handle:
        rows = {(one["http"], one["connections"]): one for one in csv.DictReader(handle) if of_s5_seed(one)}

    def of(name, connections, http="1.1"):
        return float(rows[http, connections][name])

    breaks = [key for key, row in rows.items() if row["break_point"] == "true"]
    (break_point,) = (connections for http, connections in breaks if http == "1.1")
    one_mbps, one_j = of("throughput_mbps", "1"), of("e_d_per_100_mb_j", "1")
    return {
        **folders.right_of_transfers(folder),
        "one_mbps": one_mbps,
        "most_over_one_ratio": of("throughput_mbps", "32") / one_mbps,
        "one_e_d_per_100_mb_j": one_j,
        "saving_percent": 100 * (1 - of("e_d_per_100_mb_j", "16") / one_j),
        "break_point_connections": int(break_point),
        "http_2_over_http_1_ratio": of("throughput_mbps", "1", "2") / one_mbps,
    }


def of_s5_seed(row):
    return row["meter_id"] == "s5-seed"


WRITE_TABLES = """
library(netjoule)
for (folder in commandArgs(TRUE)) {
  write_tables(campaign_tables(read_campaign(folder)), file.path(folder, "tables"))
}
"""


def test_r_s_tables_hold_the_right_answers(handed_in, capsys):
    """Who reads the tables that `netjoule analyse` writes is right. Its figures are not drawn here."""
    try:
        analysis.require_r()
    except HostLacks as error:
        pytest.skip(str(error))
    env = analysis.environment(os.environ)
    env["R_LIBS"] = env["NETJOULE_R_LIBRARY"]
    campaigns = [str(handed_in / name) for name in EXERCISES]
    subprocess.run([*programs.rscript(), "-e", WRITE_TABLES, *campaigns], env=env, check=True)
    folders.answer(handed_in, read_in_tables(handed_in))
    assert folders.checked(handed_in) == 0, capsys.readouterr().out

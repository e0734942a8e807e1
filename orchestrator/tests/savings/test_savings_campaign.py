# SPDX-License-Identifier: Apache-2.0
"""`netjoule savings --campaign`: the difference of E_A out of R's table, whose it is, and what is refused."""

import json
from pathlib import Path

import pytest
from golden_sentences import raises, same_sentence

from netjoule.cli.app import run_command
from netjoule.core import files
from netjoule.core.errors import InvalidData, UsageError
from netjoule.savings.calculation import exact
from netjoule.savings.difference import DELTA_FILE, Wanted, choose
from netjoule.workload.workload import Timing
from netjoule_contracts.types.result import U95Components
from netjoule_synthetic import Design, write

ROOT = Path(__file__).parents[3]
ROW = {
    "node": "client",
    "meter_id": "m",
    "device_model": "",
    "power_source": "measured",
    "radio_source": "real",
    "reference": "udp",
    "transport": "dccp",
    "direction": "up",
    "payload_bytes": "300",
    "offered_rate_mbps": "0.065",
    "n_pairs": "5",
    "method": "ratio",
    "below_resolution_n": "0",
    "pacing": "absolute",
    "window_us": "0",
    "gso": "false",
    "difference_j_per_mbit": "-0.12",
    "u95_difference_j_per_mbit": "0.03",
    "flows_at_once": "",
}
MODELLED = {"power_source": "modelled", "radio_source": "link-model", "device_model": "laptop-cpu"}
BELOW = {
    "method": "p_a_difference",
    "below_resolution_n": "3",
    "difference_j_per_mbit": "",
    "u95_difference_j_per_mbit": "",
}


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def analysed(campaign_dir):
    """Writes a campaign's table of differences and gives its folder."""

    def write(*changes: dict[str, str]) -> str:
        path = campaign_dir / DELTA_FILE
        files.write_atomic(path, files.table_text("delta_ea", [ROW | change for change in changes]))
        return str(campaign_dir)

    return write


def documents(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# -- out of a campaign ----------------------------------------------------------------------------


def test_the_difference_of_a_campaign_says_whose_and_which(analysed, capsys):
    assert run_command(["savings", "--campaign", analysed({})]) == 0
    own = capsys.readouterr().out.partition("\n\nPublished: ")[0]
    same_sentence(own)
    assert "in this model" not in own.lower()


def test_a_modelled_difference_says_so_at_every_number_and_verdict(analysed, capsys):
    assert run_command(["savings", "--campaign", analysed(MODELLED)]) == 0
    own = capsys.readouterr().out.partition("\n\nPublished: ")[0].splitlines()
    same_sentence(own[0])
    told = [line for line in own if "±" in line and "half-width" not in line]
    assert len(told) == 3
    assert all("in this model" in line for line in told)
    assert (
        "  In this model, the interval of the saving is above zero: dccp takes less energy than UDP." in own
    )
    same_sentence(own[-1])


@pytest.mark.parametrize("change", [{"power_source": "modelled"}, {"radio_source": "link-model"}])
def test_a_model_of_either_half_makes_it_modelled(change):
    (found,), _ = choose([ROW | change], Wanted(), 0.065, "x")
    assert found.modelled


def test_each_meter_has_a_chain_of_its_own_and_they_are_not_added(analysed, capsys):
    other = {"meter_id": "ap", "node": "access_point", "difference_j_per_mbit": "0.05"}
    assert run_command(["savings", "--campaign", analysed({}, other), "--json"]) == 0
    own = [d for d in documents(capsys.readouterr().out) if d["event"] == "savings"]
    assert [(d["meter_id"], d["saved_j_per_mbit"]) for d in own] == [("m", 0.12), ("ap", -0.05)]
    assert run_command(["savings", "--campaign", analysed({}, other), "--meter", "ap", "--json"]) == 0
    assert documents(capsys.readouterr().out)[0]["node"] == "access_point"


def test_the_cell_is_the_one_at_the_bit_rate_unless_told(analysed, capsys):
    campaign = analysed({}, {"offered_rate_mbps": "6", "difference_j_per_mbit": "-0.5"})
    assert run_command(["savings", "--campaign", campaign, "--json"]) == 0
    assert documents(capsys.readouterr().out)[0]["saved_j_per_mbit"] == 0.12
    assert run_command(["savings", "--campaign", campaign, "--bit-rate-kbps", "6300", "--json"]) == 0
    assert documents(capsys.readouterr().out)[0]["saved_j_per_mbit"] == 0.5
    assert run_command(["savings", "--campaign", campaign, "--offered-rate-mbps", "6"]) == 0
    assert "The difference is of 6000 kb/s, the calls are of 65 kb/s" in capsys.readouterr().out


def test_a_load_of_nothing_is_not_that_of_calls():
    (found,), _ = choose(
        [ROW | {"offered_rate_mbps": "0", "difference_j_per_mbit": "-1"}, ROW], Wanted(), 0.065, "x"
    )
    assert found.saved == exact("0.12")


def test_messages_that_left_one_by_one_go_first():
    rows = [
        ROW | {"pacing": "spin", "difference_j_per_mbit": "-1"},
        ROW | {"window_us": "200"},
        ROW | {"gso": "true"},
    ]
    (found,), _ = choose([*rows, ROW], Wanted(), 0.065, "x")
    assert found.saved == exact("0.12")
    (found,), _ = choose([*rows, ROW], Wanted(pacing="spin"), 0.065, "x")
    assert found.saved == 1


def test_the_kernels_dccp_stands_for_dccp_where_it_alone_was_sent():
    (found,), _ = choose([ROW | {"transport": "dccp-kernel"}], Wanted(), 0.065, "x")
    assert found.transport == "dccp-kernel"


def test_a_single_block_has_no_interval(analysed, capsys):
    assert (
        run_command(["savings", "--campaign", analysed({"n_pairs": "1", "u95_difference_j_per_mbit": ""})])
        == 0
    )
    own = capsys.readouterr().out.partition("\n\nPublished: ")[0]
    same_sentence(own)
    assert "±" not in own
    assert "1 pair:" in own


# -- range error ----------------------------------------------------------------------------------


@pytest.fixture
def metered(tmp_path):
    """A campaign of one cell whose runs have u95 of 1 and a range error as told, J/Mb."""
    design = Design(("udp", "tcp"), (300,), (0.065,), timing=Timing(1.0, 0.2, 0.6, 2.0, 0.2))
    campaign = write(tmp_path / "metered", design)

    def rewrite(u95_range: float, change: dict[str, str] | None = None) -> str:
        for path in campaign.glob("runs/*/result.json"):
            document = json.loads(path.read_text())
            for node in document["nodes"]:
                node["u95_energy_per_work_j"] = node["u95_ea_j_per_mbit"] = 1.0
                # Of windows that had no readings on an edge.
                parts = dict.fromkeys(set(U95Components.__struct_fields__) - {"straddle"}, 0.1)
                node["u95_components"] = parts | {"offset": u95_range}
            path.write_text(json.dumps(document))
        row = ROW | {"transport": "tcp", "meter_id": "client-supply", "difference_j_per_mbit": "-3"}
        rows = [row | {"u95_difference_j_per_mbit": "1.5"} | (change or {})]
        files.write_atomic(campaign / DELTA_FILE, files.table_text("delta_ea", rows))
        return str(campaign)

    return rewrite


@pytest.mark.parametrize(
    ("u95_range", "u95", "told"), [(0.9, "1.5", True), (0.7, "1.5", False), (0.9, "3", False)]
)
def test_where_range_error_dominates_the_advice_is_another_range(metered, u95_range, u95, told, capsys):
    """Of two runs: 0.9 x sqrt(2) = 1.27 of 1.5 is over half of the variance, 0.99 of 1.5 is not."""
    campaign = metered(u95_range, {"u95_difference_j_per_mbit": u95})
    assert run_command(["savings", "--campaign", campaign, "--transport", "tcp", "--json"]) == 0
    own = documents(capsys.readouterr().out)[0]
    assert own["u95_range_j_per_mbit"] == pytest.approx(u95_range * 2**0.5)
    words = (
        "Most of ± is the meter's range error (1.3 J/Mb), which longer measuring does not reduce: choose a"
        " smaller range or a meter with a smaller range error."
    )
    assert (words in own["words"]) == told
    assert any("range error" in sentence for sentence in own["words"]) == told


def test_advice_on_a_modelled_meter_says_that_it_is_in_this_model(metered, capsys):
    assert run_command(["savings", "--campaign", metered(0.9, MODELLED), "--transport", "tcp"]) == 0
    assert "In this model, most of ± is the meter's range error" in capsys.readouterr().out


@pytest.mark.parametrize(("u95_range", "longer_helps"), [(0.9, False), (0.5, True)])
def test_below_resolution_by_range_error_longer_is_no_advice(metered, u95_range, longer_helps, capsys):
    assert run_command(["savings", "--campaign", metered(u95_range, BELOW), "--transport", "tcp"]) == 4
    told = capsys.readouterr().err
    assert ("one flow at a time, longer, at a higher load" in told) == longer_helps
    assert ("longer measuring does not help" in told) != longer_helps
    assert ("choose a smaller range, a meter with a smaller range error" in told) != longer_helps


def test_results_that_are_not_there_leave_the_advice_out(metered, capsys):
    campaign = metered(0.9)
    for path in Path(campaign).glob("runs/*/result.json"):
        path.unlink()
    assert run_command(["savings", "--campaign", campaign, "--transport", "tcp", "--json"]) == 0
    own = documents(capsys.readouterr().out)[0]
    assert own["u95_range_j_per_mbit"] is None
    assert not any("range error" in sentence for sentence in own["words"])


# -- what is refused ------------------------------------------------------------------------------


def test_a_cell_below_resolution_is_refused_with_what_to_do(analysed, capsys):
    assert run_command(["savings", "--campaign", analysed(BELOW)]) == 4
    seen = capsys.readouterr()
    assert seen.out == ""
    same_sentence(seen.err)
    assert "finer meter" in seen.err


def test_a_meter_that_does_not_resolve_it_is_named_beside_one_that_does(analysed, capsys):
    campaign = analysed({}, BELOW | {"meter_id": "coarse"})
    assert run_command(["savings", "--campaign", campaign]) == 0
    assert (
        "No difference of E_A of 300 bytes 0.065 Mb/s up at meter coarse: 3 runs" in capsys.readouterr().out
    )
    assert run_command(["savings", "--campaign", campaign, "--json"]) == 0
    assert documents(capsys.readouterr().out)[1]["event"] == "no_difference"


@pytest.mark.parametrize("column", ["difference_j_per_mbit", "u95_difference_j_per_mbit"])
@pytest.mark.parametrize("value", ["1e308", "5e-324", "1e19"])
def test_a_number_of_the_table_that_no_device_has_is_refused(analysed, column, value, capsys):
    assert run_command(["savings", "--campaign", analysed({column: value})]) == 4
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1
    same_sentence(seen.err)


def test_a_radio_without_air_time_is_refused_for_that():
    with raises(InvalidData):
        choose([ROW | BELOW | {"radio_source": "hwsim"}], Wanted(), 0.065, "x")


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "both"},
        {"flows_at_once": "udp up 5 Mb/s + tcp up 100 Mb/s"},
    ],
)
def test_several_flows_at_once_are_not_one_direction_of_a_call(change):
    with raises(InvalidData):
        choose([ROW | change], Wanted(), 0.065, "x")


def test_runs_of_which_nothing_arrived_are_not_said_to_be_below_resolution():
    with raises(InvalidData):
        choose([ROW | {"method": "no_ratio", "difference_j_per_mbit": ""}], Wanted(), 0.065, "x")


def test_no_pair_is_refused_with_the_pairs_that_there_are():
    with raises(UsageError):
        choose([ROW | {"transport": t} for t in ("tcp", "quic")], Wanted(), 0.065, "x")
    with raises(InvalidData):
        choose([], Wanted(), 0.065, "x")


def test_several_cells_are_refused_by_name():
    rows = [ROW | {"payload_bytes": size} for size in ("64", "1440")]
    with raises(UsageError):
        choose(rows, Wanted(), 0.065, "x")
    (found,), _ = choose(rows, Wanted(payload_bytes=64), 0.065, "x")
    assert found.payload_bytes == 64


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(meter_id="z"),
        Wanted(payload_bytes=64),
        Wanted(offered_rate_mbps=6.0),
        Wanted(direction="down"),
        Wanted(pacing="spin"),
    ],
)
def test_a_choice_that_is_not_there_is_refused_with_those_that_are(wanted):
    with raises(UsageError):
        choose([ROW], wanted, 0.065, "x")


def test_a_campaign_that_is_not_analysed_or_by_an_older_netjoule(campaign_dir, analysed, capsys):
    assert run_command(["savings", "--campaign", str(campaign_dir)]) == 4
    same_sentence(capsys.readouterr().err)
    path = Path(analysed({})) / DELTA_FILE
    whole = path.read_bytes()
    for column in (b"pacing", b"method", b"u95_difference_j_per_mbit"):
        path.write_bytes(whole.replace(column, b"another", 1))
        assert run_command(["savings", "--campaign", str(campaign_dir)]) == 4
        same_sentence(capsys.readouterr().err)
    path.write_bytes(whole.replace(b"client", b"cli\xe9nt"))
    assert run_command(["savings", "--campaign", str(campaign_dir)]) == 4
    assert "not UTF-8" in capsys.readouterr().err

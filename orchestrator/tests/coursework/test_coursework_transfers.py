# SPDX-License-Identifier: Apache-2.0
"""Exercise 5, on transfers: what follows from a campaign, and which campaigns are none of it."""

import coursework_folders as folders
import pytest
from golden_sentences import raises, same_sentence

from netjoule.coursework.cells import CannotTell, Cells, Run
from netjoule.coursework.exercises import EXERCISES

LEVELS = ("1", "2", "4", "8", "16", "32")
THROUGHPUTS = {"1.1": (1.7, 3.2, 6.0, 11.0, 14.0, 18.0), "2": (12.0, 13.0, 14.0, 15.0, 15.5, 16.0)}
TERMS_W = dict(zip(folders.METERS, (0.015, 0.0, 0.0075, 0.03), strict=True))


def runs_of(h1=THROUGHPUTS["1.1"]):
    """Runs of three blocks at every meter, each with the power of its model; `h1` of HTTP/1.1, Mb/s."""
    for http, values in (THROUGHPUTS | {"1.1": h1}).items():
        for connections, mbps in zip(LEVELS, values, strict=True):
            for meter, term_w in TERMS_W.items():
                power_w = 1 + 0.075 * mbps + term_w * int(connections)
                for block, off in enumerate((1.0, 1.03, 0.97), start=1):
                    numbers = {"goodput_mbps": mbps * off, "ea_j_per_mbit": power_w / (mbps * off)}
                    yield (connections, http, meter), Run(block, numbers)


def fetched(**told):
    return Cells(runs_of(**told))


def right_of(name, cells):
    return next(q for q in EXERCISES["transfers"].questions if q.name == name).right(cells)


def test_numbers_follow_from_throughput_and_the_model():
    cells = fetched()
    assert right_of("one_mbps", cells).value == pytest.approx(1.7)
    assert right_of("most_over_one_ratio", cells).value == pytest.approx(18 / 1.7)
    assert right_of("http_2_over_http_1_ratio", cells).value == pytest.approx(12 / 1.7)
    one_w, many_w = 1 + 0.075 * 1.7 + 0.015, 1 + 0.075 * 14 + 0.015 * 16
    assert right_of("one_e_d_per_100_mb_j", cells).value == pytest.approx(800 * one_w / 1.7, rel=1e-3)
    assert right_of("saving_percent", cells).value == pytest.approx(100 * (1 - many_w / 14 / (one_w / 1.7)))


def test_the_break_point_is_the_lowest_level_whose_interval_holds_the_least_energy_while_throughput_rises():
    assert right_of("break_point_connections", fetched()) == {16}  # 0.164 J/Mb +- 7 %, and at 32 0.157
    assert right_of("break_point_connections", fetched(h1=(1.7, 3.2, 6.0, 11.0, 12.0, 13.0))) == {8}
    falls = fetched(h1=(1.7, 3.2, 6.0, 11.0, 20.0, 19.0))  # the least is at 16, behind which nothing rises
    with raises(CannotTell):
        right_of("break_point_connections", falls)


def test_why_32_bring_less_is_asked_only_where_they_do():
    assert right_of("less_than_32_because", fetched()) == {"each_begins_with_round_trips"}
    for of_32 in (50.0, 80.0):  # nearly 32 times one; as good as the path
        with raises(CannotTell):
            right_of("less_than_32_because", fetched(h1=(1.7, 3.2, 6.0, 11.0, 14.0, of_32)))


def test_a_conclusion_hangs_on_the_term_if_it_does_not_hold_with_twice_of_it():
    assert right_of("hangs_on_the_term", fetched()) == {"many_beat_one_over_http_2"}
    with raises(CannotTell):  # over HTTP/1.1 as well
        right_of("hangs_on_the_term", fetched(h1=(1.7, 1.7, 1.7, 1.7, 1.7, 2.3)))


def test_of_two_ways_without_a_clear_difference_both_are_right():
    same = [
        ((*key[:2], "s5-seed"), Run(block, {"ea_j_per_mbit": joules}))
        for key, values in ((("1", "2"), (1, 2, 3)), (("32", "1.1"), (3, 2, 1)))
        for block, joules in enumerate(values, start=1)
    ]
    assert right_of("cheaper_way", Cells(same)) == {"one_of_http_2", "many_of_http_1"}
    assert right_of("cheaper_way", fetched(h1=(1.7, 3.2, 6.0, 11.0, 12.0, 14.0))) == {"one_of_http_2"}
    assert right_of("cheaper_way", fetched(h1=(1.7, 3.2, 6.0, 11.0, 20.0, 45.0))) == {"many_of_http_1"}


@pytest.mark.parametrize("h1", [(1.2, 3.2, 6.0, 11.0, 14.0, 18.0), (1.7, 3.7, 6.0, 11.0, 14.0, 18.0)])
def test_throughput_that_round_trips_do_not_allow_is_none_of_the_model(h1):
    assert list(EXERCISES["transfers"].strays(fetched())) == []
    (sentence,) = EXERCISES["transfers"].strays(fetched(h1=h1))
    same_sentence(sentence)


def test_meters_whose_term_does_not_show_are_none_of_the_model():
    swapped = {"s5-seed-none": "s5-seed-double", "s5-seed-double": "s5-seed-none"}
    cells = Cells(((*key[:2], swapped.get(key[2], key[2])), run) for key, run in runs_of())
    sentences = list(EXERCISES["transfers"].strays(cells))
    assert len(sentences) == 2
    same_sentence(sentences[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["workload"]["factors"].update(connections=[1, 2]),
        lambda d: d["workload"]["factors"].update(buffers=["android-2-3"]),
        lambda d: d["workload"]["transfer"].update(dataset_seed=2),
        lambda d: d["workload"]["transfer"]["sets"]["pages"][0].update(files_n=40),
        lambda d: d["topology"]["link"].update(preset="seed-like"),
        lambda d: d["topology"]["elements"]["sydney"].update(delay_ms=20),
    ],
)
def test_another_campaign_of_transfers_is_refused(handed_in, change, capsys):
    folders.edit(handed_in / "transfers/campaign.json", change)
    assert folders.checked(handed_in, "--exercise", "transfers") == 4
    same_sentence(capsys.readouterr().err)

# SPDX-License-Identifier: Apache-2.0
import pytest

from netjoule.workload.cell import Cell, value_name, value_words

PLAIN = {"payload_bytes": 64, "offered_rate_mbps": 6.0, "direction": "up", "pacing": "absolute", "gso": False}


def test_a_cell_is_a_key_and_equal_to_what_has_the_same_values() -> None:
    assert Cell(PLAIN) == Cell(dict(PLAIN)) == PLAIN
    assert len({Cell(PLAIN), Cell({**PLAIN, "offered_rate_mbps": 6}), Cell({**PLAIN, "gso": True})}) == 2


def test_parameters_are_named_whatever_their_order() -> None:
    names = {value_name({"rtt_ms": 10, "loss_ratio": 0}), value_name({"loss_ratio": 0, "rtt_ms": 10})}
    assert names == {"loss_ratio 0, rtt_ms 10"}
    assert value_name({"elements": ["core", "dsl"]}) == "elements core+dsl"


def test_cells_have_an_order_by_their_values() -> None:
    cells = [Cell({**PLAIN, "payload_bytes": size}) for size in (1440, 64, 512)]
    assert [cell["payload_bytes"] for cell in sorted(cells)] == [64, 512, 1440]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "64 B, 6 Mb/s"),
        (
            {"pacing": "spin", "gso": True, "direction": "down"},
            "64 B, 6 Mb/s, direction down, pacing spin, GSO trains",
        ),
        ({"parallel": 3, "window_us": 50}, "64 B, 6 Mb/s, flows at once 3, 50 us"),
        ({"path": "rtt_ms 10", "SPIN": "1"}, "64 B, 6 Mb/s, path rtt_ms 10, SPIN 1"),
    ],
)
def test_a_cell_says_in_words_what_is_not_the_default(changes: dict[str, object], words: str) -> None:
    assert str(Cell(PLAIN | changes)) == words


def test_a_truth_value_has_words_either_way() -> None:
    assert (value_words("gso", True), value_words("gso", False)) == ("GSO trains", "no GSO trains")

# SPDX-License-Identifier: Apache-2.0
"""The agent on a clock of its own: cadence, troubles, costs; and which source is chosen."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises

from netjoule_radio.agent import VERSION, Agent, next_deadline
from netjoule_radio.cli import main
from netjoule_radio.snapshot import Rate, Snapshot, Station
from netjoule_radio.source import InterfaceGone, ReadFailed, SourceMissing
from netjoule_radio.source_choice import choose

S = 10**9


@pytest.mark.parametrize(
    ("now_ns", "expected"),
    [
        (10 * S, (11 * S, 0)),
        (10 * S + 999_999_999, (11 * S, 0)),
        (11 * S, (12 * S, 1)),  # the snapshot took a whole period: that deadline is missed
        (13 * S + 1, (14 * S, 3)),
        (9 * S, (11 * S, 0)),
    ],
)
def test_deadlines_stay_on_their_grid(now_ns: int, expected: tuple[int, int]) -> None:
    assert next_deadline(10 * S, S, now_ns) == expected


class Radio:
    """A source that answers from a script; each reading takes a while."""

    name, version = "iw", "5.19"

    def __init__(self, *script: Snapshot | Exception, takes_ns: int = 0) -> None:
        self.script = list(script)
        self.takes_ns = takes_ns
        self.now_ns = 5 * S
        self.looked_at_ns: list[int] = []
        self.closed = False

    def snapshot(self) -> Snapshot:
        self.looked_at_ns.append(self.now_ns)
        self.now_ns += self.takes_ns
        what = self.script.pop(0)
        if isinstance(what, Exception):
            raise what
        return what

    def close(self) -> None:
        self.closed = True

    def wait(self, deadline_ns: int) -> bool:
        self.now_ns = max(self.now_ns, deadline_ns)
        return bool(self.script)

    def run(self, every_ns: int = S) -> list[Mapping[str, Any]]:
        said: list[Mapping[str, Any]] = []
        agent = Agent(
            self,
            every_ns=every_ns,
            now_ns=lambda: self.now_ns,
            cpu_s=lambda: 0.01 * len(self.looked_at_ns),
            wait_until_ns=self.wait,
            emit=said.append,
        )
        agent.run()
        return said


OWN = Station("02:00:00:00:00:0a", tx=Rate(216.0, 13, 2, 40, 800))
HERE = Snapshot("client", OWN.station, False, (OWN,))


def test_it_looks_at_a_fixed_cadence_and_tells_time_and_cost_in_every_line() -> None:
    radio = Radio(HERE, HERE, HERE, takes_ns=S // 4)
    said = radio.run()
    assert radio.looked_at_ns == [5 * S, 6 * S, 7 * S]
    assert [line["event"] for line in said] == ["reading", "reading", "reading", "ended"]
    assert [line["t_ns"] - 5 * S for line in said] == [S // 4, S + S // 4, 2 * S + S // 4, 3 * S]
    assert [line["cpu_s"] for line in said] == [0.01, 0.02, 0.03, 0.03]
    assert {line["bssid"] for line in said[:-1]} == {"02:00:00:00:00:0a"}
    assert said[0]["source"] == "iw"


def test_a_slow_look_leaves_deadlines_out_and_counts_them() -> None:
    radio = Radio(HERE, HERE, takes_ns=5 * S // 2)
    said = radio.run()
    assert radio.looked_at_ns == [5 * S, 8 * S]
    assert [line["missed"] for line in said] == [0, 2, 4]


def test_an_interface_that_is_gone_is_told_once_and_tried_on() -> None:
    gone = InterfaceGone("there is no wireless interface wlan0")
    said = Radio(HERE, gone, gone, gone, HERE).run()
    assert [line["event"] for line in said] == [
        "reading",
        "interface_gone",
        "reading_again",
        "reading",
        "ended",
    ]
    assert said[1]["message"] == "there is no wireless interface wlan0"
    assert said[-1]["snapshots"] == 5


def test_another_trouble_has_another_word() -> None:
    said = Radio(ReadFailed("Network is down"), InterfaceGone("no wlan0"), HERE).run()
    assert [line["event"] for line in said[:2]] == ["look_failed", "interface_gone"]


def test_an_access_points_clients_have_a_line_each_with_one_time() -> None:
    other = Station("02:00:00:00:00:0b")
    said = Radio(Snapshot("access_point", "02:00:00:00:00:01", False, (OWN, other))).run()
    assert [line.get("station") for line in said] == [OWN.station, other.station, None]
    assert said[0]["t_ns"] == said[1]["t_ns"]


def sources(**made: Callable[[str], Any]) -> dict[str, Callable[[str], Any]]:
    return made


def missing(_interface: str) -> Radio:
    raise SourceMissing("pyroute2 is not installed")


def test_the_first_source_that_answers_is_used_and_the_others_are_explained() -> None:
    failing, working, last = Radio(ReadFailed("not for me")), Radio(HERE), Radio(HERE)
    choice = choose(
        "auto",
        "wlan0",
        sources(nl80211=missing, iw=lambda _: failing, iwconfig=lambda _: working, other=lambda _: last),
    )
    assert choice.source is working
    assert choice.passed_over == {"nl80211": "pyroute2 is not installed", "iw": "not for me"}
    assert failing.closed
    assert not last.looked_at_ns


def test_a_wanted_source_is_not_replaced() -> None:
    with raises(SourceMissing):
        choose("nl80211", "wlan0", sources(nl80211=missing, iw=lambda _: Radio(HERE)))


def test_no_such_interface_ends_the_search() -> None:
    with pytest.raises(InterfaceGone):
        choose("auto", "wlan9", sources(iw=lambda _: Radio(InterfaceGone("gone")), iwconfig=missing))


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == VERSION


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--interface", "wlan0", "--every-s", "0"], "--every-s 0: give 0.1 to 60 seconds"),
        (["--every-s", "1"], "the following arguments are required: --interface"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"netjoule-radio: {what}; see 'netjoule-radio --help'\n"

# SPDX-License-Identifier: Apache-2.0
"""What --base, --head and --anchor mean, and the workload that is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runner_fakes import TIMING

from netjoule import loads
from netjoule.core.errors import UsageError
from netjoule.gate import sources
from netjoule.gate.settings import Names
from netjoule.gate.sources import Arm, Source, parse, with_arms
from netjoule.workload.workload import Workload

FLOWS: dict[str, Any] = {
    "schema_version": 2,
    "name": "flows",
    "load": "flow",
    "factors": {"transport": ["tcp", "quic"], "payload_bytes": [64], "offered_rate_mbps": [3, 30]},
    "blocks": 4,
    "timing": TIMING,
    "statistics": {
        "alpha": 0.1,
        "contrasts": [{"arm": "quic", "reference": "tcp", "at": {"payload_bytes": 64}}],
    },
}
COMMAND: dict[str, Any] = {
    "schema_version": 2,
    "name": "gzip",
    "load": "command",
    "arm": "LEVEL",
    "factors": {"LEVEL": ["1"]},
    "command": {"run": ["sh", "-c", "gzip -$LEVEL <big"]},
    "blocks": 4,
    "timing": TIMING,
}


def effective(document: dict[str, Any]) -> dict[str, Any]:
    return loads.made(document, where="test").document


def compared(document: dict[str, Any], *arms: Arm) -> tuple[Workload, Names]:
    """The workload with these arms, which every rule of workloads is held to."""
    changed, names = with_arms(effective(document), arms)
    return loads.made(changed, where="test"), names


def kinds(*texts: str, load: str = "flow", with_build: bool = False) -> list[str]:
    base, head, *anchor = texts
    return [one.kind for one in parse(base, head, (anchor or [None])[0], load, with_build=with_build)]


def built(role: str, **said: Any) -> Arm:
    return Arm(role, role, sources.DIRECTORY, f"./{role}", build=said)


# --- parse ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "with_build", "kind"),
    [
        ("main", True, "git"),
        ("origin/main", True, "git"),
        ("HEAD~1", True, "git"),
        ("v1.2.0", True, "git"),
        ("./main", True, "path"),
        ("../other/build", True, "path"),
        ("/opt/base", True, "path"),
        ("~/base", True, "path"),
        (".", True, "path"),
        ("main", False, "path"),
        ("MODE=fast", True, "environment"),
        ("QUIC_GSO=", False, "environment"),
        ("transport=quic", True, "setting"),
        ("gso=true", False, "setting"),
        ("path=far", False, "setting"),
    ],
)
def test_what_an_option_names_is_told_by_its_form(text: str, with_build: bool, kind: str) -> None:
    (found, *_) = [sources._source("base", text, "flow", with_build=with_build)]
    assert found.kind == kind
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("transport=quic", "quic"),
        ("payload_bytes=64", 64),
        ("offered_rate_mbps=0.5", 0.5),
        ("gso=true", True),
        ("congestion_control=1e3", "1e3"),
        ("payload_bytes=[64]", "[64]"),
    ],
)
def test_the_value_of_a_setting_has_its_factors_type(text: str, value: object) -> None:
    found, _ = parse(text, text, None, "flow")
    assert found.setting is not None
    assert found.setting[1] == value and type(found.setting[1]) is type(value)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            ("transprt=quic", "x"),
            "--base transprt=quic: flow has no factor transprt, did you mean 'transport'",
        ),
        (("x", "build=y"), "--head build=y: flow has no factor build"),
        (("-x", "y"), "--base '-x' names nothing"),
        (("", "y"), "--base '' names nothing"),
        (("transport=udp", "pacing=spin"), "are no values of one factor"),
        (("transport=udp", "./head"), "are no values of one factor"),
        (("transport=udp", "transport=tcp", "v1"), "--anchor v1 are no values of one factor"),
        (("transport=udp", "transport=tcp", "transport=udp"), "are not three values"),
    ],
)
def test_what_cannot_be_compared_is_refused(texts: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        kinds(*texts)


def test_folders_programs_refs_and_environments_go_together() -> None:
    assert kinds("main", "./head", "MODE=old", with_build=True) == ["git", "path", "environment"]


def test_a_pilot_is_the_base_twice() -> None:
    found = sources.pilot(parse("main", "next", "v1", "flow", with_build=True))
    assert [(one.role, one.text) for one in found] == [("base", "main"), ("head", "main")]


def test_a_path_that_leads_nowhere_is_told_with_the_way_to_a_ref(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file or folder; .*a git ref needs --build CMD"):
        sources.program_or_folder(Source("base", sources.PATH, str(tmp_path / "main")))


# --- the workload ---------------------------------------------------------------------------------


def test_builds_are_arms_with_the_installed_programs_as_reference() -> None:
    head = built("head", programs="/h/netjoule-traffic", environment={"MODE": "new"})
    found, names = compared(FLOWS, built("base", programs="/b/netjoule-traffic"), head)
    assert found.arms == ("base", "head", "reference")
    assert (found.arm, found.control) == ("build", None)
    assert found.document["flow"]["builds"] == {
        "base": {"programs": "/b/netjoule-traffic"},
        "head": {"programs": "/h/netjoule-traffic", "environment": {"MODE": "new"}},
    }
    assert names == Names("head", "base", None, "reference")
    arms = (built("base"), head)
    assert [one["name"] for one in sources.as_verdict(arms, names, None)] == ["base", "head", "reference"]
    assert sources.as_verdict(arms, names, None)[-1]["kind"] == "installed"
    assert len(found.cells) == 4, "what was compared before is what cells differ in"
    assert found.document["statistics"] == {"alpha": 0.1}, "its contrasts are of other arms"


def test_a_reference_of_its_own_is_built_like_the_others() -> None:
    arms = [built(role, programs=f"/{role}/netjoule-traffic") for role in ("base", "head", "reference")]
    found, names = compared(FLOWS, *arms)
    assert (found.arms, names.reference) == (("base", "head", "reference"), "reference")
    assert found.document["flow"]["builds"]["reference"] == {"programs": "/reference/netjoule-traffic"}
    asked = parse("main", "v2", None, "flow", reference="v1", with_build=True)
    assert [(one.role, one.text) for one in asked] == [("base", "main"), ("head", "v2"), ("reference", "v1")]
    assert [one.text for one in sources.pilot(asked)] == ["main", "main", "v1"]
    with pytest.raises(UsageError, match="settings of one program"):
        parse("transport=udp", "transport=quic", None, "flow", reference="transport=tcp")


def test_an_anchor_is_a_third_arm() -> None:
    arms = [built(role, programs=f"/{role}/netjoule-traffic") for role in ("base", "head", "anchor")]
    found, names = compared(FLOWS, *arms)
    assert found.arms == ("base", "head", "anchor", "reference")
    assert names.anchor == "anchor"


def test_settings_are_values_of_their_factor_and_the_workloads_own_is_the_reference() -> None:
    arms = sources.arms_of_settings(parse("transport=udp", "transport=quic", None, "flow"))
    found, names = compared(FLOWS, *arms)
    assert (found.arm, found.arms) == ("transport", ("udp", "quic", "tcp"))
    assert names == Names("quic", "udp", None, "tcp")
    assert [one["kind"] for one in sources.as_verdict(arms, names, None)] == [
        "setting",
        "setting",
        "installed",
    ]
    arms = sources.arms_of_settings(parse("transport=tcp", "transport=quic", None, "flow"))
    found, names = compared(FLOWS, *arms)
    assert (found.arms, names.reference) == (("tcp", "quic"), "tcp")
    assert [one["name"] for one in sources.as_verdict(arms, names, None)] == ["tcp", "quic"]


def test_settings_of_numbers_are_arms_by_their_names() -> None:
    document = FLOWS | {"factors": FLOWS["factors"] | {"transport": ["tcp"]}, "statistics": {"alpha": 0.1}}
    arms = sources.arms_of_settings(parse("gso=false", "gso=true", None, "flow"))
    found, names = compared(document, *arms)
    assert (found.arm, found.arms) == ("gso", ("false", "true"))
    assert names == Names("true", "false", None, "false")


def test_a_factor_that_the_workload_leaves_open_has_the_base_as_reference() -> None:
    arms = sources.arms_of_settings(parse("congestion_control=cubic", "congestion_control=bbr", None, "flow"))
    found, names = compared(FLOWS, *arms)
    assert (found.arms, names.reference) == (("cubic", "bbr"), "cubic")


def test_the_pilot_of_a_setting_is_two_builds_that_differ_by_name_alone() -> None:
    asked = sources.pilot(parse("transport=udp", "transport=quic", None, "flow"))
    arms = sources.arms_of_settings(asked)
    found, names = compared(FLOWS, *arms)
    assert sources.same_programs(arms)
    assert found.arms == ("base", "head", "reference")
    assert found.factors["transport"] == ("udp",)
    assert found.document["flow"]["builds"] == {
        role: {"environment": {"NETJOULE_ARM": role}} for role in ("base", "head")
    }
    assert names == Names("head", "base", None, "reference")


def test_an_environment_variable_that_is_a_factor_of_one_value_is_the_references() -> None:
    base, head = (built(role, environment={"LEVEL": level}) for role, level in (("base", "1"), ("head", "9")))
    found, _ = compared(COMMAND, base, head)
    assert (found.arm, found.arms, len(found.cells)) == ("build", ("base", "head", "reference"), 1)
    assert found.document["command"]["builds"] == {
        "base": {"environment": {"LEVEL": "1"}},
        "head": {"environment": {"LEVEL": "9"}},
        "reference": {"environment": {"LEVEL": "1"}},
    }


def test_a_build_beside_an_environment_has_the_workloads_own_value_of_it() -> None:
    found, _ = compared(COMMAND, built("base", directory="/b"), built("head", environment={"LEVEL": "9"}))
    assert found.document["command"]["builds"]["base"] == {"directory": "/b", "environment": {"LEVEL": "1"}}


def test_a_workload_that_varies_what_arms_differ_in_is_refused() -> None:
    varied = COMMAND | {"factors": {"LEVEL": ["1", "6"]}}
    arms = (built("base", environment={"LEVEL": "1"}), built("head", environment={"LEVEL": "9"}))
    with pytest.raises(UsageError, match="varies LEVEL itself: 1, 6"):
        compared(varied, *arms)
    own = COMMAND | {"arm": "build", "factors": {"build": ["a"]}}
    with pytest.raises(UsageError, match="has builds of its own"):
        compared(own, *arms)


def test_equal_programs_in_equal_environments_are_an_a_a_gate() -> None:
    def arms(one: str, other: str, **variables: str) -> tuple[Arm, Arm]:
        said = {"environment": variables} if variables else {}
        return (
            Arm("base", "base", sources.BINARY, "b", sha256=one, build={"programs": "/b"}),
            Arm("head", "head", sources.BINARY, "h", sha256=other, build={"programs": "/h"} | said),
        )

    assert sources.same_programs(arms("1" * 64, "1" * 64))
    assert not sources.same_programs(arms("1" * 64, "2" * 64))
    assert not sources.same_programs(arms("1" * 64, "1" * 64, MODE="x"))

# SPDX-License-Identifier: Apache-2.0
"""netjoule selftest: which schedules are asked for, and what is made of the answers. How sharp this host is,
nobody asks."""

import asyncio
import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sshd
import synthetic
from golden_sentences import raises, same_sentence
from lab_topology import LAB
from runner_fakes import certificate

import netjoule_contracts as contracts
from netjoule import loads
from netjoule.cli.app import run_command
from netjoule.core import tables
from netjoule.core.errors import HostLacks, InvalidData, RunFailed, UsageError
from netjoule.diagnostics import selftest
from netjoule.diagnostics.selftest import Case, arguments, at_once, cases, certify, require_passed, table
from netjoule.hosts.host import LocalHost
from netjoule.loads.flow.settings import FlowSettings, Pace
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

ROOT = Path(__file__).parents[3]
PROFILE_FACTS = json.dumps({"mean_rate_mbps": 0.065, "profile": {"messages": 200_000}})


def workload(**more: object) -> Workload:
    return synthetic.workload(transports=["udp", "null"], **more)


def document(*, passed: bool = True) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "kind": "selftest",
        "host": "bench",
        "pacing": {"mode": "absolute", "window_us": 0, "gso": False},
        "payload_bytes": 64,
        "offered_rate_mbps": 3.0,
        "duration_s": 0.2,
        "limits": {},
        "flows": [
            {"transport": transport, "pacing_certificate": certificate(passed=passed)}
            for transport in ("null", "udp")
        ],
        "passed": passed,
    }


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: object, code: int = 0) -> Path:
    """A netjoule-traffic that notes how it was called and says this."""
    (folder / "answer").write_text(json.dumps(answer) + "\n")
    program = folder / "netjoule-traffic"
    script = f'[ "$1" = profile ] && echo \'{PROFILE_FACTS}\' && exit\necho "$@" >> {folder}/calls\n'
    program.write_text(f"#!/bin/sh\n{script}cat {folder}/answer\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(folder))
    return folder / "calls"


def silent(_line: str) -> None:
    pass


def shown(found: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(tables.lines(table([dict(one) for one in found]), None))


def test_the_least_and_the_greatest_load_of_every_size_and_pacing_are_tried() -> None:
    of = workload(payload_bytes=[64, 1440], offered_rate_mbps=[3, 1, 30], pacing=["absolute", "spin"])
    assert cases(FlowSettings.of(of)) == [
        Case(payload, rate, Pace(mode))
        for mode in ("absolute", "spin")
        for payload in (64, 1440)
        for rate in (1.0, 30.0)
    ]
    assert cases(FlowSettings.of(workload(payload_bytes=[64], offered_rate_mbps=[3]))) == [
        Case(64, 3.0, Pace())
    ]


def test_a_schedule_is_asked_for_in_base_units_with_the_workloads_limits() -> None:
    argv = arguments(Case(300, 0.065, Pace("burst:8", 50, True)), {"max_error_us": 60.0}, 2)
    assert " ".join(argv) == (
        "selftest -b 65000 -l 300 -t 2.000000 --pacing burst:8 --window-us 50 --gso "
        "--pacing-limit max_error_us=60.0 --json"
    )


TALK: dict[str, Any] = {
    "schema_version": 1,
    "name": "talk",
    "talk_spurts": {
        "size_bytes": 172,
        "inter_departure_s": 0.02,
        "on_s": {"distribution": "exponential", "mean": 0.1},
        "off_s": {"distribution": "exponential", "mean": 0.1},
    },
}


def test_a_profile_is_certified_by_its_own_schedule_and_no_constant_rate() -> None:
    """Its spurts are faster than its mean rate."""
    of = workload(
        profile=TALK,
        payload_bytes=[172],
        offered_rate_mbps=[0.037],
        # Every host keeps these, however busy.
        pacing_limits={"min_achieved_ratio": 0.0},
    )
    told: list[str] = []
    (found,) = certify(of, synthetic.topology(), 2.0, told.append)
    assert told == ["this host: profile talk (talk_spurts), messages of 172 bytes at most, absolute"]
    assert arguments(cases(FlowSettings.of(of))[0], {}, 2.0)[:3] == ["selftest", "--profile", "-"]
    assert found["payload_bytes"] == 172
    constant = 0.037e6 / 8 / 172 * 2.0
    assert found["offered_rate_mbps"] != 0.037  # this schedule's own
    assert found["flows"][0]["pacing_certificate"]["departures"] != pytest.approx(constant, abs=0.5)


def test_every_schedule_is_asked_on_this_host_for_an_emulated_testbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = answers(tmp_path, monkeypatch, document())
    told: list[str] = []
    of = workload(payload_bytes=[64], offered_rate_mbps=[1, 3])
    found = certify(of, synthetic.topology(), 0.2, told.append)
    assert [line.split()[:3] for line in calls.read_text().splitlines()] == [
        ["selftest", "-b", "1000000"],
        ["selftest", "-b", "3000000"],
    ]
    assert told == ["this host: 64 B at 1 Mb/s, absolute", "this host: 64 B at 3 Mb/s, absolute"]
    assert [one["passed"] for one in found] == [True, True]
    require_passed(found)


def test_limits_that_were_not_kept_are_an_answer_and_end_with_exit_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, monkeypatch, document(passed=False), code=4)
    of = workload(payload_bytes=[64], offered_rate_mbps=[3])
    found = certify(of, synthetic.topology(), 0.2, silent)
    with raises(InvalidData) as caught:
        require_passed(found)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(("code", "kind"), [(3, HostLacks), (2, UsageError), (1, RunFailed)])
def test_a_host_that_cannot_be_asked_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    said = {"event": "error", "code": "host_lacks", "message": "so_txtime needs fq"}
    answers(tmp_path, monkeypatch, said, code=code)
    with raises(kind):
        certify(synthetic.workload(), synthetic.topology(), 0.2, silent)


@pytest.mark.parametrize("answer", [{"kind": "selftest"}, [], "passed"])
def test_an_answer_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    answers(tmp_path, monkeypatch, answer)
    with raises(RunFailed):
        certify(synthetic.workload(), synthetic.topology(), 0.2, silent)


def test_a_program_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_GRACE_S", 0.2)
    program = tmp_path / "netjoule-traffic"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))
    with raises(RunFailed):
        certify(synthetic.workload(), synthetic.topology(), 0.1, silent)


def test_the_table_has_a_row_per_flow_with_its_verdict() -> None:
    text = shown([document(), document(passed=False)])
    rows = [line for line in text.splitlines() if "null" in line or "udp" in line]
    assert len([row for row in rows if "812.0" in row]) == 4
    assert text.count(" ok") == 2
    assert text.count("max_error_us 60: it is 812.0000") == 2
    nothing = document()
    for flow in nothing["flows"]:
        flow["pacing_certificate"] |= {
            "error_us": None,
            "within_50us_ratio": None,
            "back_to_back_ratio": None,
        }
    assert " - " in shown([nothing])


def test_the_command_prints_lines_for_machines_and_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    answers(tmp_path, monkeypatch, document(passed=False), code=4)
    assert run_command(["selftest", "skype", "--time-s", "0.2", "--json"]) == 4
    seen = capsys.readouterr()
    (line,) = [json.loads(text) for text in seen.out.splitlines()]
    assert (line["event"], line["passed"]) == ("selftest", False)
    same_sentence(seen.err)


def test_this_build_certifies_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    of = workload(
        payload_bytes=[300],
        offered_rate_mbps=[0.5],
        pacing=["absolute", "hybrid"],
        # Every host keeps these, however busy.
        pacing_limits={"min_achieved_ratio": 0.0},
    )
    found = certify(of, synthetic.topology(), 0.2, silent)
    assert [one["pacing"]["mode"] for one in found] == ["absolute", "hybrid"]
    assert all(one["passed"] for one in found)
    for one in found:
        assert [flow["transport"] for flow in one["flows"]] == ["null", "udp"]
        assert all(flow["pacing_certificate"]["messages_early"] == 0 for flow in one["flows"])


def test_as_many_flows_are_tried_at_once_as_a_run_has_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of the run's transport beside a faster one, up and down: six senders share this host's cores."""
    calls = answers(tmp_path, monkeypatch, document())
    # Whoever answers has waited until all have been asked.
    program = tmp_path / "netjoule-traffic"
    waits = f"while [ $(wc -l <{calls}) -lt 6 ]; do sleep 0.05; done\ncat"
    program.write_text(program.read_text().replace("\ncat", "\n" + waits))
    told: list[str] = []
    of = synthetic.workload(
        transports=["udp"],
        payload_bytes=[64],
        offered_rate_mbps=[3],
        parallel=2,
        direction="both",
        beside=[{"transport": "tcp", "payload_bytes": 1440, "offered_rate_mbps": 100}],
    )
    found = certify(of, synthetic.topology(), 0.2, told.append)
    asked = sorted(" ".join(line.split()[1:5]) for line in calls.read_text().splitlines())
    assert asked == ["-b 100000000 -l 1440"] * 2 + ["-b 3000000 -l 64"] * 4
    assert told == ["this host: 64 B at 3 Mb/s, absolute, among 6 flows at once"]
    assert [one["flows_at_once"] for one in found] == [6] * 6
    contracts.validate("selftest", found[0])
    assert "absolute, 1 of 6 at once" in shown(found)


def test_a_lab_client_keeps_its_own_flows_and_the_server_those_of_all() -> None:
    of = workload(payload_bytes=[64], offered_rate_mbps=[3], parallel=2, clients=3)
    (case,) = cases(FlowSettings.of(of))
    assert (len(at_once(FlowSettings.of(of), case, 1)), len(at_once(FlowSettings.of(of), case, 3))) == (2, 6)


def test_profiles_that_are_tried_at_once_have_schedules_of_their_own() -> None:
    of = workload(profile=TALK, payload_bytes=[172], offered_rate_mbps=[0.037], parallel=2)
    together = at_once(FlowSettings.of(of), cases(FlowSettings.of(of))[0], 1)
    argv = [arguments(case, {}, 2.0, seed) for seed, case in enumerate(together, start=1)]
    assert [one[one.index("--schedule-seed") + 1] for one in argv] == ["1", "2"]


def test_one_that_cannot_be_asked_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answers(tmp_path, monkeypatch, {"message": "no room"}, code=3)
    program = tmp_path / "netjoule-traffic"
    first = f"[ $(wc -l <{calls}) = 1 ] && exec sleep 600\ncat"
    program.write_text(program.read_text().replace("\ncat", "\n" + first))
    of = workload(payload_bytes=[64], offered_rate_mbps=[3], parallel=2)
    with raises(HostLacks):
        certify(of, synthetic.topology(), 0.2, silent)


# A simulated flow, over routers that scale, has no pacer.
SHIPPED = sorted(
    path.stem for path in (ROOT / "workloads/flow").glob("*.yaml") if loads.read(path).arm != "scaling"
)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_workload_holds_its_senders_to_limits(name: str) -> None:
    limits = FlowSettings.of(loads.read(ROOT / "workloads/flow" / f"{name}.yaml")).pacing_limits
    assert limits.keys() >= {"max_error_p50_us", "min_achieved_ratio"}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_sender_that_lumps_does_not_keep_what_a_shipped_workload_asks(name: str) -> None:
    """With burst:4 three of four messages wait 12 ms or longer, as if for a slow tick."""
    shipped = FlowSettings.of(loads.read(ROOT / "workloads/flow" / f"{name}.yaml"))
    late = workload(
        payload_bytes=[300],
        offered_rate_mbps=[0.2],
        pacing="burst:4",
        pacing_limits=shipped.pacing_limits,
    )
    (found,) = certify(late, synthetic.topology(), 0.2, silent)
    assert not found["passed"]
    assert all("max_error_p50_us" in flow["pacing_certificate"]["failed"][0] for flow in found["flows"])


def test_a_host_names_itself_as_the_topology_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(tmp_path, monkeypatch, document())
    of = workload(payload_bytes=[64], offered_rate_mbps=[3])
    argv = [str(tmp_path / "netjoule-traffic")]
    (found,) = asyncio.run(selftest.certify_host(LocalHost("client"), argv, FlowSettings.of(of), 0.2, silent))
    assert found["host"] == "client"


def test_both_ends_of_a_lab_are_asked_over_ssh_with_this_build(tmp_path: Path) -> None:
    ways = {"laptop": "127.0.0.1", "tower": "127.0.0.2"}
    port = sshd.free_port()
    keys = sshd.make_keys(tmp_path / "keys", [f"[{address}]:{port}" for address in ways.values()])
    lab = copy.deepcopy(LAB)
    for name, address in ways.items():
        lab["hosts"][name]["ssh"] = keys.ssh(port) | {"address": address}
    of = workload(payload_bytes=[300], offered_rate_mbps=[0.5], pacing_limits={"min_achieved_ratio": 0.0})
    told: list[str] = []
    with ExitStack() as daemons:
        for address in ways.values():
            conf = sshd.configuration(keys, address, port, tmp_path / "cache")
            daemons.enter_context(sshd.running(sshd.command(conf), address, port))
        found = certify(of, Topology.from_document(lab, where="test"), 0.2, told.append)
    assert told == [f"{name}: 300 B at 0.5 Mb/s, absolute" for name in ways]
    assert [one["host"] for one in found] == list(ways)
    assert all(one["passed"] and one["flows"][0]["pacing_certificate"]["departures"] > 0 for one in found)

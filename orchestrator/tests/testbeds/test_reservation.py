# SPDX-License-Identifier: Apache-2.0
"""A lab's place in a real labgrid on loopback: acquired, refused, released, its power cycled."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import labgrid_bench
import pytest
import sshd
from golden_sentences import raises
from lab_topology import LAB
from labgrid_bench import PLACE, Labgrid
from runner_fakes import FakeClock

from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.hosts.ssh import HostInUse, Owner, SshHost, SshSettings
from netjoule.testbeds import rig_lock
from netjoule.testbeds.lab import host_locks
from netjoule.testbeds.lab.reservation import PROGRAM, Reservation
from netjoule.topology.topology import Topology

OWNER = Owner("mine", "campaign /results/mine", "here", "2026-01-02T03:04:05Z")
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labgrid]:
    with labgrid_bench.running(tmp_path_factory.mktemp("labgrid"), PLACE) as lab:
        yield lab


@pytest.fixture
def lab(bench: Labgrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labgrid:
    """The same with nothing acquired or switched, and this process as its user ann."""
    for name, value in (bench.env | {rig_lock.FOLDER: str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    assert bench.holder() == "None"
    bench.switched.clear()
    return bench


def reservation(said: list[str] | None = None, **changes: Any) -> Reservation:
    of = copy.deepcopy(LAB) | {"reservation": {"labgrid": PLACE, **changes}}
    return Reservation(Topology.from_document(of, where="test"), (said if said is not None else []).append)


def test_a_place_is_acquired_and_released_whatever_ends_the_work(lab: Labgrid) -> None:
    with pytest.raises(ZeroDivisionError), reservation().held("a campaign"):
        assert lab.holder() == "controller/ann"
        raise ZeroDivisionError
    assert lab.holder() == "None"


def test_somebody_elses_place_is_refused_with_who_has_it(lab: Labgrid) -> None:
    lab.client("-p", PLACE, "acquire", LG_USERNAME="bob")
    try:
        with raises(HostInUse) as refused, reservation().held("a campaign"):
            pytest.fail("bob has it")
        assert (refused.value.code, refused.value.exit_code) == ("rig_busy", 2)
        assert lab.holder() == "controller/bob"
    finally:
        lab.client("-p", PLACE, "release", LG_USERNAME="bob")


def test_two_commands_of_one_user_have_no_place_together(lab: Labgrid) -> None:
    with reservation().held("campaign /results/mine"):
        with pytest.raises(HostInUse) as refused, reservation().held("another"):
            pytest.fail("the first has it")
        assert f"in use by campaign /results/mine (process {os.getpid()})" in str(refused.value)
        assert refused.value.code == "rig_busy"
        assert lab.holder() == "controller/ann"


def test_what_the_user_acquired_by_hand_stays_acquired(lab: Labgrid) -> None:
    lab.client("-p", PLACE, "acquire")
    with reservation().held("a campaign"):
        pass
    assert lab.holder() == "controller/ann"
    lab.client("-p", PLACE, "release")


def test_what_a_killed_netjoule_acquired_is_released_by_the_next(lab: Labgrid) -> None:
    child = os.fork()
    if not child:
        with reservation().held("campaign /results/mine"):
            os._exit(0)  # no clean-up, as after SIGKILL
    assert os.waitpid(child, 0)[1] == 0
    assert lab.holder() == "controller/ann"
    with reservation().held("campaign /results/mine"):
        assert lab.holder() == "controller/ann"
    assert lab.holder() == "None"


def test_a_part_of_a_places_name_is_none(lab: Labgrid) -> None:
    with raises(UsageError), reservation(labgrid=PLACE[:-1]).held("a campaign"):
        pytest.fail("labgrid takes it for the place")
    assert lab.holder() == "None"


def test_without_its_coordinator_and_without_labgrid_it_is_told_what_to_do(
    lab: Labgrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_COORDINATOR", "127.0.0.1:1")
    with raises(RunFailed), reservation().held("a campaign"):
        pytest.fail("there is no coordinator")
    monkeypatch.setattr("netjoule.core.programs._folders", list)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with raises(HostLacks) as lacking, reservation().held("a campaign"):
        pytest.fail(f"there is no {PROGRAM}")
    assert lacking.value.exit_code == 3


def test_commands_that_touch_hosts_have_the_place_meanwhile(lab: Labgrid) -> None:
    rack = Topology.from_document(copy.deepcopy(LAB) | {"reservation": {"labgrid": PLACE}}, where="test")
    with host_locks.held(rack, [], OWNER, all_needed=False):
        assert lab.holder() == "controller/ann"
    assert lab.holder() == "None"


@contextlib.contextmanager
def dead_host(folder: Path, lab: Labgrid, name: str) -> Iterator[tuple[SshSettings, contextlib.ExitStack]]:
    """A host without power; closing the stack takes it away again."""
    port = sshd.free_port()
    keys = sshd.make_keys(folder / "keys", [f"[127.0.0.1]:{port}"])
    command = sshd.command(sshd.configuration(keys, "127.0.0.1", port, folder / "cache"))
    with contextlib.ExitStack() as power:

        def on(outlet: str) -> None:
            if outlet == name:
                power.enter_context(sshd.running(command, "127.0.0.1", port))

        lab.on = on
        yield SshSettings.of(name, {"control_address": "127.0.0.1", "ssh": keys.ssh(port)}), power
    lab.on = lambda _: None


def test_a_host_that_is_dead_when_a_session_begins_is_power_cycled_once(lab: Labgrid, tmp_path: Path) -> None:
    said: list[str] = []
    place = reservation(said, power_cycle={"laptop": "laptop", "board": "laptop"})

    async def story(settings: SshSettings) -> None:
        host = SshHost(settings, OWNER, said.append)
        await place.connect(host)
        await host.close()
        assert await place.cycle("board", place._began_ns)  # on the same outlet, and dead as long

    with dead_host(tmp_path, lab, "laptop") as (settings, _), place.held("a campaign"):
        asyncio.run(asyncio.wait_for(story(settings), WITHIN_S))
    assert lab.switched == [("laptop", False), ("laptop", True)]
    assert said == [f"host laptop does not answer: labgrid cycles its power ({PLACE}, laptop)"]


def test_a_dead_host_whose_power_is_not_to_be_cycled_is_told_at_once(lab: Labgrid, tmp_path: Path) -> None:
    place = reservation(power_cycle={"tower": "tower"})

    async def story(settings: SshSettings) -> None:
        await place.connect(SshHost(settings, OWNER, print))

    with (
        dead_host(tmp_path, lab, "laptop") as (settings, _),
        place.held("a campaign"),
        pytest.raises(RunFailed) as unreachable,
    ):
        asyncio.run(asyncio.wait_for(story(settings), WITHIN_S))
    assert unreachable.value.code == "host_unreachable"
    assert lab.switched == []


def test_a_host_that_is_given_up_in_a_session_is_power_cycled_and_comes_back(
    lab: Labgrid, tmp_path: Path
) -> None:
    """Ten minutes pass at once: the clock jumps to each next try."""
    said: list[str] = []
    place = reservation(said, power_cycle={"laptop": "laptop"})

    async def story(settings: SshSettings, power: contextlib.ExitStack) -> None:
        clock = FakeClock()
        host = SshHost(settings, OWNER, said.append, clock, revive=partial(place.cycle, "laptop"))
        lab.on("laptop")
        await host.connect()
        began_ns = clock.now_ns
        power.close()
        host._live().abort()
        while host.up:
            await asyncio.sleep(0)
        await host.wait_up()
        assert 600 <= (clock.now_ns - began_ns) / 1e9 < 610
        assert (await host.ask(["echo", "here"])).out == "here\n"
        await host.close()

    with dead_host(tmp_path, lab, "laptop") as (settings, power), place.held("a campaign"):
        asyncio.run(asyncio.wait_for(story(settings, power), WITHIN_S))
    assert lab.switched == [("laptop", False), ("laptop", True)]
    assert said[:2] == [
        "host laptop is out of reach",
        f"host laptop does not answer: labgrid cycles its power ({PLACE}, laptop)",
    ]
    assert said[2].startswith("host laptop is back after 60")


def test_a_host_that_stays_dead_is_cycled_once_and_given_up_after_as_long_again(
    lab: Labgrid, tmp_path: Path
) -> None:
    place = reservation(power_cycle={"laptop": "laptop"})

    async def story(settings: SshSettings, power: contextlib.ExitStack) -> None:
        clock = FakeClock()
        host = SshHost(settings, OWNER, print, clock, revive=partial(place.cycle, "laptop"))
        lab.on("laptop")
        await host.connect()
        began_ns = clock.now_ns
        power.close()
        lab.on = lambda _: None
        host._live().abort()
        assert (await host.given_up()).code == "host_unreachable"
        assert 1200 <= (clock.now_ns - began_ns) / 1e9 < 1220
        await host.close()

    with dead_host(tmp_path, lab, "laptop") as (settings, power), place.held("a campaign"):
        asyncio.run(asyncio.wait_for(story(settings, power), WITHIN_S))
    assert lab.switched == [("laptop", False), ("laptop", True)]


def test_an_outlet_that_labgrid_does_not_switch_is_told_and_nothing_is_waited_for(lab: Labgrid) -> None:
    said: list[str] = []
    place = reservation(said, power_cycle={"laptop": "no-such-outlet"})
    with place.held("a campaign"):
        assert not asyncio.run(place.cycle("laptop", place._began_ns))
    assert said[1] == (
        f"the power of host laptop is not cycled: place {PLACE} of labgrid: labgrid-client power failed:"
        " labgrid-client: Error: target has no compatible resource available;"
        f" 'labgrid-client -p {PLACE} show' tells more; LG_COORDINATOR names the coordinator"
    )

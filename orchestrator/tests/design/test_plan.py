# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

import netjoule_contracts
from netjoule import loads
from netjoule.cli import launch, plan
from netjoule.design.duration import forecast, least_p
from netjoule.design.run_table import FINAL, PlanRow, expand, next_mini_block, with_repeats
from netjoule.loads.flow.settings import Pace
from netjoule.workload.cell import Cell
from netjoule.workload.workload import Workload

TRANSPORTS = ["udp", "tcp", "quic", "null"]


def make(transports=TRANSPORTS, sizes=(64, 1440), rates=(1, 3), blocks=2, **more):
    document = {
        "schema_version": 1,
        "name": "t",
        "transports": list(transports),
        "payload_bytes": list(sizes),
        "offered_rate_mbps": list(rates),
        "blocks": blocks,
        "timing": {"idle_s": 1, "settle_s": 0.2, "warm_up_s": 1, "measure_s": 2, "tail_s": 0.3},
        **more,
    }
    return loads.made(document, where="test")


workloads = st.builds(
    make,
    transports=st.lists(st.sampled_from(TRANSPORTS), min_size=1, unique=True).filter(
        lambda names: names != ["null"]
    ),
    sizes=st.lists(st.integers(16, 1472), min_size=1, max_size=3, unique=True),
    rates=st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True),
    blocks=st.integers(1, 4),
    pacing=st.lists(
        st.sampled_from(["absolute", "hybrid", "spin", "burst:8"]), min_size=1, max_size=2, unique=True
    ),
    window_us=st.lists(st.sampled_from([0, 50, 200]), min_size=1, max_size=2, unique=True),
)
seeds = st.integers(0, 2**53 - 1)


def by(rows, *names):
    groups: dict[tuple, list[PlanRow]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, n) for n in names), []).append(row)
    return groups


@given(workloads, seeds)
def test_each_block_holds_every_cell_once_with_every_transport(workload, seed):
    rows = expand(workload, seed)
    wanted = {(cell, t) for cell in workload.cells for t in workload.arms}
    assert len(wanted) == workload.runs // workload.blocks
    for block in by(rows, "block").values():
        cells = [(r.cell, r.arm) for r in block]
        assert len(cells) == len(set(cells))
        assert set(cells) == wanted


@given(workloads, seeds)
def test_a_mini_block_is_one_cell_back_to_back_with_every_transport(workload, seed):
    rows = expand(workload, seed)
    for mini_block in by(rows, "mini_block").values():
        assert (
            len(
                {
                    (r.block, r.cell["payload_bytes"], r.cell["offered_rate_mbps"], Pace.of(r.cell))
                    for r in mini_block
                }
            )
            == 1
        )
        assert sorted(r.arm for r in mini_block) == sorted(workload.arms)
        assert [r.order for r in mini_block] == list(range(1, len(mini_block) + 1))
    numbers = [r.mini_block for r in rows]
    assert numbers == sorted(numbers)


@given(workloads, seeds)
def test_the_seed_decides_everything(workload, seed):
    rows = expand(workload, seed)
    assert rows == expand(workload, seed)
    assert len({r.run_id for r in rows}) == len(rows)


def test_another_seed_shuffles_mini_blocks_and_transports():
    workload = make(rates=(1, 3, 10, 30), blocks=1)
    orders = [
        [(r.cell["payload_bytes"], r.cell["offered_rate_mbps"], r.arm) for r in expand(workload, s)]
        for s in (1, 2)
    ]
    assert orders[0] != orders[1]
    first_transports = {expand(workload, seed)[0].arm for seed in range(40)}
    assert first_transports == set(TRANSPORTS)


def test_blocks_are_shuffled_independently():
    workload = make(rates=tuple(range(1, 13)), blocks=2)
    blocks = by(expand(workload, 7), "block")
    order = [
        [(r.cell["payload_bytes"], r.cell["offered_rate_mbps"]) for r in rows if r.order == 1]
        for rows in blocks.values()
    ]
    assert order[0] != order[1]
    assert sorted(order[0]) == sorted(order[1])


def test_adding_a_rate_to_a_workload_keeps_run_seeds_of_the_first_mini_block():
    small, large = expand(make(rates=(1,)), 3), expand(make(rates=(1, 2)), 3)
    seeds_of = {r.run_id: r.seed for r in large}
    assert all(seeds_of[r.run_id] == r.seed for r in small if r.block == 1 and r.mini_block == 1)


def test_a_list_of_pacings_makes_a_mini_block_of_each_and_is_counted():
    workload = make(sizes=(64,), rates=(1,), blocks=1, pacing=["absolute", "spin"], gso=[False, True])
    rows = expand(workload, 1)
    assert {Pace.of(r.cell) for r in rows} == {
        Pace(m, 0, g) for m in ("absolute", "spin") for g in (False, True)
    }
    assert {len({Pace.of(r.cell) for r in mini}) for mini in by(rows, "mini_block").values()} == {1}
    size = forecast(workload, synthetic.topology())
    assert (size.mini_blocks, size.runs) == (4, len(rows))


def test_a_repeat_keeps_the_pacing():
    rows = expand(make(rates=(1,), sizes=(64,), blocks=1, pacing="burst:4", window_us=50), 1)
    again = with_repeats(settle(rows, rest="invalid"), 1, 2)
    assert {Pace.of(r.cell) for r in again} == {Pace("burst:4", 50)}


def test_a_workload_with_one_pacing_keeps_the_plan_that_its_seed_always_gave():
    plain = expand(make(), 5)
    assert [
        replace(r, cell=Cell({**r.cell, "pacing": "absolute"})) for r in expand(make(pacing="spin"), 5)
    ] == list(plain)


def test_run_ids_say_block_mini_block_transport_and_attempt():
    ids = {r.run_id for r in expand(make(sizes=(64,), rates=(1,), blocks=1), 1)}
    assert ids == {"b01m001-udp-a1", "b01m001-tcp-a1", "b01m001-quic-a1", "b01m001-null-a1"}


def settle(rows, **status):
    """Mark runs by run_id; ``rest`` for all others."""
    rest = status.pop("rest", None)
    named = {k.replace("_", "-"): v for k, v in status.items()}
    out = []
    for row in rows:
        new = named.get(row.run_id, rest or row.status)
        out.append(replace(row, status=new, reason="idle_drift" if new == "invalid" else ""))
    return tuple(out)


def test_next_is_the_first_mini_block_that_is_not_finished():
    rows = expand(make(), 5)
    first = next_mini_block(rows)
    assert first is not None
    assert first.mini_block == 1
    assert first.missing == first.rows
    assert not first.resumed
    done = tuple(replace(r, status="valid") if r.mini_block == 1 else r for r in rows)
    second = next_mini_block(done)
    assert second is not None
    assert second.mini_block == 2


def test_a_half_done_mini_block_gives_only_its_missing_runs():
    rows = expand(make(), 5)
    rows = tuple(replace(r, status="valid") if r.mini_block == 1 and r.order <= 2 else r for r in rows)
    mini = next_mini_block(rows)
    assert mini is not None
    assert mini.resumed
    assert [r.order for r in mini.missing] == [3, 4]
    assert len(mini.rows) == 4


def test_nothing_is_next_when_all_is_final():
    rows = settle(expand(make(), 5), rest="valid")
    assert next_mini_block(rows) is None


def test_an_invalid_run_repeats_its_mini_block_at_the_end_of_its_block():
    rows = expand(make(), 5)
    rows = tuple(replace(r, status="valid") if r.mini_block == 1 else r for r in rows)
    bad = rows[1].run_id
    rows = tuple(replace(r, status="invalid", reason="idle_drift") if r.run_id == bad else r for r in rows)
    out = with_repeats(rows, 5, 3)
    added = [r for r in out if r.attempt == 2]
    assert {r.arm for r in added} == set(TRANSPORTS)
    assert {r.mini_block for r in added} == {1}
    assert {r.cell for r in added} == {rows[0].cell}
    places = [i for i, r in enumerate(out) if r.attempt == 2]
    last_of_block = max(i for i, r in enumerate(out) if r.block == 1)
    assert places == list(range(last_of_block - 3, last_of_block + 1))
    older = [r.status for r in out if r.mini_block == 1 and r.attempt == 1]
    assert sorted(older) == ["invalid", "superseded", "superseded", "superseded"]
    assert len({r.seed for r in out}) == len(out)


def test_a_run_of_an_older_attempt_that_was_run_again_stays_out_of_the_pairs():
    rows = [replace(r, status="valid") for r in expand(make(sizes=(64,), rates=(1,), blocks=1), 7)]
    rows[0] = replace(rows[0], status="invalid", reason="meter_gap")
    repeated = [replace(r, status="valid" if r.attempt == 2 else r.status) for r in with_repeats(rows, 7, 3)]
    again = [replace(r, status="valid") if r.run_id == rows[1].run_id else r for r in repeated]
    assert with_repeats(again, 7, 3) == tuple(repeated)


def test_repeats_stop_at_the_greatest_number_of_attempts():
    rows = settle(expand(make(sizes=(64,), rates=(1,), blocks=1), 5), rest="invalid")
    for attempt in (2, 3):
        rows = with_repeats(rows, 5, 3)
        assert max(r.attempt for r in rows) == attempt
        rows = tuple(replace(r, status="invalid", reason="idle_drift") for r in rows)
    assert with_repeats(rows, 5, 3) == rows


@given(workloads, seeds, st.data())
def test_repeating_is_idempotent_and_ends(workload, seed, data):
    rows = expand(workload, seed)
    for _ in range(3 * len(rows)):
        mini = next_mini_block(rows)
        if mini is None:
            break
        outcome = data.draw(st.lists(st.booleans(), min_size=len(mini.missing), max_size=len(mini.missing)))
        verdict = dict(zip([r.run_id for r in mini.missing], outcome, strict=True))
        rows = tuple(
            replace(
                r, status="valid" if verdict[r.run_id] else "invalid", reason="" if verdict[r.run_id] else "x"
            )
            if r.run_id in verdict
            else r
            for r in rows
        )
        rows = with_repeats(rows, seed, 2)
        assert with_repeats(rows, seed, 2) == rows
    assert all(r.status in FINAL for r in rows)
    assert len({r.run_id for r in rows}) == len(rows)
    latest = {r.mini_block: r.attempt for r in rows}
    for row in rows:
        # Every attempt but the last has an invalid run, and no valid run of it is left to be paired.
        if row.attempt < latest[row.mini_block]:
            assert row.status in ("invalid", "superseded")


def test_forecast_counts_runs_and_time():
    size = forecast(make(blocks=3, rates=(1, 3, 10, 30)), synthetic.topology())
    assert (size.runs, size.mini_blocks) == (96, 24)
    # 4.5 s of windows, two guards of a meter update and a device sample (0.1 s each), process starts.
    assert size.duration_s == pytest.approx(96 * (4.5 + 2 * 0.2 + 0.1) + 1)
    assert (size.sessions, size.least_p) == (1, 0.25)


def test_forecast_counts_the_start_of_each_session_and_idle_windows_that_no_two_runs_share(monkeypatch):
    known = netjoule_contracts.factors()
    document = make(blocks=3, rates=(1,), sizes=(64,)).document
    factors = document["factors"] | {"path": [{"rtt_ms": 5}, {"rtt_ms": 40}]}
    workload = Workload.from_document(document | {"factors": factors}, where="test")
    sizes = {}
    for change in ({}, {"moves_idle_power": True}, {"while_up": False}):
        told = known | {"path": known["path"] | change}
        monkeypatch.setattr(netjoule_contracts, "factors", lambda told=told: told)
        sizes["".join(change)] = forecast(workload, synthetic.topology())
    plain, moving, held = sizes.values()
    assert moving.duration_s - plain.duration_s == pytest.approx(6 * 1)
    assert (plain.sessions, held.sessions) == (1, 6)
    assert held.duration_s - plain.duration_s == pytest.approx(5 * (1 + 3))


def test_least_p_of_a_sign_flip_test():
    assert [least_p(n) for n in (1, 2, 6, 8)] == [1.0, 0.5, 0.03125, 0.0078125]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blocks": 5}, "0.0625 possible with 5 blocks (sign-flip test); tests need 8 blocks or more"),
        ({"blocks": 7}, "0.0156 possible with 7 blocks (sign-flip test); tests need 8 blocks or more"),
        ({"blocks": 8}, "0.00781 possible with 8 blocks (sign-flip test), the only test"),
        (
            {"blocks": 8, "payload_bytes": [64, 512, 1440]},
            "0.00781 possible with 8 blocks (sign-flip test); 0.0234 after Holm over 3 tests",
        ),
        (
            {"blocks": 8, "transports": ["udp", "tcp", "quic", "dccp", "null"], "payload_bytes": [64, 1440]},
            "0.00781 possible with 8 blocks (sign-flip test); 0.0469 after Holm over 6 tests",
        ),
        (
            {"blocks": 9, "statistics": {"alpha": 0.001}},
            "0.00391 possible with 9 blocks (sign-flip test); tests need 11 blocks or more",
        ),
        (
            {"blocks": 9, "transports": ["udp", "null"]},
            "0.00391 possible with 9 blocks (sign-flip test); no two arms to compare, so no test",
        ),
    ],
)
def test_plan_says_whether_its_blocks_are_tested_and_what_the_family_can_reach(changes, words):
    workload = synthetic.workload(**({"transports": ["udp", "tcp", "null"]} | changes))
    inputs = launch.Inputs(workload, synthetic.topology(), Path("w"), Path("t"))
    (line,) = [line for line in plan.text(inputs, 1, []) if line.startswith("smallest p")]
    assert line == f"smallest p {words}"

# SPDX-License-Identifier: Apache-2.0
"""Folders as students hand them in: campaigns of the exercises, and what is right of them.

Three are synthetic, those of `scaling` and `transfers` are the shipped ones. What is right is worked out here
without the code under test, from what the runs wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml
from plans import plan

from netjoule.cli.app import run_command
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.start import golden_bundle, unpack
from netjoule.workload.workload import Timing
from netjoule_contracts.lift.results import lifted_result
from netjoule_synthetic import Design, LinearPower, Meter, write

QUESTIONS = [(e.name, q) for e in EXERCISES.values() for q in e.questions]
NAMES = [f"{name}.{question.name}" for name, question in QUESTIONS]
# 0.975 quantile of Student's t by degrees of freedom, as printed tables have it.
T_975 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 29: 2.0452}
CAP_MBPS = 6.144
BLOCKS = 3
SHIPPED = ("scaling", "transfers")
METERS = ("s5-seed", "s5-seed-none", "s5-seed-half", "s5-seed-double")
BREAK_POINT = 16  # of the shipped campaign, as its figure shows
TIMING = Timing(1.0, 0.2, 0.6, 2.0, 0.2)
SCATTER = {"block_sd_ratio": 0.03, "run_sd_ratio": 0.004, "seed": 5}


def messages_w(transport: str, payload_bytes: int, rate_mbps: float) -> float:
    """A floor that grows with messages, and transports that take more than it."""
    per_s = rate_mbps * 1e6 / (8 * payload_bytes)
    floor_w = 0.1 + 4e-5 * per_s
    factor = {"udp": 1.0, "tcp": 1.1, "quic": 1.6, "dccp": 0.8}
    if transport == "null":
        return floor_w
    return floor_w + factor[transport] * (0.01 * rate_mbps + 3e-5 * per_s)


def at_the_cap_w(transport: str, payload_bytes: int, rate_mbps: float) -> float:
    """UDP works for what it sends, DCCP for what it may send."""
    sent_mbps = rate_mbps if transport != "dccp" else min(rate_mbps, CAP_MBPS)
    return messages_w(transport, payload_bytes, sent_mbps)


def cap_loss(transport: str, _payload: int, rate_mbps: float) -> float:
    return max(0.0, 1 - CAP_MBPS / rate_mbps) if transport == "udp" else 0.0


def cap_held_back(transport: str, _payload: int, rate_mbps: float) -> float:
    return max(0.0, 1 - 0.97 * CAP_MBPS / rate_mbps) if transport == "dccp" else 0.0


def designs(**changes: Any) -> dict[str, Design]:
    """A design for each exercise whose campaign is synthetic here; `changes` hold for all."""
    shared: dict[str, Any] = {"blocks": BLOCKS, "timing": TIMING, **SCATTER}
    of: dict[str, dict[str, Any]] = {
        "envelope": {
            "transports": ("udp", "tcp", "quic"),
            "payload_bytes": (64, 1440),
            "offered_rate_mbps": (6.0, 12.0, 24.0),
            "meters": (
                Meter("client-cpu", power=LinearPower()),
                Meter("other", power=LinearPower(1.0, 1.0, 1.0)),
            ),
        },
        "floor": {
            "transports": ("udp", "quic", "null"),
            "payload_bytes": (64, 1440),
            "offered_rate_mbps": (3.0, 12.0),
            "meters": (Meter("client-cpu", power=messages_w),),
        },
        "congestion": {
            "transports": ("udp", "dccp", "tcp"),
            "payload_bytes": (64,),
            "offered_rate_mbps": (3.0, 12.0, 20.0),
            "meters": (Meter("client-cpu", power=at_the_cap_w),),
            "loss": cap_loss,
            "held_back": cap_held_back,
        },
    }
    return {name: Design(**(shared | own | changes)) for name, own in of.items()}


def fly(folder: Path, exercise: str, design: Design) -> Path:
    """Write the campaign of an exercise into a folder that is handed in."""
    place = write(folder / exercise, design)
    if exercise == "congestion":
        edit(place / "campaign.json", lambda d: d["topology"]["link"].update(preset="seed-like"))
    return place


def fly_all(folder: Path, **changed: Design) -> None:
    """Write the campaigns of all exercises, some of other designs."""
    for name, design in (designs() | changed).items():
        fly(folder, name, design)
    for name in SHIPPED:
        unpack(golden_bundle(EXERCISES[name]), folder / name)


def checked(folder: Path, *words: str) -> int:
    """Exit code of a check that tells events."""
    return run_command(["coursework", "check", str(folder), "--json", *words])


def events(capsys: Any) -> list[dict[str, Any]]:
    """What it told."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def verdicts(found: list[dict[str, Any]]) -> dict[str, str]:
    """The verdicts in it, by exercise and question."""
    return {f"{e['exercise']}.{e['question']}": e["verdict"] for e in found if e["event"] == "answer"}


def edit(path: Path, change: Any) -> None:
    """Change a JSON document in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def answer(folder: Path, exercises: dict[str, Any]) -> None:
    """Write answers.yaml."""
    document = {"schema_version": 1, "kind": "coursework_answers", "exercises": exercises}
    (folder / "answers.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def runs(campaign: Path) -> Iterator[tuple[dict[str, str], dict[str, Any], dict[str, Any]]]:
    """Plan row, result and flow of each run that counts."""
    for row in plan(campaign):
        folder = campaign / "runs" / row["run_id"]
        if row["status"] == "valid":
            result, flow = (json.loads((folder / f"{name}.json").read_text()) for name in ("result", "flow"))
            yield row, lifted_result(result), flow


def values(campaign: Path, cell: tuple[str, int, float], name: str) -> list[float]:
    """A quantity of a cell at the first meter, block by block (synthetic plans have one run a block)."""
    found = {}
    for row, result, flow in runs(campaign):
        if (row["transport"], int(row["payload_bytes"]), float(row["offered_rate_mbps"])) != cell:
            continue
        node = result["nodes"][0]
        parts = {
            **flow,
            **result,
            **node["floor"],
            **node,
            **result["measures"],
            "t_a_mbps": result["work"]["work_per_s"],
        }
        found[int(row["block"])] = parts[name]
    return [found[block] for block in sorted(found)]


def right_answers(folder: Path) -> dict[str, dict[str, Any]]:
    """What is right of the campaigns of a folder."""

    def mean(exercise: str, cell: tuple[str, int, float], name: str) -> float:
        return fmean(values(folder / exercise, cell, name))

    ea, above = "ea_j_per_mbit", "ea_above_floor_j_per_mbit"
    udp, udp_floor, quic_floor = ("udp", 64, 12.0), ("udp", 64, 12.0), ("quic", 64, 12.0)
    eas = values(folder / "envelope", udp, ea)
    small, large = (mean("envelope", ("udp", size, 12.0), ea) for size in (64, 1440))
    heavy = {name: (name, 64, 20.0) for name in ("udp", "dccp", "tcp")}
    goodput = mean("congestion", heavy["udp"], "t_a_mbps")
    return {
        "envelope": {
            "least_ea_payload_bytes": 1440,
            "udp_ea_j_per_mbit": fmean(eas),
            "udp_ea_half_width_j_per_mbit": T_975[len(eas) - 1] * stdev(eas) / math.sqrt(len(eas)),
            "udp_envelope_ratio": small / large,
            "dearest_transport": "quic",
            "holds_for_a_real_laptop": False,
        },
        "floor": {
            "floor_w": mean("floor", udp_floor, "floor_w"),
            "floor_share_ratio": mean("floor", udp_floor, "floor_w") / mean("floor", udp_floor, "delta_p_w"),
            "udp_ea_above_floor_j_per_mbit": mean("floor", udp_floor, above),
            "quic_over_udp_ea_ratio": mean("floor", quic_floor, ea) / mean("floor", udp_floor, ea),
            "quic_over_udp_above_floor_ratio": (
                mean("floor", quic_floor, above) / mean("floor", udp_floor, above)
            ),
            "transports_differ_more": "above_floor",
            "floor_grows_with": "messages_per_second",
        },
        "congestion": {
            "udp_goodput_mbps": goodput,
            "udp_arrivals_pps": goodput * 1e6 / 512,
            "udp_loss_ratio": mean("congestion", heavy["udp"], "loss_ratio"),
            "dccp_not_sent_ratio": 1 - mean("congestion", heavy["dccp"], "achieved_ratio"),
            "dccp_loss_ratio": mean("congestion", heavy["dccp"], "loss_ratio"),
            "cheaper_transport": "dccp",
            "tcp_frames_per_message": mean("congestion", heavy["tcp"], "frames_per_message"),
            "tcp_brings_more_because": "messages_share_packets",
            "cap_is_measured": False,
        },
        "scaling": right_of_scaling(folder / "scaling"),
        "transfers": right_of_transfers(folder / "transfers"),
    }


def simulated_values(campaign: Path, arm: str, path: str) -> list[dict[str, float]]:
    """Measures and goodput of each run of an arm over a path, block by block."""
    found = []
    for block in range(1, len(list((campaign / "blocks").iterdir())) + 1):
        for line in (campaign / f"blocks/{block}/results.ndjson").read_text().splitlines():
            result = json.loads(line)
            if (result["arm"], result["factors"]["path"]) == (arm, path):
                found.append({**result["measures"], "t_a_mbps": result["work"]["work_per_s"]})
    return found


def right_of_scaling(campaign: Path) -> dict[str, Any]:
    far, without = (simulated_values(campaign, arm, "rtt-100") for arm in ("practra-10", "none"))

    def mean(name: str) -> float:
        return fmean(run[name] for run in far)

    pairs = [(ours["t_a_mbps"] / theirs["t_a_mbps"], ours) for ours, theirs in zip(far, without, strict=True)]
    lost = 1 - fmean(ratio for ratio, _ in pairs)
    return {
        "far_service_rate_mbps": mean("service_rate_mbps"),
        "far_saving_ratio": mean("saving_linear_ratio"),
        "far_saving_cubic_ratio": mean("saving_cubic_ratio"),
        "far_goodput_lost_percent": 100 * lost,
        "energy_more_percent": 100
        * (fmean((0.5 + 0.5 * (1 - run["saving_linear_ratio"])) / ratio for ratio, run in pairs) - 1),
        "break_even_static_ratio": 1 - lost / mean("saving_linear_ratio"),
        "saves_most_near": "practra-10",
        "loses_least_alone": "practra-1000",
        "loses_least_with_bursts": "practra-10",
        "long_mrci_loses_more_because": "rate_rises_too_late",
        "measured_on_a_router": False,
    }


def fetched(campaign: Path, http: str, connections: str, meter: str) -> list[dict[str, float]]:
    """Throughput and E_d per 100 MB (8e8 bit) of each run with so many connections, block by block."""
    found = {}
    for row in (one for one in plan(campaign) if one["status"] == "valid"):
        result = json.loads((campaign / "runs" / row["run_id"] / "result.json").read_text())
        if (result["factors"]["http"], result["arm"]) == (http, connections):
            (node,) = (one for one in result["nodes"] if one["meter_id"] == meter)
            window_s = result["window"]["t_end_s"] - result["window"]["t_start_s"]
            work_mbit = result["work"]["quantity"]
            found[int(row["block"])] = {
                "throughput_mbps": work_mbit / window_s,
                "e_d_j": 800 * node["e_d_j"] / work_mbit,
            }
    return [found[block] for block in sorted(found)]


def right_of_transfers(campaign: Path) -> dict[str, Any]:
    def of(name: str, connections: str, http: str = "1.1") -> list[float]:
        return [run[name] for run in fetched(campaign, http, connections, "s5-seed")]

    one_mbps = fmean(of("throughput_mbps", "1"))
    one_j, many_j = (fmean(of("e_d_j", connections)) for connections in ("1", "16"))
    return {
        "predicted_one_mbps": 65536 * 8 / (0.290 + 65536 * 8 / 100e6) / 1e6,
        "one_mbps": one_mbps,
        "most_over_one_ratio": fmean(of("throughput_mbps", "32")) / one_mbps,
        "less_than_32_because": "each_begins_with_round_trips",
        "one_e_d_per_100_mb_j": one_j,
        "saving_percent": 100 * (1 - many_j / one_j),
        "break_point_connections": BREAK_POINT,
        "http_2_over_http_1_ratio": fmean(of("throughput_mbps", "1", "2")) / one_mbps,
        "cheaper_way": "one_of_http_2",
        "hangs_on_the_term": "many_beat_one_over_http_2",
        "term_is_measured": False,
    }

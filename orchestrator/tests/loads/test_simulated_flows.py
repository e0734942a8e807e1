# SPDX-License-Identifier: Apache-2.0
"""Flows on a simulated testbed: campaigns of the real program over the study's path, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_campaign import netjoule, table

from netjoule import loads
from netjoule.core.errors import UsageError
from netjoule.design.limits import check_workload
from netjoule.loads import load_of
from netjoule.loads.flow import routers
from netjoule.topology import topology

TESTBED = Path(__file__).parents[3] / "testbed/topologies/troubled-marriage-simulated.yaml"
WORKLOAD: dict[str, Any] = {
    "schema_version": 2,
    "name": "scaling",
    "load": "flow",
    "arm": "scaling",
    "control": False,
    "factors": {
        "scaling": ["none", "practra-10"],
        "path": ["rtt-100"],
        "transport": "tcp",
        "payload_bytes": 1460,
        "offered_rate_mbps": 20,
    },
    "blocks": 2,
    "timing": {"idle_s": 1, "settle_s": 0, "warm_up_s": 20, "measure_s": 40, "tail_s": 0},
}


SLOW = {"min_rate_mbps": 1, "max_rate_mbps": 5, "mean_interval_ms": 50}


def workload(folder: Path, **changes: Any) -> Path:
    """The workload with other factors, or other fields where their names are no factor's."""
    fields = {name: value for name, value in changes.items() if name in ("flow", "blocks", "control", "arm")}
    factors = WORKLOAD["factors"] | {name: value for name, value in changes.items() if name not in fields}
    file = folder / "scaling.yaml"
    file.write_text(yaml.safe_dump(WORKLOAD | {"factors": factors} | fields))
    return file


def run(folder: Path, name: str, **changes: Any) -> Path:
    out = folder / name
    netjoule("run", workload(folder, **changes), "--testbed", TESTBED, "--seed", "5", "--out", out)
    return out


def documents(campaign: Path, name: str) -> list[dict[str, Any]]:
    blocks = sorted((campaign / "blocks").iterdir())
    return [json.loads(line) for block in blocks for line in (block / name).read_text().splitlines()]


def test_a_campaign_tells_what_a_router_saves_and_takes(tmp_path: Path) -> None:
    campaign = run(tmp_path, "c")
    assert "no defects" in netjoule("check", campaign).stdout
    for one in documents(campaign, "runs.ndjson"):
        kept = one["measures"]
        rows = table(campaign / "blocks" / str(one["block"]) / "routers.csv")
        own = [row for row in rows if row["run_id"] == one["run_id"] and float(row["t_start_s"]) >= 20]
        rates = [float(row["mean_rate_mbps"]) for row in own]
        assert (len(own), {row["kind"] for row in own}) == (40, {one["arm"].partition("-")[0]})
        assert kept["service_rate_mbps"] == pytest.approx(sum(rates) / 40)
        assert kept["saving_linear_ratio"] == pytest.approx(1 - sum(rates) / 400)
        assert (kept["loss_ratio"], kept["achieved_ratio"], one["reasons"]) == (None, None, [])
        assert kept["rate_switches"] == sum(int(row["switches"]) for row in own)
        assert one["in_force"]["scaling"]["elements"][0]["scaling"]["kind"] == own[0]["kind"]
    [none, practra] = table(campaign / "tables" / "energy_summary.csv")
    assert (none["scaling"], practra["scaling"], none["n"]) == ("none", "practra-10", "2")
    assert float(none["service_rate_mbps"]) == 10
    assert 8 < float(practra["service_rate_mbps"]) < 9
    goodput = next(
        row for row in table(campaign / "tables" / "measure_contrasts.csv") if row["measure"] == "t_a_mbps"
    )
    ratio = float(practra["t_a_mbps"]) / float(none["t_a_mbps"])
    assert float(goodput["difference_percent"]) == pytest.approx(100 * (ratio - 1), rel=0.05)
    energy = {(row["arm"], row["form"], row["static_ratio"]): row for row in _energy(campaign)}
    cubic = energy["practra-10", "cubic", "0.5"]
    assert float(cubic["saving_ratio"]) == pytest.approx(0.5 * float(practra["saving_cubic_ratio"]), rel=1e-6)
    assert float(cubic["power_difference_percent"]) == pytest.approx(-100 * float(cubic["saving_ratio"]))
    assert energy["none", "cubic", "0.5"]["reference"] == ""
    netjoule("report", campaign)
    assert "Routers: what scaling saves" in (campaign / "report.html").read_text()


def _energy(campaign: Path) -> list[dict[str, str]]:
    return table(campaign / "tables" / "router_energy.csv")


@pytest.mark.parametrize("name", ["troubled-marriage-simulated", "troubled-marriage"])
def test_a_router_that_could_never_rise_again_is_refused_before_anything_starts(
    tmp_path: Path, name: str
) -> None:
    topology = yaml.safe_load((TESTBED.parent / f"{name}.yaml").read_text())
    topology["presets"]["scaling"]["practra-10"]["delay_limit_ms"] = 55.5
    told = tmp_path / "told.yaml"
    told.write_text(yaml.safe_dump(topology))
    planned = netjoule("plan", workload(tmp_path), "--testbed", told)
    assert planned.returncode == 2
    assert (
        "path rtt-100, scaling practra-10: netjoule-simulate: elements[1]: the rate could never rise"
        in planned.stderr
    )
    assert "make the queue longer, or d shorter" in planned.stderr


def test_where_the_power_of_the_routers_is_told_energy_is_in_joules_too(tmp_path: Path) -> None:
    topology = yaml.safe_load(TESTBED.read_text())
    topology["link"]["router_max_power_w"] = 4
    told, out = tmp_path / "told.yaml", tmp_path / "c"
    told.write_text(yaml.safe_dump(topology))
    netjoule("run", workload(tmp_path, blocks=1), "--testbed", told, "--seed", "5", "--out", out)
    for row in _energy(out):
        assert float(row["energy_j_per_mbit"]) == pytest.approx(4 * float(row["energy_per_mbit_of_p_max"]))


def test_arms_of_a_mini_block_meet_the_same_bursts_and_a_seed_gives_the_same_again(tmp_path: Path) -> None:
    first = run(tmp_path, "one", path=["rtt-10-bursts"], blocks=1)
    again = run(tmp_path, "two", path=["rtt-10-bursts"], blocks=1)
    for name in ("routers.csv", "intervals.csv", "results.ndjson"):
        assert (first / "blocks/1" / name).read_bytes() == (again / "blocks/1" / name).read_bytes()
    others: dict[str, list[int]] = {}
    for row in table(first / "blocks" / "1" / "routers.csv"):
        other = int(row["arrived_packets"]) - int(row["flows_arrived_packets"])
        others.setdefault(row["run_id"], []).append(other)
    [one, two] = others.values()
    assert sum(one) > 1000
    # A burst that ends with a step may leave the wire in the next one.
    assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) <= 0.02 * sum(one)


def test_several_flows_share_the_path_and_each_has_a_part(tmp_path: Path) -> None:
    flow = {"simulated": {"interval_s": 10, "delayed_acks": False, "sack": True}}
    campaign = run(
        tmp_path,
        "c",
        parallel=2,
        congestion_control=["reno", "cubic"],
        scaling="none",
        arm="congestion_control",
        flow=flow,
        blocks=1,
    )
    assert "no defects" in netjoule("check", campaign).stdout
    for result in documents(campaign, "results.ndjson"):
        shares = [part["work_per_s"] for part in result["parts"]]
        # They halve together, over half of a bandwidth-delay product.
        assert len(shares) == 2
        assert 8 < sum(shares) < 9.74
    controls = [row["congestion_control"] for row in table(campaign / "tables" / "energy_summary.csv")]
    assert controls == ["reno", "cubic"]


def test_a_router_takes_from_dccp_what_its_congestion_control_lets_it(tmp_path: Path) -> None:
    variants = {"ccid2": {"dccp": {"ccid": 2}}, "ccid3": {"dccp": {"ccid": 3}}}
    limits = {"ccid2": (-20, -8), "ccid3": (-2, 1)}
    flow = {"variants": variants}
    campaign = run(tmp_path, "c", transport=list(variants), payload_bytes=1440, flow=flow, blocks=1)
    assert "no defects" in netjoule("check", campaign).stdout
    asked = {one["run_id"]: one["factors"]["transport"] for one in documents(campaign, "runs.ndjson")}
    results = documents(campaign, "results.ndjson")
    found = {(asked[result["run_id"]], result["arm"]): goodput(result) for result in results}
    for name, (least_percent, most_percent) in limits.items():
        assert 9 < found[name, "none"] < 10 * 1440 / 1484
        change_percent = 100 * (found[name, "practra-10"] / found[name, "none"] - 1)
        assert least_percent < change_percent < most_percent
    for one in documents(campaign, "flow.ndjson"):
        report = one["document"]
        sent, received = report["sender"], report["receiver"]
        lost = sent["messages_sent"] - received["messages_received_unique"]
        ccid = variants[asked[one["run_id"]]]["dccp"]["ccid"]
        assert report["transport_options"] == {"ccid": ccid, "carrier": "udp"}
        assert 0 < received["messages_lost"] == lost < 0.01 * sent["messages_sent"]
        assert sent["transport_stats"]["recoveries"] > 0


def goodput(result: dict[str, Any]) -> float:
    return float(result["work"]["work_per_s"])


def test_tcp_and_dccp_are_compared_in_one_campaign(tmp_path: Path) -> None:
    campaign = run(
        tmp_path,
        "c",
        transport=["tcp", "dccp"],
        arm="transport",
        payload_bytes=1440,
        scaling="practra-10",
        blocks=1,
        flow={"simulated": {"interval_s": 10, "delayed_acks": False}},
    )
    assert "no defects" in netjoule("check", campaign).stdout
    found = {result["arm"]: goodput(result) for result in documents(campaign, "results.ndjson")}
    assert found["tcp"] < 0.95 * found["dccp"]


def test_flows_have_paths_of_their_own_before_what_they_share(tmp_path: Path) -> None:
    flow = {"simulated": {"interval_s": 10, "start_within_s": 2}}
    campaign = run(tmp_path, "c", path=["rtt-10-to-100"], parallel=10, flow=flow)
    assert "no defects" in netjoule("check", campaign).stdout
    results = documents(campaign, "results.ndjson")
    for result in results:
        shares = [part["work_per_s"] for part in result["parts"]]
        assert len(shares) == 10
        assert 9 < sum(shares) < 9.74
        # Round-trip times of 10 to 50 ms against 60 to 100 ms.
        assert sum(shares[:5]) > 1.5 * sum(shares[5:])
    for one in documents(campaign, "runs.ndjson"):
        delays = [element["delay_ms"] for element in one["in_force"]["path"]["access"]]
        assert delays == [1.25 + 5 * number for number in range(10)]
    told = table(campaign / "tables" / "arm_shares.csv")
    assert [(one["arm"], one["flow"]) for one in told] == [
        (arm, str(flow)) for arm in ("none", "practra-10") for flow in range(1, 11)
    ]
    of_first = [result["parts"][0]["work_per_s"] for result in results if result["arm"] == "none"]
    assert float(told[0]["goodput_mbps"]) == pytest.approx(sum(of_first) / 2)
    # When they begin is drawn for a mini-block: its arms have the same.
    first = {(result["run_id"][:3], result["arm"]): goodput(result) for result in results}
    assert first["b01", "none"] != first["b02", "none"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"path": ["rtt-10-to-100"], "parallel": 9},
            "factors.parallel",
            "the path has an access for each of 10 flows, and there are 9",
        ),
        (
            {"path": {"access": ["mixed-10"]}, "scaling": "none"},
            "factors.path",
            "access lies before what flows share: give elements beside it",
        ),
        (
            {"path": {"access": ["n1-10"], "elements": ["n1-10"]}},
            "factors.path",
            "'n1-10' scales its rate: a router stands in elements, not in access",
        ),
        ({"transport": ["udp"]}, "factors.transport", "tcp or dccp, not udp"),
        (
            {"transport": ["tcp", "dccp"]},
            "factors.payload_bytes",
            "dccp is one packet, of 1440 bytes at most",
        ),
        (
            {
                "transport": ["dccp"],
                "payload_bytes": 1440,
                "flow": {"transport_options": {"dccp": {"carrier": "raw"}}},
            },
            "flow.transport_options.dccp.carrier",
            "goes in udp",
        ),
        (
            {
                "transport": ["bare"],
                "payload_bytes": 1440,
                "flow": {"variants": {"bare": {"dccp": {"carrier": "raw"}}}},
            },
            "flow.variants.bare.dccp.carrier",
            "goes in udp",
        ),
        (
            {"transport": ["dccp"], "payload_bytes": 1440, "flow": {"simulated": {"sack": True}}},
            "flow.simulated.sack",
            "of the ends of tcp",
        ),
        ({"direction": "down"}, "factors.direction", "up, from the client to the server"),
        ({"payload_bytes": 1461}, "factors.payload_bytes", "of 1460 bytes at most"),
        ({"offered_rate_mbps": 9}, "factors.offered_rate_mbps", "9 Mb/s are less than the 10 Mb/s"),
        (
            {
                "path": "rtt-100-varying",
                "varying": [SLOW, SLOW | {"max_rate_mbps": 9}],
                "offered_rate_mbps": 8,
            },
            "factors.offered_rate_mbps",
            "8 Mb/s are less than the 9 Mb/s",
        ),
        ({"pacing": "spin"}, "factors.pacing", "no pacer"),
        ({"congestion_control": "bbr"}, "factors.congestion_control", "no congestion control bbr"),
        (
            {"flow": {"simulated": {"interval_s": 60}}},
            "flow.simulated.interval_s",
            "whole number of steps",
        ),
        ({"flow": {"clients": 2}}, "flow.clients", "one client"),
        ({"flow": {"beside": [{"transport": "tcp"}]}}, "flow.beside", "flows of one kind"),
        (
            {"flow": {"transport_options": {"tcp": {"zerocopy": True}}}},
            "flow.transport_options.tcp.zerocopy",
            "",
        ),
        ({"scaling": "practra-20"}, "factors.scaling", "no preset 'practra-20' of scaling"),
        (
            {"path": {"rate_mbps": 8}},
            "factors.scaling",
            "no path of troubled-marriage-simulated has an element with scaling",
        ),
    ],
)
def test_what_the_program_does_not_have_is_refused(
    tmp_path: Path, changes: dict[str, Any], field: str, words: str
) -> None:
    asked, where = loads.read(workload(tmp_path, **changes)), topology.load(TESTBED)
    with pytest.raises(UsageError) as caught:
        check_workload(asked, where)
        load_of(asked, where).require_fit()
    assert caught.value.where == f"workload scaling, field {field}"
    assert words in caught.value.what


def row(start_s: float, **changes: Any) -> dict[str, Any]:
    told = {
        "host": "server",
        "direction": "up",
        "element": 2,
        "kind": "practra",
        "t_start_s": start_s,
        "t_end_s": start_s + 10,
        "mean_rate_mbps": 5.0,
    }
    more = {"max_rate_mbps": 10.0, "mean_cubic": 0.2, "asleep_share": 0.0, "switches": 4}
    return told | more | {"flows_arrived_packets": 100, "flows_dropped_packets": 1} | changes


def test_measures_of_routers_share_a_step_by_time_and_leave_chance_out() -> None:
    rows = [
        row(0),
        row(10, mean_rate_mbps=10.0, mean_cubic=1.0, switches=0),
        row(0, kind="varying", switches=99),
    ]
    found = routers.measures_of(rows, 5, 20)
    assert found == {
        "service_rate_mbps": pytest.approx(25 / 3),
        "saving_linear_ratio": pytest.approx(1 / 6),
        "saving_cubic_ratio": pytest.approx(0.8 / 3),
        "rate_switches": 2,
        "router_loss_ratio": pytest.approx(0.01),
        "tick_late_mean_us": None,
        "tick_late_max_us": None,
    }
    late = [row(0, ticks=3, tick_late_mean_us=10.0, tick_late_max_us=30.0), row(10)]
    found = routers.measures_of(
        [*late, row(0, ticks=1, tick_late_mean_us=50.0, tick_late_max_us=50.0)], 0, 20
    )
    assert (found["tick_late_mean_us"], found["tick_late_max_us"]) == (20.0, 50.0)
    asleep = routers.measures_of([row(0, kind="sleep", mean_rate_mbps=10.0, asleep_share=0.5)], 0, 10)
    assert asleep["saving_linear_ratio"] == pytest.approx(0.45)
    assert routers.measures_of(rows[2:], 0, 10) == {}


def test_of_several_routers_rates_and_savings_are_means_and_switches_and_losses_sums() -> None:
    second = row(0, element=3, mean_rate_mbps=9.0, mean_cubic=0.8, switches=2, flows_arrived_packets=99)
    back = [row(0, direction="down", element=element, flows_dropped_packets=0) for element in (2, 3)]
    back[0]["flows_arrived_packets"] = 1
    both_ways = routers.measures_of([row(0), second, *back], 0, 10)
    assert both_ways["router_loss_ratio"] == pytest.approx(
        2 / 200
    )  # on the way back the last one is met first
    assert routers.measures_of([row(0), second], 0, 10) == {
        "service_rate_mbps": pytest.approx(7),
        "saving_linear_ratio": pytest.approx(0.3),
        "saving_cubic_ratio": pytest.approx(0.5),
        "rate_switches": 6,
        "router_loss_ratio": pytest.approx(0.02),
        "tick_late_mean_us": None,
        "tick_late_max_us": None,
    }


def test_two_routers_in_a_row_scale_each_by_itself(tmp_path: Path) -> None:
    campaign = run(tmp_path, "c", path=["rtt-100-two"], blocks=1)
    assert "no defects" in netjoule("check", campaign).stdout
    rows = table(campaign / "blocks" / "1" / "routers.csv")
    assert {(one["element"], one["kind"]) for one in rows} == {
        (element, kind) for element in ("2", "3") for kind in ("none", "practra")
    }
    kept = {one["arm"]: one["measures"] for one in documents(campaign, "runs.ndjson")}["practra-10"]
    own = [one for one in rows if one["kind"] == "practra" and float(one["t_start_s"]) >= 20]
    rates = {element: _mean([one for one in own if one["element"] == element]) for element in ("2", "3")}
    assert rates["2"] != rates["3"]
    assert kept["service_rate_mbps"] == pytest.approx(sum(rates.values()) / 2)
    energy = {(one["arm"], one["form"], one["static_ratio"]): one for one in _energy(campaign)}
    saved = 1 - sum(rates.values()) / 20
    assert float(energy["practra-10", "linear", "0"]["saving_ratio"]) == pytest.approx(saved)
    assert float(energy["practra-10", "linear", "0.5"]["saving_ratio"]) == pytest.approx(saved / 2)


def _mean(rows: list[dict[str, str]]) -> float:
    return sum(float(one["mean_rate_mbps"]) for one in rows) / len(rows)

# SPDX-License-Identifier: Apache-2.0
"""A tiny real campaign of two clients: two stations on one channel, a meter on each."""

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan
from sandbox_processes import host_state
from tiny_campaign import SEED, netjoule, table, written

pytestmark = pytest.mark.netns

CLIENTS = ("client", "tablet")
RATES_MBPS = (5, 20)
P0_LINEAR_W = 5.0
FRAME_J = 0.0002
AIR_TIME_W = 4.0


def campaign(folder: Path, *, volts: object = 300, amperes: object = 0.05, **load: Any) -> Path:
    """Run a tiny campaign on a testbed of two clients; its folder."""
    wt210 = {"update_interval_s": 0.1, "voltage_range_v": volts, "current_range_a": amperes}
    known = {"adapter": "wt210", "resource": "emulated", "settings": wt210, "device": {"model": "linear"}}
    files = written(
        folder, [{"meter_id": f"of-{client}", "node": client, **known} for client in CLIENTS], **load
    )
    document = yaml.safe_load(files.topology.read_text())
    tablet = {"roles": ["client"], "test_addresses": {"ipv4": "10.77.0.3", "ipv6": "fd77::3"}}
    document["hosts"]["tablet"] = tablet
    files.topology.write_text(yaml.safe_dump(document, sort_keys=False))
    before = host_state()
    done = netjoule(*files.run, "--seed", str(SEED))
    assert done.returncode == 0, done.stdout + done.stderr
    assert host_state() == before, "a namespace more, and none is left"
    checked = netjoule("check", str(files.out))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return files.out


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One campaign that several tests read."""
    return campaign(
        tmp_path_factory.mktemp("clients"),
        volts="auto",
        amperes="auto",
        clients=len(CLIENTS),
        offered_rate_mbps=list(RATES_MBPS),
        load_pulses={"rate_mbps": 60, "payload_bytes": 1440},
    )


def results(campaign: Path, transport: str) -> list[dict[str, Any]]:
    """Results of the runs that count, by their offered rate."""
    rows = [r for r in plan(campaign) if r["transport"] == transport and r["status"] == "valid"]
    rows.sort(key=lambda row: float(row["offered_rate_mbps"]))
    found = [json.loads((campaign / "runs" / r["run_id"] / "result.json").read_text()) for r in rows]
    assert len(found) == len(RATES_MBPS)
    return found


def node(document: dict[str, Any], client: str) -> dict[str, Any]:
    return next(n for n in document["nodes"] if n["node"] == client)


def radio_power_w(campaign: Path, client: str, window: dict[str, float]) -> float:
    """Mean power of the linear model over a window, from the link's counts of this station."""
    energy_j, start_s, end_s = 0.0, window["t_start_s"], window["t_end_s"]
    with (campaign / "radio" / f"{client}.csv").open(newline="") as handle:
        rows = [
            {k: float(row[k]) for k in row if k.startswith(("t_s", "airtime", "frames"))}
            for row in csv.DictReader(handle)
        ]
    for before, row in itertools.pairwise(rows):
        share = max(0.0, min(end_s, row["t_s"]) - max(start_s, before["t_s"])) / (row["t_s"] - before["t_s"])
        air_s = row["airtime_tx_s"] + row["airtime_rx_s"]
        energy_j += share * (FRAME_J * (row["frames_tx"] + row["frames_rx"]) + AIR_TIME_W * air_s)
    return energy_j / (end_s - start_s)


def test_each_client_has_its_flow_and_the_run_the_sum(measured: Path) -> None:
    for rate_mbps, document in zip(RATES_MBPS, results(measured, "udp"), strict=True):
        assert [part["node"] for part in document["parts"]] == list(CLIENTS)
        folder = measured / "runs" / document["run_id"]
        for name in ("flow.json", "flows/2.json"):
            report = json.loads((folder / name).read_text())
            assert report["direction"] == "up"
            sent = report["sender"]["messages_scheduled"]
            assert report["sender"]["messages_sent"] == sent
            assert report["receiver"]["messages_received_unique"] == sent
            assert sent * 1440 * 8e-6 / report["duration_s"] == pytest.approx(rate_mbps, rel=0.01)
        # The window holds what arrives in its 1.5 s: a busy host may move the traffic at its edges by 150 ms.
        own = [node(document, client)["work_per_s"] for client in CLIENTS]
        assert own == pytest.approx([rate_mbps] * len(CLIENTS), rel=0.1)
        assert document["work"]["work_per_s"] == pytest.approx(sum(own), rel=1e-6)
        assert document["fairness"]["jain_work"] == pytest.approx(1, abs=0.01)


def test_a_meter_reads_its_own_clients_radio_and_no_others(measured: Path) -> None:
    for document in results(measured, "udp"):
        for client in CLIENTS:
            seen = node(document, client)
            power_w = radio_power_w(measured, client, document["window"])
            assert power_w > 0.05
            assert seen["p_i_w"] == pytest.approx(P0_LINEAR_W, abs=0.05)
            assert seen["delta_p_w"] == pytest.approx(power_w, abs=max(0.05, 2 * seen["u_delta_p_w"]))
            expected = power_w / seen["work_per_s"]
            if not seen["below_resolution"]:
                assert seen["ea_j_per_mbit"] == pytest.approx(expected, abs=seen["u95_ea_j_per_mbit"])


def test_null_sends_nothing_at_any_client(measured: Path) -> None:
    for document in results(measured, "null"):
        assert document["work"]["work_per_s"] is None
        assert document["arm"] == "null"
        assert [part["work_per_s"] for part in document["parts"]] == [None] * len(CLIENTS)
        for client in CLIENTS:
            assert radio_power_w(measured, client, document["window"]) == pytest.approx(0, abs=0.01)


def test_all_clocks_and_radios_are_in_the_campaign(measured: Path) -> None:
    assert {row["host"] for row in table(measured / "clocks.csv")} == {*CLIENTS, "server"}
    assert {path.stem for path in (measured / "radio").iterdir()} == set(CLIENTS)
    assert {path.stem for path in (measured / "devices").iterdir()} == {f"of-{c}" for c in CLIENTS}


def test_ranges_and_lags_of_the_meters_on_every_client_are_found(measured: Path) -> None:
    document = json.loads((measured / "campaign.json").read_text())
    for meter in document["topology"]["meters"]:
        assert meter["settings"]["voltage_range_v"] == 300
        assert meter["settings"]["current_range_a"] in (0.02, 0.05)
    assert {found["meter_id"] for found in document["alignment"]} == {f"of-{c}" for c in CLIENTS}
    # Only a client that sends the pulse shows it to its meter.
    assert all(
        found["confidence"] >= 0.9 and 0.0 <= found["lag_s"] <= 0.35 for found in document["alignment"]
    )


def test_a_client_that_takes_no_part_is_read_idle(tmp_path: Path) -> None:
    out = campaign(tmp_path, transports=["udp"], offered_rate_mbps=[20])
    (row,) = [row for row in plan(out) if row["status"] == "valid"]
    document = json.loads((out / "runs" / row["run_id"] / "result.json").read_text())
    assert radio_power_w(out, "client", document["window"]) > 0.2
    assert radio_power_w(out, "tablet", document["window"]) == 0
    assert node(document, "client")["delta_p_w"] > 0.2
    tablet = node(document, "tablet")
    assert tablet["delta_p_w"] == pytest.approx(0, abs=0.05)
    # What another client moved is no payload of its own, and its meter is not blamed for seeing nothing.
    assert (tablet["ea_j_per_mbit"], tablet["ea_reason"]) == (None, "took_no_part")
    assert (tablet["ea_upper_limit_j_per_mbit"], tablet["below_resolution"]) == (None, False)
    assert not any("of-tablet" in r["detail"] for r in document["reasons"] if r["code"] == "below_resolution")

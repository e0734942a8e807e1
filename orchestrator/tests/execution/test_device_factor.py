# SPDX-License-Identifier: Apache-2.0
"""The factor device: which device model the emulated meters of clients read in a run."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan
from runner_fakes import topology, workload
from tiny_campaign import CONSTANT_METER, netjoule, table, written

import netjoule_contracts as contracts
from netjoule.core.errors import RunFailed, UsageError
from netjoule.design import resolution
from netjoule.design.limits import check_workload
from netjoule.testbeds.emulated.config import meter_config
from netjoule.testbeds.emulated.device_control import change_model
from netjoule.topology.devices import device_models
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.workload import Workload

FACTORS = {"transport": ["udp"], "payload_bytes": [1440], "offered_rate_mbps": [6]}
PHONES = ["galaxy-s5", "nexus-s"]


def flows(devices: list[Any]) -> Workload:
    document = workload().document | {"factors": FACTORS | {"device": devices}}
    return Workload.from_document(document, where="test")


def with_meters(*meters: dict[str, Any]) -> Topology:
    return Topology.from_document(topology().document | {"meters": list(meters)}, where="test")


REAL = {key: value for key, value in CONSTANT_METER.items() if key != "device"}
REAL |= {"meter_id": "real", "node": "server", "resource": "/dev/ttyUSB0"}


def test_it_takes_the_place_of_what_emulated_meters_read_and_of_no_real_device() -> None:
    where = with_meters(CONSTANT_METER, CONSTANT_METER | {"meter_id": "other"}, REAL)
    assert device_models(where, PHONES) == dict.fromkeys(("constant", "other"), ("galaxy-s5", "nexus-s"))
    assert device_models(where, ()) == dict.fromkeys(("constant", "other"), ("constant",))
    check_workload(flows(PHONES), where)


def test_a_testbed_without_such_a_meter_is_told() -> None:
    with pytest.raises(UsageError) as caught:
        check_workload(flows(PHONES), with_meters(REAL))
    assert caught.value.what == "no meter of fake reads a device model"
    assert caught.value.where == "workload fake, field factors.device"


def test_one_range_holds_for_all_devices() -> None:
    where = with_meters(CONSTANT_METER | {"settings": {"current_range_a": "auto"}})
    check_workload(flows(PHONES[:1]), where)
    with pytest.raises(UsageError) as caught:
        check_workload(flows(PHONES), where)
    assert caught.value.what == "the range of meter constant would be found with one of the devices alone"


def test_a_testbed_of_another_kind_has_no_device_to_change() -> None:
    hosts = {"client": {"roles": ["client"]}, "server": {"roles": ["server"]}}
    document = {"schema_version": 1, "name": "fake", "kind": SIMULATED, "hosts": hosts, "meters": []}
    with pytest.raises(UsageError) as caught:
        check_workload(flows(PHONES), Topology.from_document(document, where="test"))
    assert caught.value.what == "a testbed of kind simulated cannot set device"
    assert caught.value.next_step == "use one of kind emulated"


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("galaxy-s6", "no device model 'galaxy-s6'; there are constant,"),
        ("galaxy-s5:speed=4", "it has no parameter 'speed'; there are cpu_idle_w,"),
        ("s5-seed:connection_w=-1", "'-1' is no number of 0 or more for connection_w"),
    ],
)
def test_a_model_that_does_not_exist_is_named_before_anything_starts(device: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolution.check_models(flows(["galaxy-s5", device]), topology())
    assert words in caught.value.what
    assert caught.value.where == "workload fake, field factors.device"
    resolution.check_models(flows(["galaxy-s5:cpu_scale=4", "s5-seed:connection_w=0"]), topology())


def test_a_form_that_a_workload_wants_is_looked_for_among_its_devices() -> None:
    wanted = flows(["linear", "laptop-cpu"]).document | {"device_form": "cpu"}
    resolution.check_form(Workload.from_document(wanted, where="test"), topology())
    wanted["factors"] |= {"device": ["linear"]}
    with pytest.raises(UsageError) as caught:
        resolution.check_form(Workload.from_document(wanted, where="test"), topology("laptop-cpu"))
    assert "the meters read linear (linear)" in caught.value.what


@pytest.mark.parametrize(
    ("told", "model", "form"),
    [
        ({"galaxy-s5": "phone", "nexus-s": "phone"}, "galaxy-s5, nexus-s", "phone"),
        ({"galaxy-s5": "phone", "s5-seed": "connections"}, "galaxy-s5, s5-seed", None),
        ({}, "constant", None),
    ],
)
def test_a_passport_names_all_that_its_meter_reads(
    told: dict[str, str], model: str, form: str | None
) -> None:
    models = [{"name": name, "form": form} for name, form in told.items()]
    document = meter_config(with_meters(CONSTANT_METER), {"constant": "/dev/pts/3"}, {"constant": models})
    contracts.validate("meter_config", document)
    (meter,) = document["meters"]
    assert (meter["device_model"], meter["device_form"]) == (model, form)


def test_a_device_that_refuses_or_is_not_there_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "m.device"
    with pytest.raises(RunFailed) as caught:
        asyncio.run(change_model(path, "nexus-s"))
    assert caught.value.code == "not_in_force"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as device:
        device.bind(str(path))

        def refuse() -> None:
            asked, sender = device.recvfrom(1000)
            assert json.loads(asked) == {"model": "nexus-s"}
            device.sendto(b'{"ok": false, "error": "it is busy"}', sender)

        other = threading.Thread(target=refuse)
        other.start()
        with pytest.raises(
            RunFailed, match="netjoule-device did not change to nexus-s: it is busy"
        ) as caught:
            asyncio.run(change_model(path, "nexus-s"))
        other.join()
    assert caught.value.code == "not_in_force"


@pytest.mark.netns
def test_a_campaign_reads_each_run_with_its_own_device(tmp_path: Path) -> None:
    files = written(tmp_path, [CONSTANT_METER])
    asked = yaml.safe_load(files.workload.read_text())
    kept = {name: asked[name] for name in ("name", "timing", "limits")}
    devices = ["constant:p0_w=3", "linear:p0_w=7", "s5-seed"]
    document = {"schema_version": 2, "load": "flow", "factors": FACTORS | {"device": devices}}
    document |= kept | {"arm": "device", "control": False, "blocks": 1, "seed": 4}
    files.workload.write_text(yaml.safe_dump(document))
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no defects" in netjoule("check", str(files.out)).stdout
    campaign = json.loads((files.out / "campaign.json").read_text())
    models = [(one["meter_id"], one["name"], one["status"]) for one in campaign["device_models"]]
    statuses = ("test", "test", "fitted")
    assert models == [("constant", *of) for of in zip(devices, statuses, strict=True)]
    assert [meter["device_model"] for meter in campaign["meters"]] == [", ".join(devices)]
    found = {}
    for row in plan(files.out):
        if row["status"] == "valid":
            folder = files.out / "runs" / row["run_id"]
            run, result = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "result"))
            (node,) = result["nodes"]
            device = run["in_force"]["device"]
            assert (device["model"], device["form"]) == (node["device_model"], node["device_form"])
            assert (device["model"], device["meters"]) == (run["arm"], ["constant"])
            found[run["arm"]] = node
    idle_w = dict(zip(devices, (3, 7, 1), strict=True))
    assert found.keys() == idle_w.keys()
    for name, node in found.items():  # 0.1 % of a range of 15 W
        assert (node["p_i_before_w"], node["p_i_after_w"]) == pytest.approx((idle_w[name],) * 2, abs=0.03)
    assert found[devices[0]]["delta_p_w"] == pytest.approx(0, abs=0.03)
    assert found[devices[1]]["delta_p_w"] > 0.1
    (labels,) = {
        (row["meter_id"], row["device_model"]) for row in table(files.out / "tables/energy_summary.csv")
    }
    assert labels == ("constant", ", ".join(devices))

# SPDX-License-Identifier: Apache-2.0
"""Every kind of defect is named with its file and place; a good campaign has none."""

import json
import re
import shutil
from pathlib import Path

import pytest

from netjoule.core.errors import UsageError
from netjoule.design.run_table import PlanRow
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign, unfinished


def defects(path: Path) -> list[str]:
    return [str(d) for d in check_campaign(path)]


def test_a_good_campaign_has_no_defects(campaign_dir):
    assert defects(campaign_dir) == []


def test_what_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not a campaign"):
        defects(tmp_path)


def test_checking_changes_nothing(campaign_dir):
    before = {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()}
    defects(campaign_dir)
    assert {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()} == before


def row_of(campaign: Path, transport: str) -> PlanRow:
    return next(r for r in read_plan(campaign) if r.arm == transport)


def udp(campaign: Path, name: str) -> str:
    return f"runs/{row_of(campaign, 'udp').run_id}/{name}"


def edit(campaign: Path, file: str, *steps, value):
    """Set one field of a JSON document."""
    path = campaign / file
    document = json.loads(path.read_text())
    place = document
    for step in steps[:-1]:
        place = place[step]
    if value is DELETE:
        del place[steps[-1]]
    else:
        place[steps[-1]] = value
    path.write_text(json.dumps(document))


DELETE = object()

JSON_DEFECTS = [
    # file (None: the udp run's), name, steps, value, expected place, expected words
    ("campaign.json", ["campaign"], DELETE, "campaign.json", "'campaign' is missing"),
    (
        "campaign.json",
        ["schema_version"],
        9,
        "field schema_version",
        "this netjoule reads versions up to 1, and the file is of a newer one, 9",
    ),
    ("campaign.json", ["host", "hostname"], "lab-3", "field host.hostname", "unknown field"),
    ("campaign.json", ["workload", "blocks"], 0, "field workload.blocks", "below the least allowed 1"),
    ("campaign.json", ["workload", "blocks"], 2, "plan.csv, run b02m002-udp-a1", "is missing"),
    ("campaign.json", ["seed"], 12, "plan.csv, run b01m001-udp-a1", "not what workload and seed expand to"),
    ("campaign.json", ["topology", "kind"], "moon", "field topology.kind", "'moon' is not one of"),
    (
        "campaign.json",
        ["meters", 0, "meter_id"],
        "x",
        "field meters.0.meter_id",
        "'x' is not in the topology",
    ),
    ("campaign.json", ["meters", 0, "lag_s"], -1, "field meters.0.lag_s", "below the least allowed 0"),
    ("campaign.json", ["meters"], [], "meters/m.csv", "campaign.json has no such meter"),
    ("@run.json", ["windows", "measure"], None, "field windows.measure", "a finished run has every window"),
    ("@run.json", ["windows", "tail", "t_start_s"], 0.1, "field windows.tail", "starts before measure ends"),
    ("@run.json", ["windows", "measure", "t_end_s"], 0.1, "field windows.measure", "ends before it starts"),
    (
        "@run.json",
        ["factors", "payload_bytes"],
        64,
        "field factors.payload_bytes",
        "64, but plan.csv has 1000",
    ),
    ("@run.json", ["run_id"], "b01m001-tcp-a1", "field run_id", "stands in the folder of"),
    ("@run.json", ["status"], "invalid", "field status", "'invalid', but status.csv has 'valid'"),
    ("@run.json", ["status"], "lovely", "field status", "'lovely' is not one of"),
    (
        "@run.json",
        ["reasons"],
        [{"code": "bad_luck", "detail": ""}],
        "field reasons.0.code",
        "'bad_luck' is not in",
    ),
    (
        "@flow.json",
        ["sender", "messages_sent"],
        1,
        "field sender",
        "is not sent 1 +",
    ),
    (
        "@flow.json",
        ["receiver", "messages_lost"],
        1,
        "field receiver",
        "is not received_unique",
    ),
    ("@flow.json", ["reconciles"], False, "field reconciles", "not invalid for bookkeeping_mismatch"),
    ("@flow.json", ["transport"], "tcp", "field transport", "'tcp', but the campaign asks for 'udp'"),
    (
        "@flow.json",
        ["receiver", "bytes_received_unique"],
        7,
        "intervals.csv, column work",
        "flow.json has 7",
    ),
    ("@result.json", ["window", "t_end_s"], 1e6, "field window", "beyond windows.measure"),
    ("@result.json", ["nodes", 0, "meter_id"], "x", "field nodes.0.meter_id", "no meter 'x'"),
    (
        "@result.json",
        ["nodes", 0, "ea_j_per_mbit"],
        3.5,
        "field nodes.0.ea_j_per_mbit",
        "3.5 is not delta_p_w /",
    ),
    ("@result.json", ["nodes", 0, "delta_p_w"], 3.5, "field nodes.0.delta_p_w", "3.5 is not p_a_w - p_i_w"),
    (
        "@result.json",
        ["nodes", 0, "floor", "ea_above_floor_j_per_mbit"],
        3.5,
        "field nodes.0.floor.ea_above_floor_j_per_mbit",
        "3.5 is not (delta_p_w - floor_w) / work_per_s",
    ),
    (
        "@result.json",
        ["nodes", 0, "floor", "reason"],
        "floor_spinning",
        "field nodes.0.floor.floor_w",
        "with the reason 'floor_spinning': it is one or the other",
    ),
    (
        "@result.json",
        ["nodes", 0, "floor", "reason"],
        "bad_luck",
        "field nodes.0.floor.reason",
        "'bad_luck' is not in reasons.json",
    ),
    ("@result.json", ["arm"], "tcp", "field arm", "'tcp', but run.json has 'udp'"),
    ("@result.json", ["valid"], "yes", "field valid", "is not true or false"),
    (
        "datapackage.json",
        ["resources", 3, "path"],
        "../../etc/passwd",
        "resource meters",
        "is not a file of this",
    ),
    ("datapackage.json", ["resources", 3, "path"], [], "resource meters", "'meters/m.csv' is not listed"),
    ("datapackage.json", ["resources", 3, "schema", "fields"], [], "resource meters", "not the contract's"),
    ("datapackage.json", ["resources"], 3, "datapackage.json", "not a data package"),
]


@pytest.mark.parametrize(("file", "steps", "value", "place", "words"), JSON_DEFECTS)
def test_a_wrong_field_of_a_document_is_named(campaign_dir, file, steps, value, place, words):
    file = udp(campaign_dir, file[1:]) if file.startswith("@") else file
    edit(campaign_dir, file, *steps, value=value)
    found = defects(campaign_dir)
    assert any(place in d and words in d for d in found), found


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (["p_a_w"], "delta_p_w"),
        (["delta_p_w"], "delta_p_w"),
        (["ea_j_per_mbit"], "ea_j_per_mbit"),
        (["floor", "ea_above_floor_j_per_mbit"], "floor.ea_above_floor_j_per_mbit"),
    ],
)
def test_a_figure_may_be_off_by_rounding_and_by_no_more(campaign_dir, steps, told):
    file = udp(campaign_dir, "result.json")
    value = node = json.loads((campaign_dir / file).read_text())["nodes"][0]
    for step in steps:
        value = value[step]
    moved = value or node["ea_j_per_mbit"]  # the floor takes it all
    edit(campaign_dir, file, "nodes", 0, *steps, value=value + 1e-12 * moved)
    assert defects(campaign_dir) == []
    edit(campaign_dir, file, "nodes", 0, *steps, value=value + 1e-7 * moved)
    assert f"{file}, field nodes.0.{told}: " in "\n".join(defects(campaign_dir))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_json_does_not_have_is_named(campaign_dir, number):
    path = campaign_dir / udp(campaign_dir, "result.json")
    text, replaced = re.subn(r'"p_a_w": [0-9.]+,', f'"p_a_w": {number},', path.read_text(), count=1)
    assert replaced == 1
    path.write_text(text)
    found = [d for d in defects(campaign_dir) if "result.json" in d]
    assert found == [
        f"{path.relative_to(campaign_dir)}: {number} is not finite; a number that does not exist is null"
    ]


def replace_line(path: Path, number: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    place = number if number < 0 else number - 1
    assert old in lines[place]
    lines[place] = lines[place].replace(old, new, 1)
    path.write_text("".join(lines))


TABLE_DEFECTS = [
    ("plan.csv", 1, "run_id", "runid", "plan.csv, line 1", "wants"),
    ("plan.csv", 2, "work", "wrok", "line 2, column kind", "'wrok' is not one of"),
    ("plan.csv", 2, ",up,", ",side,", "line 2, column direction", "'side' is not one of"),
    ("status.csv", -1, ",valid,", ",vaild,", "column status", "'vaild' is not one of"),
    ("status.csv", -1, ",valid,", ",running,", "status.csv, run b", "'running' in a complete campaign"),
    ("status.csv", -1, ",valid,", ",invalid,bad_luck", "column reason", "'bad_luck' is not in reasons.json"),
    ("status.csv", -1, ",b01", ",b09", "column run_id", "plan.csv has no run 'b09"),
    ("status.csv", -1, ",1,1,rig1", ",2,1,rig1", "column attempt", "not that of the run in plan.csv"),
    ("meters/m.csv", 4, ",", ",x", "line 4, column seq", "'x2' is not a valid integer"),
    ("meters/m.csv", 9, "0.8", "0.1", "line 9, column t_s", "after"),
    ("meters/m.csv", 9, ",7,", ",8,", "line 9, column seq", "a row is missing or doubled"),
    ("meters/m.csv", 9, ",5.0,", ",nan,", "line 9, column power_w", "not finite"),
    ("clocks.csv", 2, "client", "nobody", "line 2, column host", "no host is called 'nobody'"),
    ("clocks.csv", 3, ",0.0,,0.0", ",0.0,,-1", "line 3, column residual_s", "below the least allowed"),
    ("radio/client.csv", 3, "0.1", "-5", "line 3, column t_s", "rows are appended in order"),
    ("@events.csv", 2, "first_packet", "First Packet", "line 2, column event", "does not have the form"),
    (
        "@events.csv",
        3,
        "report,",
        "report,bad_luck",
        "line 3, column code",
        "'bad_luck' is not in reasons.json",
    ),
    ("@intervals.csv", 2, "client,", "client,x", "intervals.csv", "line 2, column t_start_s"),
]


@pytest.mark.parametrize(("file", "line", "old", "new", "place", "words"), TABLE_DEFECTS)
def test_a_wrong_cell_of_a_table_is_named(campaign_dir, file, line, old, new, place, words):
    file = udp(campaign_dir, file[1:]) if file.startswith("@") else file
    replace_line(campaign_dir / file, line, old, new)
    found = defects(campaign_dir)
    assert any(place in d and words in d for d in found), found


def test_events_may_tell_of_the_past(campaign_dir):
    events = campaign_dir / udp(campaign_dir, "events.csv")
    with events.open("a") as table:
        table.write("0.000001,meter,meter_remark,,m: a value came late\n")
    assert defects(campaign_dir) == []


MISSING = ["plan.csv", "status.csv", "@run.json", "@flow.json", "@intervals.csv", "@result.json",
           "meters/m.csv", "devices/m.ndjson", "datapackage.json"]  # fmt: skip


@pytest.mark.parametrize("file", MISSING)
def test_a_missing_file_is_named(campaign_dir, file):
    file = udp(campaign_dir, file[1:]) if file.startswith("@") else file
    (campaign_dir / file).unlink()
    assert any(d.startswith(f"{file}: the file is missing") for d in defects(campaign_dir))


def test_a_file_that_is_not_json_is_named_with_its_line(campaign_dir):
    file = udp(campaign_dir, "run.json")
    (campaign_dir / file).write_text('{\n "a": }')
    assert f"{file}, line 2: not JSON: Expecting value" in defects(campaign_dir)


def test_a_line_cut_by_a_crash_is_named(campaign_dir):
    with (campaign_dir / "radio" / "client.csv").open("a") as table:
        table.write("99.5,216")
    found = defects(campaign_dir)
    assert any(d.startswith("radio/client.csv, last line: it is cut off") for d in found)


def test_binary_rubbish_in_a_table_is_a_defect_and_no_crash(campaign_dir):
    (campaign_dir / "clocks.csv").write_bytes(b"\xff\xfe\x00\n" * 100)
    (campaign_dir / "devices" / "m.ndjson").write_bytes(b"\xff\xfe\n")
    found = defects(campaign_dir)
    assert any(d.startswith("clocks.csv") for d in found)
    assert any(d.startswith("devices/m.ndjson, line 1: no sample of a device: ") for d in found)


def test_a_run_the_plan_does_not_know_is_named(campaign_dir):
    known = campaign_dir / "runs" / row_of(campaign_dir, "udp").run_id
    shutil.copytree(known, known.with_name("b09m009-udp-a1"))
    assert "runs/b09m009-udp-a1: plan.csv has no such run" in defects(campaign_dir)


def test_a_run_that_did_not_happen_yet_has_no_run_json(campaign_dir):
    run_id = row_of(campaign_dir, "udp").run_id
    lines = (campaign_dir / "status.csv").read_text().splitlines(keepends=True)
    (campaign_dir / "status.csv").write_text("".join(line for line in lines if run_id not in line))
    assert any("says the run did not happen yet" in d for d in defects(campaign_dir))


def test_two_rows_of_one_run_are_named(campaign_dir):
    lines = (campaign_dir / "plan.csv").read_text().splitlines(keepends=True)
    (campaign_dir / "plan.csv").write_text("".join([*lines, lines[1]]))
    assert any("column run_id" in d and "stands twice" in d for d in defects(campaign_dir))


def test_a_repeat_of_a_valid_mini_block_is_named(campaign_dir):
    lines = (campaign_dir / "plan.csv").read_text().splitlines(keepends=True)
    again = [line.replace("-a1,1,1,", "-a2,1,1,") for line in lines[1:]]
    again = [",".join([*line.split(",")[:4], "2", *line.split(",")[5:]]) for line in again]
    (campaign_dir / "plan.csv").write_text("".join([*lines, *again]))
    found = defects(campaign_dir)
    assert any("mini-block 1, attempt 2: it repeats an attempt that has no invalid run" in d for d in found)


def test_a_symbolic_link_is_named_and_nothing_is_followed(campaign_dir, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    file = campaign_dir / udp(campaign_dir, "flow.json")
    file.unlink()
    file.symlink_to(outside)
    found = defects(campaign_dir)
    assert found == [f"{udp(campaign_dir, 'flow.json')}: a symbolic link has no place in a campaign"]


def test_a_device_stream_with_overlapping_intervals_is_named(campaign_dir):
    stream = campaign_dir / "devices" / "m.ndjson"
    lines = stream.read_text().splitlines()
    stream.write_text("\n".join([*lines[:5], lines[2], *lines[5:]]) + "\n")
    assert "devices/m.ndjson, line 6: its interval does not follow the one before" in defects(campaign_dir)


def test_a_literal_secret_in_campaign_json_is_named_but_not_shown(campaign_dir):
    wifi = {"ssid": "net", "passphrase": "hunter2-canary"}
    edit(campaign_dir, "campaign.json", "topology", "wifi", value=wifi)
    found = defects(campaign_dir)
    assert any("field topology.wifi.passphrase: a secret is given by reference" in d for d in found)
    assert not any("hunter2" in d for d in found)


def test_an_interrupted_campaign_may_lack_results_that_resume_will_compute(campaign_dir):
    edit(campaign_dir, "campaign.json", "status", value="interrupted")
    (campaign_dir / udp(campaign_dir, "result.json")).unlink()
    assert defects(campaign_dir) == []


def test_runs_whose_windows_no_reading_covers_are_named(campaign_dir):
    readings = campaign_dir / "meters" / "m.csv"
    first, second = read_plan(campaign_dir)
    end_s = json.loads((campaign_dir / f"runs/{first.run_id}/run.json").read_text())["windows"]["idle_after"]
    lines = readings.read_text().splitlines(keepends=True)
    whole = [line for line in lines[1:] if float(line.split(",")[0]) < end_s["t_end_s"] + 0.2]
    readings.write_text(lines[0] + "".join(whole))
    (found,) = defects(campaign_dir)
    assert found.startswith(
        f"meters/m.csv, run {second.run_id}: readings cover 0 % of measure, 0 % of idle_after"
    )
    readings.write_text(lines[0] + "".join(whole[:10]))
    assert [d.partition(":")[0] for d in defects(campaign_dir)] == [
        f"meters/m.csv, run {row.run_id}" for row in (first, second)
    ]
    edit(campaign_dir, "campaign.json", "seed", value="x")  # one defect hides no other, and none is invented
    assert not any("readings cover" in d for d in defects(campaign_dir))


def test_a_campaign_is_unfinished_while_runs_are_missing(campaign_dir):
    assert unfinished(campaign_dir) == ""
    table = campaign_dir / "status.csv"
    whole = table.read_text()
    of_last = whole.splitlines()[-1].split(",")[1]
    without = [line for line in whole.splitlines(keepends=True) if f",{of_last}," not in line]
    running, invalid = (f",{status}" for status in ("running,", "invalid,meter_gap"))
    last = whole.replace(",valid,", "\0", 1).rpartition(",valid,")
    for text, there in (
        ("".join(without), 1),
        (running.join(last[::2]).replace("\0", ",valid,"), 1),
        # An invalid run repeats its mini-block, of which nothing is there.
        (invalid.join(last[::2]).replace("\0", ",valid,"), 0),
    ):
        table.write_text(text)
        assert unfinished(campaign_dir) == f"incomplete: {there} of 2 runs"
    table.write_text(whole)
    shutil.rmtree((campaign_dir / udp(campaign_dir, "x")).parent)
    assert unfinished(campaign_dir) == "incomplete: 1 of 2 runs"

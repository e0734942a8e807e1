# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import synthetic
from plans import set_in_status

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import InvalidData, RunFailed, UsageError
from netjoule.store.campaign import Campaign
from netjoule.store.datapackage import CELLS_ARE_DATA, describe
from netjoule.store.planfile import read_plan, write_plan
from netjoule.testbeds.emulated.config import device_model_entry
from netjoule.validation.check import check_campaign
from netjoule.workload.cell import Cell


def load(path: Path) -> dict:
    return json.loads(path.read_text())


def test_plan_and_campaign_are_on_disk_before_anything_runs(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        assert campaign.name == "c"
        rows = read_plan(tmp_path / "c")
        assert tuple(rows) == campaign.rows()
    document = load(tmp_path / "c" / "campaign.json")
    assert document["status"] == "created"
    assert document["workload"]["seed"] == document["seed"] == 11
    assert document["host"] == synthetic.HOST


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"exists and is not empty; choose another --out"):
        synthetic.create(tmp_path / "c")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="exists and is not empty"):
        synthetic.create(tmp_path / "file")


def test_an_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match=r"cannot create .*file/c: a part of the path is not a folder"):
        synthetic.create(tmp_path / "file" / "c")


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path):
    with synthetic.create(tmp_path / "c"):
        with pytest.raises(UsageError, match="another netjoule is writing"):
            Campaign.open(tmp_path / "c")
        reader = Campaign.read(tmp_path / "c")
        with pytest.raises(RunFailed, match="reading only"):
            reader.set_status(reader.rows()[0].run_id, "running")
    Campaign.open(tmp_path / "c").close()


def test_a_newer_campaign_is_refused_in_words(campaign_dir):
    document = load(campaign_dir / "campaign.json") | {"schema_version": 2}
    (campaign_dir / "campaign.json").write_text(json.dumps(document))
    with pytest.raises(
        InvalidData, match=r"contract version 2, this netjoule knows 1.*or a newer one"
    ) as caught:
        Campaign.open(campaign_dir)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(("name", "text"), [("campaign.json", "{"), ("plan.csv", "run_id\n")])
def test_a_broken_campaign_is_named_with_its_file(campaign_dir, name, text):
    (campaign_dir / name).write_text(text)
    with pytest.raises(InvalidData, match=f"{name}.*line 1"):
        Campaign.open(campaign_dir)


def test_what_is_no_campaign_is_said_so(tmp_path):
    with pytest.raises(UsageError, match="is not a campaign"):
        Campaign.open(tmp_path)


def test_status_is_on_disk_at_once_and_invalid_needs_a_reason(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        run_id = campaign.rows()[0].run_id
        campaign.set_status(run_id, "invalid", "idle_drift")
        assert read_plan(tmp_path / "c")[0].reason == "idle_drift"
        with pytest.raises(RunFailed, match="needs a reason"):
            campaign.set_status(run_id, "invalid")


def test_an_invalid_mini_block_comes_again_and_the_repeat_is_in_plan_csv(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        first, second = campaign.rows()
        campaign.set_status(first.run_id, "valid")
        campaign.set_status(second.run_id, "invalid", "meter_gap")
        mini = campaign.next_mini_block()
        assert mini is not None
        assert mini.attempt == 2
        statuses = [r.status for r in read_plan(tmp_path / "c")]
        assert statuses == ["superseded", "invalid", "planned", "planned"]


def test_documents_are_held_to_their_contracts(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        with pytest.raises(RunFailed, match=r"run\.json .*run_id|run\.json .*required"):
            campaign.write_run({"schema_version": 1, "run_id": campaign.rows()[0].run_id})
        with pytest.raises(RunFailed, match="has no column mood"):
            campaign.append_clocks([{"t_s": 0.0, "host": "client", "mood": "good"}])
        with pytest.raises(RunFailed, match="cannot be stored"):
            campaign.append_clocks([{"t_s": float("nan"), "host": "client"}])


def test_device_models_are_recorded_once_with_what_is_uncertain(tmp_path):
    model = {
        "name": "raspberry-pi",
        "title": "not kept",
        "form": "cross_factor",
        "status": "published",
        "source": "a paper",
        "parameters": {"rho_id_w": 2.2203, "gamma_xr_j": 0.0},
        "relative_uncertainty": {"rho_id_w": 0.0013, "gamma_xr_j": None},
        "rho_tx": [{"phy_rate_mbps": 6.0, "rho_w": 0.69, "relative_uncertainty": 0.0185}],
        "rho_rx": [{"phy_rate_mbps": 6.0, "rho_w": 0.005, "relative_uncertainty": None}],
    }
    with synthetic.create(tmp_path / "c") as campaign:
        campaign.set_device_models([])
        assert "device_models" not in load(tmp_path / "c" / "campaign.json")
        campaign.set_device_models([device_model_entry("m", model)])
        campaign.set_device_models([device_model_entry("m", model | {"name": "another"})])
        kept = load(tmp_path / "c" / "campaign.json")["device_models"]
        assert kept == [{"meter_id": "m"} | {k: v for k, v in model.items() if k != "title"}]


# -- clocks -----------------------------------------------------------------------------------------


def test_campaign_time_goes_on_in_the_same_boot(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        first = synthetic.begin(campaign)
        assert first.t_s(synthetic.ORIGIN_NS) == 0.0
        second = synthetic.begin(campaign, after_s=100)
        assert second.t_start_s == 100
        assert second.origin_ns == first.origin_ns
        sessions = campaign.document["sessions"]
        assert [s["end"] for s in sessions] == ["killed", "running"]


def test_campaign_time_goes_on_after_a_reboot(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        synthetic.begin(campaign)
        session = campaign.begin_session(
            boot_id="another", monotonic_ns=5_000_000_000, utc=synthetic.START + timedelta(hours=1)
        )
        assert session.t_start_s == 3600
        assert session.origin_ns == 5_000_000_000 - 3600 * 10**9  # negative: the host is younger


def test_campaign_time_never_goes_back_when_the_wall_clock_does(campaign_dir):
    last_s = float((campaign_dir / "meters" / "m.csv").read_text().splitlines()[-1].split(",")[0])
    with Campaign.open(campaign_dir) as campaign:
        session = campaign.begin_session(boot_id="another", monotonic_ns=10**9, utc=synthetic.START)
        assert session.t_start_s > last_s


# -- crashes ----------------------------------------------------------------------------------------


def test_a_run_under_way_is_planned_again_without_its_partial_files(campaign_dir):
    with Campaign.open(campaign_dir) as campaign:
        run_id = campaign.rows()[0].run_id
        document = load(campaign.run_dir(run_id) / "run.json")
        document["windows"]["idle_after"] = None
        campaign.write_run(document)
        campaign.set_status(run_id, "running")
    with Campaign.open(campaign_dir) as campaign:
        assert {row.run_id: row.status for row in campaign.rows()}[run_id] == "planned"
        assert sorted(p.name for p in campaign.run_dir(run_id).iterdir()) == ["events.csv"]
        mini = campaign.next_mini_block()
        assert mini is not None
        assert [r.run_id for r in mini.missing] == [run_id]
        assert mini.resumed


def test_a_sealed_run_is_not_repeated(campaign_dir):
    with Campaign.open(campaign_dir) as campaign:
        run_id = campaign.rows()[0].run_id
        campaign.set_status(run_id, "running")
        (campaign.run_dir(run_id) / "result.json").unlink()
    with Campaign.open(campaign_dir) as campaign:
        assert {row.run_id: row.status for row in campaign.rows()}[run_id] == "valid"
        assert campaign.finished_without_result() == (run_id,)
        assert campaign.next_mini_block() is None


def test_runs_whose_readings_were_cut_off_are_planned_again(campaign_dir):
    readings = campaign_dir / "meters" / "m.csv"
    readings.write_bytes(readings.read_bytes()[:705])
    torn = 705 - (readings.read_bytes().rfind(b"\n") + 1)
    with Campaign.open(campaign_dir) as campaign:
        ids = [row.run_id for row in campaign.rows()]
        assert campaign.cut == ({"meters/m.csv": torn} if torn else {})
        assert list(campaign.lost) == ids
        assert all(why.startswith("meter m: readings cover") for why in campaign.lost.values())
        assert {row.status for row in campaign.rows()} == {"planned"}
        assert [p.name for i in ids for p in campaign.run_dir(i).iterdir()] == ["events.csv"] * len(ids)
    with Campaign.open(campaign_dir) as campaign:
        assert (campaign.cut, campaign.lost) == ({}, {})


def test_only_the_runs_after_the_cut_are_planned_again(campaign_dir):
    readings = campaign_dir / "meters" / "m.csv"
    first, second = read_plan(campaign_dir)
    end_s = load(campaign_dir / "runs" / first.run_id / "run.json")["windows"]["idle_after"]["t_end_s"]
    lines = readings.read_text().splitlines(keepends=True)
    readings.write_text(lines[0] + "".join(x for x in lines[1:] if float(x.split(",")[0]) < end_s + 0.2))
    with Campaign.open(campaign_dir) as campaign:
        assert list(campaign.lost) == [second.run_id]
        assert [row.status for row in campaign.rows()] == ["valid", "planned"]


@pytest.mark.parametrize("name", ["", "run.json", "flow.json", "intervals.csv"])
def test_a_run_whose_files_are_gone_is_planned_again(campaign_dir, name):
    run_id = read_plan(campaign_dir)[0].run_id
    gone = campaign_dir / "runs" / run_id / name
    if name:
        gone.unlink()
    else:
        shutil.rmtree(gone)
    with Campaign.open(campaign_dir) as campaign:
        assert campaign.lost == {run_id: "its files are gone"}
        assert [row.status for row in campaign.rows()] == ["planned", "valid"]
        mini = campaign.next_mini_block()
        assert mini is not None
        assert [row.run_id for row in mini.missing] == [run_id]


def test_a_whole_campaign_has_lost_nothing(campaign_dir):
    before = {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()}
    with Campaign.open(campaign_dir) as campaign:
        assert (campaign.cut, campaign.lost) == ({}, {})
    assert {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()} == before


def test_cut_lines_are_removed_before_anything_is_appended(campaign_dir):
    table = campaign_dir / "clocks.csv"
    whole = table.read_bytes()
    table.write_bytes(whole + b"12.5,client,0.0")
    stream = campaign_dir / "devices" / "m.ndjson"
    samples = stream.read_bytes()
    stream.write_bytes(samples + b'{"t_start_s": 1')
    Campaign.open(campaign_dir).close()
    assert table.read_bytes() == whole
    assert stream.read_bytes() == samples


@pytest.mark.parametrize("text", [b"", b"x" * 10_000, b"a\n" + b"y" * 9_000, b"a\n"])
def test_cutting_keeps_whole_lines_only(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    cut = files.cut_torn_line(path)
    kept = text[: text.rfind(b"\n") + 1]
    assert path.read_bytes() == kept
    assert cut == len(text) - len(kept)


KILL_ME = """
import sys, itertools
sys.path[:0] = sys.argv[2:]
import synthetic
from pathlib import Path
campaign = synthetic.create(Path(sys.argv[1]), workload=synthetic.workload(blocks=20))
print("ready", flush=True)
for i in itertools.count():
    row = campaign.rows()[i % len(campaign.rows())]
    campaign.set_status(row.run_id, ("running", "valid")[i % 2])
    campaign.append_clocks([{"t_s": float(i), "host": "client", "offset_s": 0.0, "residual_s": 0.0,
                             "method": "same_boot"}] * 50)
"""


@pytest.mark.parametrize("bytes_written", [1, 40_000, 400_000])
def test_kill_nine_at_any_moment_leaves_a_campaign_that_opens(tmp_path, bytes_written):
    place = tmp_path / "c"
    process = subprocess.Popen([sys.executable, "-c", KILL_ME, str(place), *sys.path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    clocks = place / "clocks.csv"
    while not clocks.exists() or clocks.stat().st_size < bytes_written:
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Campaign.open(place) as campaign:
        assert len(campaign.rows()) == 40
        assert all(r.status in ("planned", "valid") for r in campaign.rows())
    rows = files.read_table(clocks, "clocks")
    assert [float(r["t_s"]) for r in rows] == sorted(float(r["t_s"]) for r in rows)


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path, monkeypatch):
    path = tmp_path / "plan.csv"
    files.write_atomic(path, "old\n")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFailed, match=r"the disk is full; free some space, then run 'netjoule resume'"):
        files.write_atomic(path, "new\n")
    assert path.read_text() == "old\n"


def test_an_append_that_the_disk_refuses_leaves_no_half_line(tmp_path):
    path = tmp_path / "big.csv"
    path.write_bytes(b"x" * 1000)
    script = (
        "import resource, signal, sys; from pathlib import Path; from netjoule.core import files\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
        "try: files._append_whole(open(sys.argv[1], 'ab', buffering=0), b'y' * 4000)\n"
        "except OSError as e: print(e.errno)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "27"  # EFBIG stands for a full disk
    assert path.read_bytes() == b"x" * 1000


# -- what is written --------------------------------------------------------------------------------


def test_times_have_six_decimals_and_missing_is_empty(campaign_dir):
    lines = (campaign_dir / "clocks.csv").read_text().splitlines()
    assert lines[1] == "0.500000,client,0.0,,0.0,same_boot"


def test_the_data_package_lists_each_table_once_with_its_schema(campaign_dir):
    package = load(campaign_dir / "datapackage.json")
    names = [r["name"] for r in package["resources"]]
    assert names == ["plan", "status", "clocks", "meters", "radio", "intervals", "events"]
    intervals = package["resources"][5]
    assert [field["name"] for field in package["resources"][0]["schema"]["fields"]][-7:] == FACTORS
    assert len(intervals["path"]) == 2
    assert intervals["schema"]["fields"][0]["name"] == "part"
    assert package["name"] == "tiny"
    assert package["description"].endswith(CELLS_ARE_DATA)


def test_the_end_of_a_session_knows_whether_the_plan_is_done(campaign_dir):
    assert load(campaign_dir / "campaign.json")["status"] == "complete"
    with Campaign.open(campaign_dir) as campaign:
        row = campaign.rows()[0]
        campaign.set_status(row.run_id, "invalid", "meter_gap")  # its repeat is due
        session = synthetic.begin(campaign, after_s=900)
        campaign.end_session(
            session, end="stopped", monotonic_ns=synthetic.ORIGIN_NS + 10**12, utc=synthetic.START
        )
        assert campaign.document["status"] == "interrupted"
        assert any(r.attempt == 2 for r in campaign.rows())


FACTORS = ["payload_bytes", "offered_rate_mbps", "direction", "parallel", "pacing", "window_us", "gso"]


def test_rows_survive_the_csv(tmp_path):
    cell = Cell(
        {"payload_bytes": 64, "offered_rate_mbps": 0.031, "gso": True, "path": "rtt_ms 10", "SPIN": "1"}
    )
    with synthetic.create(tmp_path / "c") as campaign:
        rows = [replace(r, cell=cell) for r in campaign.rows()]
    write_plan(tmp_path / "c", rows)
    assert read_plan(tmp_path / "c") == rows
    write_plan(tmp_path / "c", [replace(r, cell=Cell({"mood": "good"})) for r in rows])
    with pytest.raises(InvalidData, match="the header is"):
        read_plan(tmp_path / "c")


def test_repeats_and_states_are_appended_and_nothing_is_written_anew(tmp_path):
    with synthetic.create(tmp_path / "c", workload=synthetic.workload(blocks=2)) as campaign:
        first, second, *_ = campaign.rows()
        before = [(tmp_path / "c" / name).read_bytes() for name in ("plan.csv",)]
        campaign.set_status(first.run_id, "valid")
        states = (tmp_path / "c" / "status.csv").read_bytes()
        campaign.set_status(second.run_id, "invalid", "meter_gap")
        campaign.next_mini_block()
        assert (tmp_path / "c" / "plan.csv").read_bytes().startswith(before[0])
        assert (tmp_path / "c" / "status.csv").read_bytes().startswith(states)
        # A repeat stands at the end of the file and is run at the end of its block.
        ids = [line.split(",")[0] for line in (tmp_path / "c" / "plan.csv").read_text().splitlines()]
        assert [name[-2:] for name in ids[-2:]] == ["a2", "a2"]
        assert [(r.block, r.attempt) for r in read_plan(tmp_path / "c")] == [(1, 1)] * 2 + [(1, 2)] * 2 + [
            (2, 1)
        ] * 2
        assert tuple(read_plan(tmp_path / "c")) == campaign.rows()


def test_a_repeat_that_a_crash_cut_is_completed(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        first, second = campaign.rows()
        campaign.set_status(first.run_id, "valid")
        campaign.set_status(second.run_id, "invalid", "meter_gap")
        campaign.next_mini_block()
        whole = sorted(row.run_id for row in campaign.rows())
    plan = tmp_path / "c" / "plan.csv"
    text = plan.read_text()
    for cut in range(len(text) - text.rindex("\n", 0, -1)):
        plan.write_text(text[: len(text) - cut])
        with Campaign.open(tmp_path / "c") as campaign:
            assert campaign.next_mini_block() is not None
            assert sorted(row.run_id for row in campaign.rows()) == whole
        assert sorted(plan.read_text().splitlines()) == sorted(text.splitlines())


def test_a_row_with_an_older_token_is_ignored(tmp_path):
    with synthetic.create(tmp_path / "c") as campaign:
        synthetic.begin(campaign)
        synthetic.begin(campaign)
        run_id = campaign.rows()[0].run_id
        campaign.set_status(run_id, "valid")
    set_in_status(tmp_path / "c", run_id, "invalid", "idle_drift")  # of session 1, which is over
    assert read_plan(tmp_path / "c")[0].status == "valid"


# -- campaigns of before there was status.csv --------------------------------------------------------


def older(campaign: Path) -> Path:
    """A campaign as version 0.1 wrote it: the status of each run stands in plan.csv."""
    rows = read_plan(campaign)
    names = [f["name"] for f in contracts.table("plan_1")["fields"]]
    lines = [",".join(names)]
    for row in rows:
        status = "done" if row.status == "valid" else row.status
        cells = row.as_json() | {"transport": row.arm, "generator": "netjoule-traffic", "status": status}
        lines.append(",".join(files._cell(name, cells[name]) for name in names))
    (campaign / "plan.csv").write_text("\n".join([*lines, ""]))
    (campaign / "status.csv").unlink()
    with Campaign.read(campaign) as reader:
        package = describe(campaign, reader.document)
    (campaign / "datapackage.json").write_text(json.dumps(package))
    return campaign


def test_an_older_campaign_reads_as_it_did(campaign_dir):
    before = read_plan(campaign_dir)
    assert read_plan(older(campaign_dir)) == before
    assert [str(defect) for defect in check_campaign(campaign_dir)] == []
    with Campaign.open(campaign_dir) as campaign:
        assert campaign.next_mini_block() is None


def test_an_older_campaign_that_is_not_finished_is_refused_with_the_version_that_can(campaign_dir, capsys):
    document = load(older(campaign_dir) / "campaign.json") | {"status": "interrupted"}
    (campaign_dir / "campaign.json").write_text(json.dumps(document))
    before = {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()}
    with pytest.raises(UsageError, match=r"cannot continue it; finish it with netjoule 0\.1\.0$"):
        Campaign.open(campaign_dir)
    assert {p: p.read_bytes() for p in campaign_dir.rglob("*") if p.is_file()} == before

# SPDX-License-Identifier: Apache-2.0
"""Files and folders beyond all measure: named, within little memory and at once; what else is wrong, too."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from golden_sentences import raises

from netjoule.analysis import analysis
from netjoule.cli.app import run_command
from netjoule.core.errors import UsageError
from netjoule.design import run_table
from netjoule.design.duration import least_p
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign
from netjoule.workload import workload

HUGE_BYTES = 3 << 30
MOST_MEMORY_BYTES = 1 << 30
READERS = ["check", "publish", "analyse"]
LONG_NUMBER = "9" * 4300


def run_of(campaign: Path, transport: str = "udp") -> Path:
    rows = read_plan(campaign)
    return campaign / "runs" / next(row.run_id for row in rows if row.arm == transport)


def defects(campaign: Path) -> list[str]:
    return [str(defect) for defect in check_campaign(campaign)]


def bounded(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with a bound of its memory."""
    return subprocess.run(
        [sys.executable, "-m", "netjoule", *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.fixture
def without_r(monkeypatch):
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("R was started"))


# -- memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    "name",
    ["campaign.json", "plan.csv", "meters/m.csv", "devices/m.ndjson", "RUN/flow.json", "RUN/events.csv"],
)
def test_gigabytes_of_zeros_are_named_within_little_memory(campaign_dir, command, name):
    path = run_of(campaign_dir) / name.removeprefix("RUN/") if name.startswith("RUN") else campaign_dir / name
    path.touch()
    os.truncate(path, HUGE_BYTES)  # sparse
    seen = bounded(command, str(campaign_dir))
    assert seen.returncode == 4, seen.stderr
    assert path.relative_to(campaign_dir).as_posix() in seen.stdout + seen.stderr
    assert "longer than" in seen.stdout + seen.stderr or "it is cut off" in seen.stderr
    assert "defect of netjoule" not in seen.stderr


def test_a_file_that_nobody_reads_may_be_large(campaign_dir):
    (campaign_dir / "notes.bin").touch()
    os.truncate(campaign_dir / "notes.bin", HUGE_BYTES)
    assert bounded("check", str(campaign_dir)).returncode == 0


def test_an_import_of_a_gigabyte_is_refused_by_its_length(tmp_path):
    path = tmp_path / "iperf3.json"
    path.write_text("{")
    os.truncate(path, 1 << 30)
    seen = bounded("import", str(path), "--out", str(tmp_path / "out"))
    assert seen.returncode == 4
    assert "longer than 128 MB; import a part of it" in seen.stderr
    assert not (tmp_path / "out").exists()


def test_so_is_json_of_more_than_a_document_and_so_are_many_files(tmp_path, monkeypatch, capsys):
    from netjoule.importing import read, sources

    folder = tmp_path / "logs"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text("Flow>" + "1" * 95)
    monkeypatch.setattr(sources, "MOST_BYTES_TOGETHER", 250)
    assert run_command(["import", str(folder), "--out", str(tmp_path / "out"), "--transport", "udp"]) == 4
    assert "hold more than 0.00025 MB together; import a part of them" in capsys.readouterr().err
    monkeypatch.setattr(read.reading, "MOST_DOCUMENT_BYTES", 10)
    (folder / "a").write_text('{"x": 1, "y": 2}')
    assert run_command(["import", str(folder / "a"), "--out", str(tmp_path / "out")]) == 4
    assert "JSON of more than" in capsys.readouterr().err


def test_a_fifo_is_not_imported_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    seen = bounded("import", str(tmp_path / "fifo"), "--out", str(tmp_path / "out"))
    assert seen.returncode == 4
    assert f"{tmp_path}/fifo: it is no plain file; name a file, or a folder of files" in seen.stderr


# -- plans -------------------------------------------------------------------------------------------


def a_workload(**changes):
    document = {
        "schema_version": 1,
        "name": "many",
        "transports": ["udp"],
        "payload_bytes": [100],
        "offered_rate_mbps": [1],
        "blocks": 1,
        "timing": {"idle_s": 1, "settle_s": 0, "warm_up_s": 1, "measure_s": 1, "tail_s": 1},
    }
    return workload.Workload.from_document(document | changes, where="w")


def test_a_plan_is_counted_before_it_is_made():
    many = a_workload(payload_bytes=list(range(100, 1100)), blocks=100_000)
    assert many.runs == 10**8
    with raises(UsageError):
        run_table.expand(many, 1)
    assert len(run_table.expand(a_workload(blocks=2), 1)) == a_workload(blocks=2).runs == 2


def test_so_are_ways_of_pacing():
    many = a_workload(window_us=list(range(2000)), gso=[True, False], blocks=100)
    assert many.runs == 400_000
    with raises(UsageError):
        run_table.expand(many, 1)


def test_a_workload_of_too_many_runs_is_refused_before_a_folder_is_made(tmp_path, capsys):
    path = tmp_path / "many.yaml"
    path.write_text(json.dumps(a_workload(blocks=100_000, payload_bytes=[100, 200]).document))
    for command in (["plan", str(path), "--rows"], ["run", str(path), "--out", str(tmp_path / "c")]):
        assert run_command(command) == 2
        assert "200000 runs, and a campaign has 100000 at most" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_check_names_a_plan_of_too_many_runs_and_what_else_is_wrong(campaign_dir):
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["workload"]["blocks"] = 100_000
    document["workload"]["factors"]["payload_bytes"] = list(range(100, 1100))
    path.write_text(json.dumps(document))
    (run_of(campaign_dir) / "run.json").unlink()
    found = defects(campaign_dir)
    assert any("campaign.json, field workload: it asks for" in defect for defect in found)
    assert any("run.json: the file is missing" in defect for defect in found)


def test_thousands_of_blocks_have_a_least_p():
    assert least_p(1) == 1.0
    assert least_p(8) == 2 / 256
    assert least_p(100_000) == 0.0


# -- what used to be a defect of netjoule ---------------------------------------------------------------


def with_number(text: str, field: str) -> str:
    """A JSON text whose field is a number of thousands of digits."""
    return re.sub(rf'"{field}": \d+', f'"{field}": {LONG_NUMBER}', text)


def bad_files(campaign: Path) -> dict[str, str]:
    """Files that are beyond the limits of their readers, by name; each replaces one that is there."""
    run = run_of(campaign).relative_to(campaign)
    meter = (campaign / "meters/m.csv").read_text().splitlines()
    cells = meter[3].split(",")
    meter[2] = meter[2] + "x" * 131_073
    meter[3] = ",".join([LONG_NUMBER, *cells[1:]])
    return {
        "datapackage.json": "[" * 200_000,
        "meters/m.csv": "\n".join(meter) + "\n",
        "devices/m.ndjson": f'{{"t_start_s": {LONG_NUMBER}, "t_end_s": 1}}\n' + "[" * 200_000 + "\n",
        f"{run}/run.json": with_number((campaign / run / "run.json").read_text(), "block"),
        f"{run}/flow.json": '{"a":' * 300 + "1" + "}" * 300,
        f"{run}/result.json": f'{{"nodes": [{{"p_a_w": {LONG_NUMBER}9}}]}}',
    }


def test_each_bad_file_is_named_and_later_ones_still_are(campaign_dir):
    bad = bad_files(campaign_dir)
    for name, text in bad.items():
        (campaign_dir / name).write_text(text)
    found = defects(campaign_dir)
    assert {name for name in bad if not any(d.startswith(name) for d in found)} == set()
    assert "meters/m.csv, line 3: a cell of more than 131072 characters" in found
    in_table = [d for d in found if d.startswith("meters/m.csv, line")]
    assert {"line 3", "line 4"} <= {d.split(", ", 1)[1].split(":")[0].split(",")[0] for d in in_table}
    assert len([d for d in found if d.startswith("devices/m.ndjson, line")]) == 2


@pytest.mark.parametrize(
    ("rubbish", "said"),
    [
        (lambda text: text.replace(",work,", ",wrok,", 1), "plan.csv, line 2, column kind"),
        (lambda text: text + "x" * 140_000 + "\n", "a cell of more than 131072 characters"),
    ],
)
def test_a_defect_of_the_plan_hides_none_of_the_runs(campaign_dir, rubbish, said):
    plan_csv, bad = campaign_dir / "plan.csv", bad_files(campaign_dir)
    plan_csv.write_text(rubbish(plan_csv.read_text()))
    alone = defects(campaign_dir)
    assert len(alone) == 1 and said in alone[0], alone
    for name, text in bad.items():
        (campaign_dir / name).write_text(text)
    found = defects(campaign_dir)
    assert {name for name in ("plan.csv", *bad) if not any(d.startswith(name) for d in found)} == set()


@pytest.mark.parametrize("command", [*READERS, "report", "table-iv", "savings"])
def test_no_bad_file_is_a_defect_of_netjoule(campaign_dir, monkeypatch, capsys, command):
    for verb in ("run_analysis", "run_table_iv"):
        monkeypatch.setattr(analysis, verb, lambda *_, **__: None)
    arguments = [command, *(["--campaign"] if command == "savings" else []), str(campaign_dir)]
    campaign = (campaign_dir / "campaign.json").read_text()
    plan_text = (campaign_dir / "plan.csv").read_text()
    bad = bad_files(campaign_dir) | {
        "campaign.json": with_number(campaign, "seed"),
        "plan.csv": plan_text + "x" * 131_073 + "\n",
    }
    for name, text in bad.items():
        before = (campaign_dir / name).read_text()
        (campaign_dir / name).write_text(text)
        assert run_command(arguments) in (0, 2, 4), name
        seen = capsys.readouterr()
        assert "defect of netjoule" not in seen.err, name
        (campaign_dir / name).write_text(before)


def test_a_folder_of_1500_levels_is_named(campaign_dir, capsys, without_r):
    (run_of(campaign_dir) / "run.json").unlink()
    deep, top = os.open(campaign_dir, os.O_RDONLY), campaign_dir / "d"
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    try:
        for command in READERS:
            assert run_command([command, str(campaign_dir)]) == 4
            seen = capsys.readouterr()
            assert "levels deep" in seen.out + seen.err
            assert command != "check" or "run.json: the file is missing" in seen.out
    finally:
        subprocess.run(["rm", "-rf", str(top)], check=True)


def test_a_deep_folder_of_results_is_left_out_of_an_import(tmp_path, capsys):
    (tmp_path / "in" / "/".join("d" * 40)).mkdir(parents=True)
    assert run_command(["import", str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == 4
    assert "left out" in capsys.readouterr().err


def test_a_number_without_bounds_in_yaml_is_named(tmp_path, capsys):
    path = tmp_path / "w.yaml"
    text = json.dumps(a_workload().document)
    path.write_text(with_number(text, "blocks"))
    assert run_command(["plan", str(path)]) == 2
    assert "a number of 4300 digits" in capsys.readouterr().err

# SPDX-License-Identifier: Apache-2.0
"""The load `command` on a lab of two hosts: a client fetches files of the size that a variable says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan

HERE = Path(__file__).parents[1]
NETJOULE = Path(sys.executable).parent / "netjoule"
PORT = 8080
SIZES = (1000, 200_000)
FETCH = """
import http.client, os
asked = http.client.HTTPConnection(os.environ["NETJOULE_SERVER"], 8080)
asked.request("GET", "/" + os.environ["SIZE"])
print(len(asked.getresponse().read()), "bytes")
"""
pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        os.geteuid() != 0,
        reason="sshd changes users and groups, which a namespace of an ordinary user forbids",
    ),
]


def workload(folder: Path, name: str, **command: Any) -> Path:
    files = folder / "files"
    server = ["python3", "-u", "-m", "http.server", str(PORT), "--directory", str(files)]
    document = {
        "schema_version": 2,
        "name": name,
        "load": "command",
        "arm": "SIZE",
        "factors": {"SIZE": [str(size) for size in SIZES]},
        "command": {
            "run": ["python3", "-c", FETCH],
            "server": server,
            "server_ready": "Serving HTTP",
            "work_from": {"regex": "([0-9]+) bytes"},
            "work_unit": "byte",
            **command,
        },
        "blocks": 1,
        "timing": {"idle_s": 3.0, "settle_s": 0.2, "warm_up_s": 0, "measure_s": 2.0, "tail_s": 0.5},
        "limits": {"max_attempts": 4},  # a busy host may spoil some
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the campaign, and what was said of one whose program a host lacks."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "files").mkdir()
    for size in SIZES:
        (folder / "files" / str(size)).write_bytes(bytes(size))
    fine = workload(folder, "fetch")
    lacking = workload(folder, "lacking", server=["no-such-server"])
    run = f'"{NETJOULE}" run --no-verify "$1" --testbed "$0/lab.yaml" --out "$0/$3"'
    script = "; ".join(
        f'{run} >"$0/$3.said" 2>&1; echo $? >"$0/$3.code"'.replace("$1", one).replace("$3", out)
        for one, out in (("$1", "$3"), ("$2", "$4"))
    )
    # Which interface is under test, so that bytes on the link are counted.
    wired = r"""sed -i 's/^  client:$/&\n    wired: {interface: cable}/' "$0/lab.yaml"; """
    inside = ["sh", "-c", wired + script, folder, fine, lacking, "campaign", "second"]
    argv = [sys.executable, HERE / "two_host_lab.py", folder, *inside]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def said(lab: Path, name: str) -> tuple[int, str]:
    return int((lab / f"{name}.code").read_text()), (lab / f"{name}.said").read_text()


def test_a_command_with_its_server_runs_on_hosts_over_ssh(lab: Path) -> None:
    assert said(lab, "campaign")[0] == 0, said(lab, "campaign")[1]
    campaign = lab / "campaign"
    checked = subprocess.run([NETJOULE, "check", campaign], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    valid = [row["run_id"] for row in plan(campaign) if row["status"] == "valid"]
    runs = [json.loads((campaign / "runs" / name / "run.json").read_text()) for name in valid]
    assert sorted(run["arm"] for run in runs) == sorted(map(str, SIZES))
    for run in runs:
        work, size = run["work"], int(run["arm"])
        assert (work["unit"], work["quantity"]) == ("byte", size * work["repeat"])
        # Each run of it: the file with its headers, over the cable to the server.
        assert size < run["measures"]["received_bytes"] < 2 * size + 10_000
        assert run["hosts"] == {"client": "client", "server": "server"}


def test_a_program_that_a_host_lacks_is_named_before_anything_runs(lab: Path) -> None:
    code, words = said(lab, "second")
    assert code == 3, words
    assert "there is no program no-such-server on host server; install it" in words
    assert not list((lab / "second").glob("runs/*"))

# SPDX-License-Identifier: Apache-2.0
"""The agent as a process, as a lab host runs it: its zipapp, with a stand-in for iw on the search path."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded_tools import SNAPSHOTS

from netjoule_radio.bundle import agent_zipapp, one_snapshot

IW = """#!/bin/sh
case "$*" in
  --version) echo 'iw version 5.19' ;;
  *' info') [ -e {folder}/gone ] || exec cat {snapshots}/ht-wlan2-info.txt ;;
  *' power_save') exec cat {snapshots}/ht-wlan2-ps.txt ;;
  *' station dump') [ -e {folder}/gone ] || exec cat {snapshots}/ht-wlan2-station.txt ;;
esac
case "$*" in --version) ;; *) echo 'command failed: No such device (-19)' >&2; exit 237 ;; esac
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder with the zipapp and a bin/iw; `gone` in it makes the interface disappear."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "iw"
    tool.write_text(IW.format(folder=tmp_path, snapshots=SNAPSHOTS), encoding="utf-8")
    tool.chmod(0o755)
    (tmp_path / "agent.pyz").write_bytes(agent_zipapp())
    return tmp_path


def start(host: Path, *options: str) -> subprocess.Popen[str]:
    # -I -S: nothing but the standard library, as on a bare host; no package of this repository is seen.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(host / "agent.pyz"), "--interface", "wlan2", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": f"{host / 'bin'}:/usr/bin:/bin"},
    )


def lines(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


@pytest.fixture
def agent(host: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(host, "--every-s", "0.1", "--source", "iw")
    yield process
    process.kill()
    process.communicate()


def test_it_says_who_it_is_then_reads_and_ends_with_its_input(agent: subprocess.Popen[str]) -> None:
    ready, first, second = lines(agent, 3)
    assert ready["event"] == "ready"
    assert (ready["source"], ready["versions"]["iw"], ready["every_s"]) == ("iw", "5.19", 0.1)
    assert ready["cpu_source"].startswith("getrusage")
    assert (first["event"], first["state"], first["bssid"]) == ("reading", "associated", "02:00:00:00:00:00")
    assert (first["phy_rate_mbps"], first["mcs"], first["power_save"]) == (27.0, 8, True)
    # Programs that it ran are counted: a shell and cat take more than a microsecond.
    assert second["cpu_s"] > first["cpu_s"] > 0
    rest, errors = agent.communicate()  # closes standard input
    assert agent.returncode == 0
    assert errors == ""
    assert json.loads(rest.splitlines()[-1])["event"] == "ended"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_code_0(agent: subprocess.Popen[str], number: int) -> None:
    lines(agent, 2)
    agent.send_signal(number)
    assert agent.stdout is not None
    said = [json.loads(line) for line in agent.stdout]
    assert (agent.wait(), said[-1]["event"]) == (0, "ended")


def test_a_hangup_that_nohup_keeps_away_ends_nothing(host: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # is handed on to what is started
    process = start(host, "--every-s", "0.1", "--source", "iw")
    signal.signal(signal.SIGHUP, before)
    with process:
        lines(process, 2)
        process.send_signal(signal.SIGHUP)
        assert [line["event"] for line in lines(process, 4)] == ["reading"] * 4
        process.communicate()  # closes standard input
        assert process.returncode == 0


def test_it_goes_on_when_the_interface_goes_and_comes_back(host: Path, agent: subprocess.Popen[str]) -> None:
    lines(agent, 2)
    (host / "gone").touch()
    gone = next(line for line in iter(lambda: lines(agent, 1)[0], None) if line["event"] != "reading")
    assert gone["event"] == "interface_gone"
    (host / "gone").unlink()
    again, reading = lines(agent, 2)
    assert (again["event"], reading["event"]) == ("reading_again", "reading")


def failed(host: Path, options: Sequence[str]) -> tuple[int, dict[str, Any], str]:
    process = start(host, *options)
    said, errors = process.communicate()
    return process.returncode, json.loads(said) if said else {}, errors


def test_without_any_source_one_sentence_and_code_3(host: Path) -> None:
    (host / "bin" / "iw").unlink()
    code, event, errors = failed(host, ("--source", "nl80211"))
    assert code == 3
    assert event["event"] == "error"
    assert f"nl80211: pyroute2 is not installed for {sys.executable}" in event["message"]
    assert "install python3-pyroute2, or choose another reader" in event["message"]
    assert "Traceback" not in errors


def look_once(host: Path, source: str) -> tuple[int, str]:
    """One snapshot as a program on standard input."""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-"],
        input=one_snapshot("wlan2", source),
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{host / 'bin'}:/usr/bin:/bin", "TMPDIR": str(host / "tmp")},
        check=False,
    )
    assert ended.stderr == ""
    assert list((host / "tmp").iterdir()) == []
    return ended.returncode, ended.stdout


def test_one_look_tells_who_answers_and_leaves_nothing(host: Path) -> None:
    (host / "tmp").mkdir()
    code, said = look_once(host, "iw")
    (ready,) = map(json.loads, said.splitlines())
    assert (code, ready["event"], ready["source"]) == (0, "ready", "iw")
    code, said = look_once(host, "nl80211")
    assert (code, json.loads(said)["event"]) == (3, "error")


def test_a_wrong_interface_is_told_at_once(host: Path) -> None:
    (host / "gone").touch()
    code, event, _ = failed(host, ("--source", "iw"))
    assert code == 3
    assert "there is no wireless interface wlan2" in event["message"]


def test_a_period_out_of_bounds_is_refused(host: Path) -> None:
    code, event, errors = failed(host, ("--every-s", "0.01"))
    assert (code, event) == (2, {})
    assert "give 0.1 to 60 seconds" in errors


def test_nobody_listening_is_no_error(agent: subprocess.Popen[str]) -> None:
    lines(agent, 1)
    assert agent.stdout is not None
    agent.stdout.close()
    assert agent.wait(10) == 0
    assert agent.stderr is not None
    assert agent.stderr.read() == ""
    agent.stdout = None


def test_equal_sources_make_equal_bytes() -> None:
    assert agent_zipapp() == agent_zipapp()

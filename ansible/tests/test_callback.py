# SPDX-License-Identifier: Apache-2.0
"""What the callback plugin makes of a host that sends back something else than a result."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from render import ANSIBLE
from sshd import search_path

PLAY = """
- hosts: all
  gather_facts: false
  tasks: [{name: Look, ansible.builtin.stat: {path: /}}]
"""


@pytest.mark.parametrize(
    ("interpreter", "message"),
    [
        ("echo odd; echo Killed >&2; exit 137", "no result came back from the host, which said Killed"),
        ("echo Welcome to the rack", "no result came back from the host, which said Welcome to the rack"),
        ("exit 1", "no result came back from the host, which said nothing"),
    ],
)
def test_a_result_that_is_none(tmp_path: Path, interpreter: str, message: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{interpreter}\n")
    program.chmod(0o755)
    (tmp_path / "play.yml").write_text(PLAY)
    variables = ["-e", "ansible_connection=local", "-e", f"ansible_python_interpreter={program}"]
    done = subprocess.run(
        ["ansible-playbook", "-i", "host,", *variables, str(tmp_path / "play.yml")],
        env=os.environ
        | {
            "PATH": search_path(),
            "HOME": str(tmp_path),
            "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "netjoule_events",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (failed,) = [event for event in events if event.get("status") == "failed"]
    assert (failed["host"], failed["task"], failed["message"]) == ("host", "Look", message)

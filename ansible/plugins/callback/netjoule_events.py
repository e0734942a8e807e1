# SPDX-License-Identifier: Apache-2.0
"""Callback plugin: what a play does, a JSON document per line on stdout. Read by netjoule.provisioning."""

from __future__ import annotations

import json
import sys
from typing import Any

from ansible.playbook.block import Block
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: netjoule_events
type: stdout
short_description: One JSON document per line
description:
  - C(start) with the tasks that are known beforehand, C(play), C(task), C(result) of a host, C(end).
  - Arguments and outputs of tasks are left out; a failure's message is kept unless the task has C(no_log).
author: [netjoule]
options: {}
"""

# How Ansible begins when what a host sent back is no result of a module (plugins/action/__init__.py there).
_NO_RESULT = "Module result deserialization failed"
_HIDDEN = "its words are hidden, as they could hold a secret"


class CallbackModule(CallbackBase):
    """Writes the lines."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "netjoule_events"

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Count the tasks; those of include_tasks and include_role are not known yet."""
        blocks = [block for play in playbook.get_plays() for block in play.compile()]
        _write("start", tasks=sum(_tasks(block) for block in blocks))

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play begins."""
        _write("play", name=play.get_name())

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task begins on all hosts of the play."""
        _task(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """A handler begins."""
        _task(task)

    def v2_runner_on_ok(self, result: Any) -> None:
        """It went well, and may have changed something."""
        _result(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """It had nothing to do."""
        _result(result, "skipped")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """It failed."""
        _result(result, "ok" if ignore_errors else "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """The host cannot be logged in to."""
        _result(result, "unreachable")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end, with the counts of each host."""
        _write("end", hosts={host: stats.summarize(host) for host in sorted(stats.processed)})


def _tasks(block: Any) -> int:
    return sum(_tasks(part) if isinstance(part, Block) else 1 for part in block.block)


def _task(task: Any) -> None:
    role = getattr(task, "_role", None)
    _write("task", name=task.name or task.action, role=role.get_name() if role else "")


def _result(result: Any, status: str) -> None:
    words: dict[str, Any] = (
        {"message": _message(result.result)} if status in ("failed", "unreachable") else {}
    )
    # A check is a task that does nothing but compare: what `netjoule doctor` lists.
    check = result.task.action in ("ansible.builtin.assert", "assert")
    _write("result", host=result.host.get_name(), task=result.task.name, status=status, check=check, **words)


def _message(found: dict[str, Any]) -> str:
    """Why it failed: the words of a failed item of a loop, else of the task, else of the program's stderr."""
    if found.get("censored") or found.get("_ansible_no_log"):
        return _HIDDEN
    failed = [item for item in found.get("results", ()) if item.get("failed") or item.get("unreachable")]
    if failed:
        return " ".join(dict.fromkeys(_message(item) for item in failed))
    said = found.get("stderr") or found.get("module_stderr") or ""
    words = str(found.get("msg") or "")
    if words in ("", "non-zero return code") and said:
        words = str(said)
    elif words.startswith(_NO_RESULT):
        last = str(said or found.get("module_stdout") or "").strip().splitlines()[-1:]
        words = f"no result came back from the host, which said {last[0] if last else 'nothing'}"
    return " ".join(words.split())


def _write(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event} | fields, default=str) + "\n")
    sys.stdout.flush()

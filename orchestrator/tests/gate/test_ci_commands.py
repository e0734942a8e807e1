# SPDX-License-Identifier: Apache-2.0
"""The commands that docs/ci.md and its workflows give away have the options that they name."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from netjoule.cli.app import run_command

CI = Path(__file__).parents[3] / "docs/ci"


def scripts(node: object) -> Iterator[str]:
    """What jobs run."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("run", "script"):
                yield "\n".join([value] if isinstance(value, str) else value)
            else:
                yield from scripts(value)
    elif isinstance(node, list):
        for value in node:
            yield from scripts(value)


def fences(page: str) -> str:
    """What a page says to type."""
    return "\n".join(re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL))


def named(text: str) -> dict[str, set[str]]:
    """Options by command of netjoule."""
    found: dict[str, set[str]] = {}
    for command, words in re.findall(r"\bnetjoule (\w+)(.*)", text.replace("\\\n", "")):
        found.setdefault(command, set()).update(re.findall(r"(?<!\S)--[a-z-]+", words))
    return found


def known(command: str, capsys) -> set[str]:
    assert run_command([command, "--help"]) == 0
    return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_every_option_of_the_workflows_is_one(name, capsys):
    found = named("\n".join(scripts(yaml.safe_load((CI / name).read_text()))))
    assert {"--base", "--head", "--build", "--workload", "--wait", "--pilot", "--junit"} <= found["gate"]
    assert found["history"] == {"--health"}
    for command, options in found.items():
        assert options - known(command, capsys) == set()


def test_every_option_of_the_page_is_one(capsys):
    page = (CI.parent / "ci.md").read_text()
    found = named(fences(page))
    assert set(found) == {"gate", "history"}
    for command, options in found.items():
        assert options - known(command, capsys) == set()
    elsewhere = set(re.findall(r"`(--[a-z-]+)[^`]*`", page))
    assert len(elsewhere) > 15
    assert elsewhere - known("gate", capsys) - known("history", capsys) == set()

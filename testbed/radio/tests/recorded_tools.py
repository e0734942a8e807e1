# SPDX-License-Identifier: Apache-2.0
"""Recorded answers (data/snapshots/README.md) and stand-ins for the outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from netjoule_radio.source import CompletedTool

SNAPSHOTS = Path(__file__).parent / "data" / "snapshots"
NO_DEVICE = CompletedTool(237, "", "command failed: No such device (-19)\n")  # verbatim, iw 5.19
NOT_SUPPORTED = CompletedTool(161, "", "command failed: Operation not supported (-95)\n")


def recorded(name: str) -> str:
    return (SNAPSHOTS / name).read_text(encoding="utf-8")


class Tool:
    """A program that answers by its last arguments and remembers what it was asked."""

    def __init__(self, answers: Mapping[str, CompletedTool | str]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str]) -> CompletedTool:
        words = " ".join(argv[1:])
        self.asked.append(words)
        answer = next((a for end, a in self.answers.items() if words.endswith(end)), NO_DEVICE)
        return answer if isinstance(answer, CompletedTool) else CompletedTool(0, answer, "")

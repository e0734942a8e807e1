# SPDX-License-Identifier: Apache-2.0
"""Coded reasons: why a run does not count, or what is to be known of it. Contract: reasons.json."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import RunFailed


@dataclass(frozen=True)
class Reason:
    """A code of reasons.json with what was seen."""

    code: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """As run.json and result.json hold it."""
        return {"code": self.code, "detail": self.detail}


def invalidates(code: str) -> bool:
    """Whether a run with this reason does not count.

    Raises RunFailed for a code that reasons.json does not have.
    """
    try:
        return bool(codes()[code]["invalidates"])
    except KeyError:
        raise RunFailed(f"'{code}' is not a code of reasons.json") from None


def explained(code: str) -> str:
    """What a reason means and what to do about it, as reasons.json says; empty for an unknown code."""
    known = codes().get(code)
    return f"{known['meaning']} {known['next_step']}".strip() if known else ""


def first_invalidating(reasons: Iterable[Mapping[str, str]]) -> Reason | None:
    """The first reason for which a run does not count; None when it counts."""
    for reason in reasons:
        if invalidates(reason["code"]):
            return Reason(reason["code"], reason["detail"])
    return None


@functools.cache
def codes() -> dict[str, dict[str, Any]]:
    """What reasons.json says of each code."""
    text = (contracts.root() / "reasons.json").read_text(encoding="utf-8")
    return {str(r["code"]): r for r in json.loads(text)["reasons"]}

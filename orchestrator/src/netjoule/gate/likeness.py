# SPDX-License-Identifier: Apache-2.0
"""Whether two campaigns were taken alike: same kernel, CPU, meters with their ranges, and workload. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from netjoule.gate.fingerprint import fingerprint
from netjoule.gate.settings import without_arms, workload_version


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """What differs between two campaign.json, in words.

    Args:
        a, b: the documents, their workloads lifted to the newest version.
    """
    of_a, of_b = (fingerprint(one)["fingerprint"] for one in (a, b))
    for name, label in (("kernel", "kernel"), ("cpu_model", "CPU"), ("meters", "meters")):
        if of_a[name] != of_b[name]:
            yield f"{label}: {_words(of_a[name])} and {_words(of_b[name])}"
    versions = [workload_version(without_arms(one["workload"])) for one in (a, b)]
    if versions[0] != versions[1]:
        names = [one["workload"]["name"] for one in (a, b)]
        yield f"workload: {names[0]} ({versions[0]}) and {names[1]} ({versions[1]})"


def _words(value: Any) -> str:
    return ("; ".join(value) or "none") if isinstance(value, list) else str(value)

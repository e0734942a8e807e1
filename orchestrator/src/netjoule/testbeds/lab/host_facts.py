# SPDX-License-Identifier: Apache-2.0
"""What a host's role base_host wrote down of it: kernel, architecture, CPU, governor, sysctls, offloads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.hosts.ssh import SshHost

RECORD = "/run/netjoule/host.json"
_FIELDS = ("kernel", "machine", "cpu_model", "governor", "sysctls", "offloads")


async def host_record(host: SshHost) -> dict[str, Any] | None:
    """The record as campaign.json keeps it; None on a host that was not provisioned since its start.

    Raises:
        RunFailed: when the host is out of reach, or has something else there.
    """
    said = await host.ask(["cat", RECORD])
    if said.status:
        return None
    try:
        found = json.loads(said.out)
        return {name: found[name] for name in _FIELDS}
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(
            f"{RECORD} is not what the role base_host writes ({type(error).__name__}: {error})",
            where=f"host {host.name}",
            next_step="'netjoule provision' writes it anew",
        ) from error


def joined(
    before: Sequence[Mapping[str, Any]], session: int, found: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of campaign.json's lab_hosts, and a sentence for each difference from an earlier session.

    Args:
        before: entries so far.
        session: number of this session.
        found: records by host.
    """
    entries, changes = [dict(entry) for entry in before], []
    latest = {entry["host"]: entry for entry in before}
    for host, record in found.items():
        old = latest.get(host, {})
        differing = [name for name in record if old.get(name) != record[name]]
        if differing:
            entries.append({"host": host, "session": session, **record})
        if old:
            changes += [f"host {host}: {name} was {old[name]!r}, is {record[name]!r}" for name in differing]
    return entries, changes

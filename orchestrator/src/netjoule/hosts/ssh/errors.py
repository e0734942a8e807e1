# SPDX-License-Identifier: Apache-2.0
"""What SSH says when it does not work, as one sentence that says what to do."""

from __future__ import annotations

import socket

import asyncssh

from netjoule.core.errors import HostLacks, NetjouleError, RunFailed, UsageError
from netjoule.hosts.ssh_settings import SshSettings

CONNECTION_ERRORS = (OSError, asyncssh.Error, TimeoutError)
"""What dialling or using a connection raises."""


class HostInUse(UsageError):
    """Another command has the host's lock."""


def sentence(of: SshSettings, error: Exception) -> NetjouleError:
    """The error for a host that cannot be reached: RunFailed may heal, any other needs a person."""
    known = of.known_hosts or "~/.ssh/known_hosts"
    address = of.address or of.name
    where = f"host {of.name} ({of.user}@{address}:{of.port})"
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return UsageError(
            "its SSH host key is not the known one",
            where=where,
            next_step=f"compare keys, then add that of 'ssh-keyscan -p {of.port} {address}' to {known}",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return UsageError(
            f"it lets none of the user's SSH keys in as {of.user}",
            where=where,
            next_step="'ssh-copy-id' a key there, or name one with 'ssh: {identity_file: ...}'",
        )
    if isinstance(error, (asyncssh.KeyImportError, FileNotFoundError)):
        return UsageError(f"cannot read the SSH key or the known hosts: {error}", where=where)
    if isinstance(error, socket.gaierror):
        return UsageError(
            "its address does not resolve", where=where, next_step="correct control_address in the topology"
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        return HostLacks(f"sshd opens no session: {error.reason}", where=where)
    words = "no answer in time" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)
    return RunFailed(
        f"it cannot be reached over SSH: {words}",
        where=where,
        next_step="check that it is up, sshd runs and the control network is connected",
        code="host_unreachable",
    )

# SPDX-License-Identifier: Apache-2.0
"""Hosts of a lab over SSH.

::

    SshHost --asyncssh--> sshd -> keeper.py attach <-socket-> keeper.py serve -> programs
      `- Line: numbered commands and frames, made anew when the connection drops
"""

from netjoule.hosts.ssh.errors import HostInUse
from netjoule.hosts.ssh.host import Answer, Owner, SshHost
from netjoule.hosts.ssh_settings import SshSettings

__all__ = ["Answer", "HostInUse", "Owner", "SshHost", "SshSettings"]

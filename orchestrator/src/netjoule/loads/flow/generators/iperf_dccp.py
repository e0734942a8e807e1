# SPDX-License-Identifier: Apache-2.0
"""Drives an installed iperf3 with DCCP (the fork with ``--dccp``) and maps its JSON.

The fork is found as ``iperf3-dccp`` or, when its help knows ``--dccp``, as ``iperf3``. Its report is the
one that iperf3 has for TCP, with ``"dccp": true`` in test_start: it has bytes per interval at both ends and
no count of lost datagrams. So messages are bytes over size, lost is what was sent and did not arrive, and
jitter, order and delay stay empty. It has no option for the CCID (sysctl net.dccp.default decides) and
sets no service code. Everything else is as iperf3.py says.

The iperf 2 with DCCP of old test beds is not driven: neither its flags nor its report are documented.
"""

from __future__ import annotations

import subprocess

from netjoule.core import programs
from netjoule.core.errors import HostLacks
from netjoule.loads.flow.generators.iperf3 import Iperf3

_TIMEOUT_S = 10


class IperfDccp(Iperf3):
    """iperf3 with DCCP: a one-off server and a client per flow."""

    name = "iperf-dccp"
    client = "iperf-dccp client"

    def program(self) -> str:
        """Path of an iperf3 whose help knows --dccp. Raises HostLacks without one."""
        for name in ("iperf3-dccp", "iperf3"):
            try:
                path = programs.find(name)
            except HostLacks:
                continue
            if "--dccp" in _help(path):
                return path
        raise HostLacks(
            "no iperf3 with DCCP is on this host",
            next_step="no package has it: build the fork with --dccp and put it in the PATH as iperf3-dccp,"
            " or use generator netjoule-traffic",
        )


def _help(path: str) -> str:
    """What a program says of its options; nothing when it cannot be asked."""
    try:
        answer = programs.said_by([path, "--help"], timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr

# SPDX-License-Identifier: Apache-2.0
"""The factor ``buffers``: receive buffers of TCP on a client, which its network namespace has for itself."""

from __future__ import annotations

from collections.abc import Mapping

TCP_RMEM: Mapping[str, tuple[int, int, int]] = {
    "android-5": (524_288, 1_048_576, 2_097_152),
    "klte-later": (524_288, 2_097_152, 4_194_304),
    "android-2-3": (4_096, 87_380, 110_208),
    "seed-video": (524_288, 921_600, 921_600),
}
"""net.ipv4.tcp_rmem by preset: least, default and greatest, byte (tcp(7)).

android-5 and klte-later are what Android sets for Wi-Fi (TcpBufferSizes; LineageOS' klte-common), android-2-3
stood in init.rc; seed-video is fitted to 13 Mb/s of one connection over 290 ms in the first transfer study.
A window is about half of the greatest.
"""


def setting(preset: str) -> str:
    """What sysctl(8) takes for a preset."""
    return f"net.ipv4.tcp_rmem={' '.join(map(str, TCP_RMEM[preset]))}"


def told(preset: str) -> dict[str, int]:
    """What is in force then, for run.json."""
    least, default, greatest = TCP_RMEM[preset]
    return {"least_bytes": least, "default_bytes": default, "greatest_bytes": greatest}

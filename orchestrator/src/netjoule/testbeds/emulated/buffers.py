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
These phones' kernels offer half of a buffer as window (tcp_adv_win_scale 1, ip-sysctl).
"""

_NEW_WINDOWS = (6, 6)
"""Kernels from here on offer the share of a buffer that packets fill: 5/8, as 1,500 byte count as 2,304."""


def tcp_rmem(preset: str, kernel: str) -> tuple[int, ...]:
    """Least, default and greatest, byte, that give the preset's windows on a kernel, such as ``6.1.0-35``."""
    version = tuple(int(number) for number in kernel.split("-", maxsplit=1)[0].split(".")[:2])
    share = 4 / 5 if version >= _NEW_WINDOWS else 1
    return tuple(round(share * size) for size in TCP_RMEM[preset])


def setting(sizes: tuple[int, ...]) -> str:
    """What sysctl(8) takes for these sizes."""
    return f"net.ipv4.tcp_rmem={' '.join(map(str, sizes))}"


def told(preset: str, sizes: tuple[int, ...]) -> dict[str, int]:
    """What is in force then, for run.json."""
    least, default, greatest = sizes
    window = TCP_RMEM[preset][-1] // 2
    return {
        "least_bytes": least,
        "default_bytes": default,
        "greatest_bytes": greatest,
        "greatest_window_bytes": window,
    }

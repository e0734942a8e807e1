# SPDX-License-Identifier: Apache-2.0
"""Why a pair is faster than 1.25 times kernel to kernel, where that was looked into."""

from __future__ import annotations

__all__ = ["explanation"]

_LOST_HANDSHAKE = (
    "in two of three repeats the regular loss takes the Request or the Response. Two kernel ends then go on "
    "as if the round trip were about a second (captures: 0.05 to 0.5 Mb/s, feedback at first once a second) "
    "and stay slow for the whole flow, while a pair with one end of ours does not; where the handshake is "
    "whole the ratio is 1.1"
)

_KNOWN = {
    (pair, 3, loss_percent): _LOST_HANDSHAKE
    for pair in ("ours to kernel", "kernel to ours")
    for loss_percent in (1, 5)
}
"""(pair, CCID, loss percent) to the reason."""


def explanation(pair: str, ccid: int, loss_percent: int) -> str:
    """The reason, empty when none is known."""
    return _KNOWN.get((pair, ccid, loss_percent), "")

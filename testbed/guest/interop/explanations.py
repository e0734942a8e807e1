# SPDX-License-Identifier: Apache-2.0
"""Why a pair is faster than 1.25 times kernel to kernel, where that was looked into."""

from __future__ import annotations

_EARLY_LOSS = (
    "a regular loss among the first packets keeps two kernel ends slow for the whole flow. Without the "
    "Request or the Response they go on as if the round trip were about a second (captures: 0.05 to 0.5 "
    "Mb/s, feedback at first once a second). Without one of the 6th to 10th packets, Linux's receiver "
    "reports a loss event rate of 1/3 or 1/4 up to the next loss, 100 or 20 packets later (0.02 to 0.1 "
    "Mb/s), for the reasons below. Our sender begins with the initial window of its messages, not of the "
    "short greeting before them, so more has arrived by then and 1/7 to 1/25 is reported; our receiver "
    "takes the real round trip and counts the packets since the loss. Where the handshake is whole and "
    "the first loss comes at the 100th packet the ratio is 1.05"
)

LINUX_RECEIVER = (
    "its first loss interval follows from the round trip, which it samples between any two packets whose "
    "CCVal is 4 apart. An Ack has CCVal 0, so the message after one gives 3 to 10 ms instead of 40: the "
    "Ack at 0.0878 s, the message with CCVal 4 at 0.0919 s and 7.4 kB/s of packets of 389 bytes (its "
    "average with the greeting) give p = 0.41, reported as 1/2; 40 ms would give 1/6",
    "as long as there is one loss event only, the packets after it do not lengthen its interval (RFC 5348"
    " section 5.4 lets them): 34 reports of 1/3 in a row were captured, without a loss between them",
    "the second loss event replaces that first interval by the distance between the two (RFC 5348 section"
    " 6.3.1 keeps it): 1/10 became 1/100, and into a deep queue (20 Mb/s offered) 1/2000 became 1/105 "
    "when the same overflow went on for two more round trips. Goodput there: kernel to kernel 7.1, ours "
    "to kernel 5.4 to 5.8, kernel to ours 8.4 Mb/s",
)
"""What Linux's CCID 3 receiver does to the first loss intervals of any sender, with packets that show it."""

_KNOWN = {
    (pair, 3, loss_percent): _EARLY_LOSS
    for pair in ("ours to kernel", "kernel to ours")
    for loss_percent in (1, 5)
}
"""(pair, CCID, loss percent) to the reason."""


def explanation(pair: str, ccid: int, loss_percent: int) -> str:
    """The reason, empty when none is known."""
    return _KNOWN.get((pair, ccid, loss_percent), "")

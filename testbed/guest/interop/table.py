# SPDX-License-Identifier: Apache-2.0
"""The matrix as a page for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cells import (
    DELAY_MS,
    FROM_KERNEL,
    KERNEL,
    MESSAGE_BYTES,
    OFFERED,
    QUEUE_PACKETS,
    RANDOM_LOSS_PERCENT,
    RATE_MBIT,
    SECONDS,
    TO_KERNEL,
)
from explanations import LINUX_RECEIVER, explanation
from guest_run import Flow
from judge import LEAST_RATIO, MOST_RATIO, Comparison

_OURS = (TO_KERNEL.name, FROM_KERNEL.name)


def document(
    flows: Sequence[Flow], comparisons: Sequence[Comparison], about: dict[str, str]
) -> dict[str, Any]:
    """Everything as one JSON document."""
    return {
        "about": about,
        "path": {
            "rate_mbps": RATE_MBIT,
            "one_way_delay_ms": DELAY_MS,
            "queue_packets": QUEUE_PACKETS,
            "duration_s": SECONDS,
            "message_bytes": MESSAGE_BYTES,
        },
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "flows": [
            {
                **asdict(flow.cell),
                "goodput_mbps": flow.goodput_mbps,
                "packets": flow.seen.packets,
                "bad_checksums": flow.seen.bad_checksums,
                "resets": flow.seen.resets,
                "wrong": flow.wrong,
            }
            for flow in flows
        ],
    }


def verdict(flows: Sequence[Flow], comparisons: Sequence[Comparison]) -> list[str]:
    """What is not as it must be, in words; empty when all is well."""
    found = [f"{flow.cell.name}: {'; '.join(flow.wrong)}" for flow in flows if flow.wrong]
    for comparison in comparisons:
        where = f"CCID {comparison.ccid}, IPv{comparison.ip_version}, {comparison.loss_percent} % loss"
        for pair in comparison.low():
            found.append(
                f"{pair}, {where}: {_ratio(comparison, pair)} of kernel to kernel, least {LEAST_RATIO}"
            )
        for pair in comparison.high():
            if not explanation(pair, comparison.ccid, comparison.loss_percent):
                found.append(
                    f"{pair}, {where}: {_ratio(comparison, pair)} of kernel to kernel, "
                    f"above {MOST_RATIO} and not explained in explanations.py"
                )
    return found


def page(flows: Sequence[Flow], comparisons: Sequence[Comparison], about: dict[str, str]) -> str:
    """docs/interoperability.md."""
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0; written by testbed/guest/interop, do not edit -->",
        "# DCCP: our stack and Linux's on one path",
        "",
        f"{about['date']}, commit {about['commit']}, {about['host']}; guest kernel {about['kernel']} in QEMU "
        "whose clock counts instructions, so that the speed of the host does not matter.",
        "",
        f"Raw IP protocol 33 over {RATE_MBIT} Mb/s and {DELAY_MS} ms each way (netem on a veth pair, queue "
        f"{QUEUE_PACKETS} packets; every 100th or 20th packet of both directions lost), "
        f"{MESSAGE_BYTES}-byte messages offered at {OFFERED}b/s for {SECONDS} s. Median goodput in "
        "Mb/s (number of flows), in brackets its ratio to kernel to kernel.",
        "",
        f"| IP | CCID | loss | {KERNEL.name} | {TO_KERNEL.name} | {FROM_KERNEL.name} |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for comparison in comparisons:
        cells = [f"IPv{comparison.ip_version}", str(comparison.ccid), f"{comparison.loss_percent} %"]
        cells += [_cell(comparison, pair) for pair in (KERNEL.name, *_OURS)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *_remarks(flows, comparisons)]
    return "\n".join(lines) + "\n"


def _remarks(flows: Sequence[Flow], comparisons: Sequence[Comparison]) -> list[str]:
    packets = sum(flow.seen.packets for flow in flows)
    bad = sum(flow.seen.bad_checksums for flow in flows)
    lines = [
        f"{len(flows)} flows (some with {RANDOM_LOSS_PERCENT} % random loss, not compared), {packets} DCCP "
        f"packets captured, {bad} bad checksums; netjoule-traffic dissect, tshark and tcpdump -vv read "
        "every capture (those over UDP, RFC 6773, after conversion to "
        "protocol 33). Every flow must end with Close and Reset 'Closed' and hold no other Reset, but the "
        "'No Connection' that a repeated Close gets when 'Closed' was lost.",
    ]
    reasons = _reasons(comparisons)
    if reasons:
        lines += ["", f"Above {MOST_RATIO}:", "", *reasons]
    if any(comparison.ccid == 3 for comparison in comparisons):
        lines += ["", "Linux's CCID 3 receiver, as captured:", "", *(f"- {line}" for line in LINUX_RECEIVER)]
    wrong = verdict(flows, comparisons)
    if wrong:
        lines += ["", "Not as it must be:", "", *(f"- {sentence}" for sentence in wrong)]
    return lines


def _reasons(comparisons: Sequence[Comparison]) -> list[str]:
    """One line per cause, with all the cells that it explains."""
    cells: dict[str, list[str]] = {}
    for comparison in comparisons:
        for pair in comparison.high():
            cause = explanation(pair, comparison.ccid, comparison.loss_percent) or "not explained yet"
            where = f"IPv{comparison.ip_version}, CCID {comparison.ccid}, {comparison.loss_percent} % loss"
            cells.setdefault(cause, []).append(f"{pair}, {where} ({_ratio(comparison, pair)})")
    return [f"- {'; '.join(where)}: {cause}" for cause, where in cells.items()]


def _cell(comparison: Comparison, pair: str) -> str:
    median = comparison.medians_mbps.get(pair)
    if median is None:
        return "none"
    words = f"{median:.2f} ({comparison.counts[pair]})"
    return words if pair == KERNEL.name else f"{words} [{_ratio(comparison, pair)}]"


def _ratio(comparison: Comparison, pair: str) -> str:
    ratio = comparison.ratios.get(pair)
    return "no ratio" if ratio is None else f"{ratio:.2f}"

# SPDX-License-Identifier: Apache-2.0
"""The greatest rate of 64-byte datagrams that arrives with next to no loss: all offloads, half of them, none.

Saturation alone would praise a sender that drowns its receiver. So every generator is asked for less, step by
step, until its loss is below the limit, and what it delivers then counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.flow import Flow, Outcome, Run, figures, middle
from netjoule_bench.repeats import interleaved, ratio, shown
from netjoule_bench.sandbox.veth import software_segmentation
from netjoule_bench.tables import Section, at_least, by_arm

PAYLOAD_BYTES = 64
GREATEST_LOSS = 0.002
PROBES = 7
NARROW = 0.03  # a search ends when it knows the rate to this share
_OURS = {
    # arm: least ratio to iperf3
    "netjoule-traffic, GSO and GRO": 8.0,
    "netjoule-traffic, GSO cut in software": 2.0,
    "netjoule-traffic, no offloads": 0.95,
}

Probe = Callable[[float | None], Outcome]
"""One flow at so many messages per second; None: as fast as it goes."""


def greatest(probe: Probe, probes: int = PROBES) -> Outcome | None:
    """The flow with the greatest delivered rate whose loss is below the limit; None when there was none.

    First as fast as it goes; then just below what arrived, as a receiver at its limit takes that much; then
    halfway between the greatest good rate and the least bad one.
    """
    first = probe(None)
    if first.loss < GREATEST_LOSS:
        return first
    best: Outcome | None = None
    good_pps, bad_pps = 0.0, first.sent_pps
    offered_pps = min(0.97 * first.received_pps, 0.97 * bad_pps)
    for _ in range(probes - 1):
        outcome = probe(offered_pps)
        if outcome.loss < GREATEST_LOSS:
            good_pps = offered_pps
            if best is None or outcome.received_pps > best.received_pps:
                best = outcome
        else:
            bad_pps = offered_pps
        if best is not None and bad_pps - good_pps < NARROW * bad_pps:
            break
        offered_pps = (good_pps + bad_pps) / 2 if best is not None else 0.8 * bad_pps
    return best


def section(contest: Contest, seconds: float) -> Section:
    """One row per generator and kind of offload; ``seconds`` is the length of a probe."""
    flow = Flow(PAYLOAD_BYTES, None, seconds)
    plain, halved, whole = list(_OURS)[::-1]

    def search(run: Run) -> Callable[[], Outcome | None]:
        return lambda: greatest(lambda pps: run(flow if pps is None else flow.at(pps)))

    def in_software() -> Outcome | None:
        with software_segmentation():
            return search(lambda asked: contest.ours.run(asked, "--gso"))()

    arms: dict[str, Callable[[], Outcome | None]] = {
        whole: search(lambda asked: contest.ours.run(asked, "--gso")),
        halved: in_software,
        plain: search(contest.ours.run),
    }
    arms |= {name: search(run) for name, run in contest.runs(PAYLOAD_BYTES, room=True).items()}
    return judged(interleaved(arms, contest.repeats), contest.reference).with_absent(contest.absent)


def judged(taken: Mapping[str, Sequence[Outcome | None]], reference: str) -> Section:
    """The section from the outcomes of all rounds; pure."""

    def against(outcomes: Sequence[Outcome | None]) -> float | None:
        own, theirs = (figures(rounds, lambda o: o.received_pps) for rounds in (outcomes, taken[reference]))
        return ratio(own, theirs)

    return by_arm(
        "Greatest rate with loss below 0.2 %, UDP 64 B, one sender thread",
        taken,
        {
            "received pps": middle(lambda o: o.received_pps, ",.0f"),
            "loss %": middle(lambda o: 100 * o.loss, ".3f"),
            "against iperf3": lambda outcomes: shown(against(outcomes)),
            "sender us/message": middle(lambda o: o.sender_us, ".3f"),
            "receiver us/message": middle(lambda o: o.receiver_us, ".3f"),
        },
        note="Every message of netjoule-traffic carries its own sequence number and time and is counted, "
        "also inside a train. Where GSO is cut in software the sender's device has tx-udp-segmentation off. "
        "Both have the greatest receive buffer that the host grants without privileges (net.core.rmem_max; "
        "iperf3 by -w).",
        verdicts=[
            at_least(f"greatest pps against iperf3, {name}", against(taken[name]), limit)
            for name, limit in _OURS.items()
        ],
    )

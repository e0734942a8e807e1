# SPDX-License-Identifier: Apache-2.0
"""What is true in a synthetic campaign: its cells, the power of each, and what blurs them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netjoule.workload.workload import Timing

NULL = "null"
FRAMES_SHARE = 0.7
"""Of the power above idle, what the device model's term of frames makes; air time makes the rest."""
TICKS_PER_S = 10
"""Every edge of a window lies on this grid, so that the mean of a window is the mean of whole readings."""

Share = Callable[[str, int, float], float]
"""A ratio by transport, payload in bytes and offered load in Mb/s."""


def _none(_transport: str, _payload_bytes: int, _rate_mbps: float) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class LinearPower:
    """Power above idle in W: the generator's floor, plus a factor times (a x Mb/s + b x messages/s).

    ``null`` takes the floor alone. What it is called with: transport, payload in bytes, offered load in Mb/s.
    """

    floor_w: float = 0.05
    w_per_mbps: float = 0.02
    mj_per_message: float = 0.05
    factors: Mapping[str, float] = field(
        default_factory=lambda: {"udp": 1.0, "dccp": 0.9, "tcp": 0.8, "quic": 1.5}
    )

    def __call__(self, transport: str, payload_bytes: int, rate_mbps: float) -> float:
        """Return the power in W."""
        if transport == NULL:
            return self.floor_w
        per_message = 1e-3 * self.mj_per_message * rate_mbps * 1e6 / (8 * payload_bytes)
        return self.floor_w + self.factors.get(transport, 1.0) * (self.w_per_mbps * rate_mbps + per_message)


@dataclass(frozen=True, slots=True)
class Meter:
    """One meter and what it meters.

    Attributes:
        meter_id: its name.
        node: host whose power it reads; an emulated meter reads the client.
        idle_w: power without packets at the campaign's start, W.
        power: above idle in W, by transport, payload in bytes and offered load in Mb/s.
        update_interval_s: each reading is the mean of so many seconds: 0.1, 0.2, 0.5 or 1.
        lag_s: how long after the end of its interval a reading is logged; six decimals, as logs have.
        u_delta_p_w: standard uncertainty of P_A - P_I that results state, W.
    """

    meter_id: str = "client-supply"
    node: str = "client"
    idle_w: float = 8.0
    power: Share = field(default_factory=LinearPower)
    update_interval_s: float = 0.1
    lag_s: float = 0.137412
    u_delta_p_w: float = 0.001


@dataclass(frozen=True, slots=True)
class Design:
    """A campaign and its truth.

    Attributes:
        transports: with or without ``null``; one alone is a campaign too, but null.
        timing: parts of a run; each a multiple of 0.1 s and of every meter's update interval.
        loss: share of sent messages that do not arrive, below 1.
        held_back: share of scheduled messages that congestion control does not let leave, below 1.
        block_sd_ratio: standard deviation of what all power above idle of a block is off by, as a ratio;
            it is common to the runs of a block and so cancels in ratios inside a mini-block.
        mini_block_sd_ratio: the same of a mini-block.
        run_sd_ratio: the same of a run by itself.
        reading_sd_w: of each reading, W.
        idle_drift_w_per_h: slope of the idle power, W/h; a straight line, so that P_I stays exact.
        tail_ratio: power above idle in the tail over that while sending.
        invalid_share: share of mini-blocks whose first attempt has an invalid run (and is repeated).
        invalid_error_w: what an invalid run's power is off by, so that one that counts would show, W.
        radio_every_s: a reading of the radio every so many seconds.
        device_stream: write devices/<meter_id>.ndjson too, a line per reading, and record a device model
            whose parameters have a stated uncertainty.
        seed: of every random choice.
    """

    transports: tuple[str, ...] = ("udp", "tcp", "null")
    payload_bytes: tuple[int, ...] = (64, 1440)
    offered_rate_mbps: tuple[float, ...] = (1.0, 10.0)
    blocks: int = 2
    timing: Timing = field(default_factory=lambda: Timing(2.0, 0.5, 0.6, 2.0, 0.5))
    meters: tuple[Meter, ...] = field(default_factory=lambda: (Meter(),))
    loss: Share = _none
    held_back: Share = _none
    block_sd_ratio: float = 0.0
    mini_block_sd_ratio: float = 0.0
    run_sd_ratio: float = 0.0
    reading_sd_w: float = 0.0
    idle_drift_w_per_h: float = 0.0
    tail_ratio: float = 0.0
    invalid_share: float = 0.0
    invalid_error_w: float = 1.0
    radio_every_s: float = 1.0
    device_stream: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what has no closed form.

        Raises:
            ValueError: naming the part and the rule.
        """
        for meter in self.meters:
            update = ticks(meter.update_interval_s, f"update interval of {meter.meter_id}")
            if update == 0 or TICKS_PER_S % update:
                raise ValueError(f"the update interval of {meter.meter_id} must divide a second")
            for name in ("idle_s", "settle_s", "warm_up_s", "measure_s", "tail_s"):
                length_s = getattr(self.timing, name)
                if length_s <= 0:
                    raise ValueError(f"timing.{name} is {length_s:g} s: every part of a run takes time here")
                if ticks(length_s, f"timing.{name}") % update:
                    raise ValueError(
                        f"timing.{name} of {length_s:g} s is no multiple of the update interval of "
                        f"{meter.meter_id}, {meter.update_interval_s:g} s"
                    )
        for cell in self.flows():
            for name, share in (("loss", self.loss), ("held_back", self.held_back)):
                if not 0 <= (given := share(*cell)) < 1:
                    raise ValueError(f"{name} of {cell} is {given:g}; a share from 0 to below 1 is asked")

    def flows(self) -> list[tuple[str, int, float]]:
        """Every transport (but null), payload and offered load."""
        return [
            (transport, payload, rate)
            for transport in self.transports
            if transport != NULL
            for payload in self.payload_bytes
            for rate in self.offered_rate_mbps
        ]

    @property
    def runs(self) -> int:
        """Runs of all first attempts."""
        return len(self.transports) * len(self.payload_bytes) * len(self.offered_rate_mbps) * self.blocks


def ticks(length_s: float, what: str) -> int:
    """Return a length as a count of 0.1 s.

    Raises:
        ValueError: when it is no multiple of 0.1 s.
    """
    count = round(length_s * TICKS_PER_S)
    if abs(length_s * TICKS_PER_S - count) > 1e-6:
        raise ValueError(f"{what} is {length_s:g} s, no multiple of {1 / TICKS_PER_S:g} s")
    return count


def tiny(**changes: Any) -> Design:
    """12 runs: three transports (null among them), two sizes, one load, two blocks."""
    design: dict[str, Any] = {"offered_rate_mbps": (10.0,)}
    return Design(**(design | changes))


def table_i(**changes: Any) -> Design:
    """The whole table-i shape: 9,600 runs in 500 h, two meters at 10 Hz, four transports and null.

    The guard between runs is longer than the workload's 2 s, which makes it 500 h.
    """
    design: dict[str, Any] = {
        "transports": ("udp", "dccp", "tcp", "quic", NULL),
        "payload_bytes": (64, 1440),
        "offered_rate_mbps": (
            *(0.031, 0.049, 0.25, 0.5),
            *(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
            *(12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0),
        ),
        "blocks": 40,
        "timing": Timing(idle_s=30.0, settle_s=22.5, warm_up_s=10.0, measure_s=120.0, tail_s=5.0),
        "meters": (
            Meter("client-supply"),
            Meter("client-card", idle_w=1.3, power=LinearPower(0.01, 0.012, 0.02), lag_s=0.208311),
        ),
        "block_sd_ratio": 0.02,
        "mini_block_sd_ratio": 0.01,
        "run_sd_ratio": 0.01,
        "reading_sd_w": 0.01,
        "idle_drift_w_per_h": 0.0005,
        "invalid_share": 0.01,
        "loss": _saturated,
    }
    return Design(**(design | changes))


def _saturated(transport: str, payload_bytes: int, rate_mbps: float) -> float:
    """64-byte datagrams over 12 Mb/s do not all arrive."""
    if transport not in ("udp", "dccp") or payload_bytes > 64:
        return 0.0
    return max(0.0, 1 - 12.0 / rate_mbps)

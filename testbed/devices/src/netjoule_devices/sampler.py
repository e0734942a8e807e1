# SPDX-License-Identifier: Apache-2.0
"""Joins link intervals and CPU time into contiguous samples; knows no sockets and reads no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from netjoule_devices.errors import LinkLost
from netjoule_devices.link_stats import StationInterval
from netjoule_devices.model import DeviceModel
from netjoule_devices.power import Activity, is_extrapolated, terms_w
from netjoule_devices.traffic import Traffic

CpuAdvance = Callable[[], float]
"""Returns the CPU seconds used since the call before."""
TrafficAdvance = Callable[[int], Traffic]
"""Returns what came since the call before."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Mean power in W over a stretch of campaign time in seconds (device_stream.schema.json)."""

    t_start_s: float
    t_end_s: float
    power_w: float
    extrapolated: bool
    terms: dict[str, float]

    def to_line(self) -> str:
        """Return the sample as one line of NDJSON."""
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"


class Sampler:
    """Turns activity into samples of one device.

    CPU time and bytes are known at the moments of the calls only; between two calls they are taken as even,
    so each stretch gets of them in proportion to its length. A call comes when it can, not at the end of its
    stretch: what a late one read beyond it is the next stretch's, so that a burst read in a short time is not
    taken for the rate of a whole stretch. What was used before `now_ns` does not count.
    Connections are those that move bytes at the moment of the call.
    """

    def __init__(
        self,
        model: DeviceModel,
        origin_ns: int,
        cpu: CpuAdvance | None,
        now_ns: int,
        traffic: TrafficAdvance | None = None,
    ) -> None:
        self._model = model
        self._origin_ns = origin_ns
        self._cpu = cpu
        self._traffic = traffic
        self._read_ns = now_ns
        self._unshared = Activity(0.0)
        self._end_ns: int | None = None
        if cpu is not None:
            cpu()

    def change(self, model: DeviceModel, traffic: TrafficAdvance | None) -> None:
        """Make the samples from now on of another model; `traffic` as at the start."""
        self._model, self._traffic = model, traffic

    def on_link(self, intervals: Sequence[StationInterval], now_ns: int) -> list[Sample]:
        """Return one sample per link interval.

        Raises:
            LinkLost: when an interval does not start where the one before ended.
        """
        if not intervals:
            return []
        self._read(now_ns)
        samples = [self._link_sample(interval) for interval in intervals]
        self._forget(intervals[-1].activity.length_s)
        return samples

    def on_grid(self, t_start_ns: int, t_end_ns: int, now_ns: int) -> Sample:
        """Return the sample of a stretch without a link."""
        self._read(now_ns)
        activity = self._with_host(Activity((t_end_ns - t_start_ns) * 1e-9))
        self._forget(activity.length_s)
        return self._sample(t_start_ns, t_end_ns, activity)

    def _link_sample(self, interval: StationInterval) -> Sample:
        if self._end_ns is not None and interval.t_start_ns != self._end_ns:
            gap_ms = (interval.t_start_ns - self._end_ns) / 1e6
            raise LinkLost(f"the link's statistics skip {gap_ms:.1f} ms; the power of that time is unknown")
        self._end_ns = interval.t_end_ns
        return self._sample(interval.t_start_ns, interval.t_end_ns, self._with_host(interval.activity))

    def _read(self, now_ns: int) -> None:
        """Add what the host did since the last reading (nothing of what nobody watches)."""
        elapsed_s = max(now_ns - self._read_ns, 1) * 1e-9
        self._read_ns = now_ns
        traffic = Traffic() if self._traffic is None else self._traffic(now_ns)
        self._unshared = Activity(
            self._unshared.length_s + elapsed_s,
            cpu_s=self._unshared.cpu_s + (0.0 if self._cpu is None else self._cpu()),
            received_bytes=self._unshared.received_bytes + traffic.received_bytes,
            connections=traffic.connections,
        )

    def _with_host(self, radio: Activity) -> Activity:
        """The radio's activity with the host's share of what was read."""
        read = self._unshared
        share = min(1.0, radio.length_s / read.length_s) if read.length_s else 0.0
        self._unshared = _part(read, 1.0 - share)
        taken = _part(read, share)
        return replace(
            radio, cpu_s=taken.cpu_s, received_bytes=taken.received_bytes, connections=read.connections
        )

    def _forget(self, length_s: float) -> None:
        """Keep no more than one stretch for the next: what is older would only make samples late."""
        left = self._unshared
        if left.length_s > length_s:
            self._unshared = _part(left, length_s / left.length_s)

    def _sample(self, t_start_ns: int, t_end_ns: int, activity: Activity) -> Sample:
        terms = terms_w(self._model, activity)
        return Sample(
            t_start_s=round((t_start_ns - self._origin_ns) * 1e-9, 6),
            t_end_s=round((t_end_ns - self._origin_ns) * 1e-9, 6),
            power_w=round(sum(terms.values()), 6),
            extrapolated=is_extrapolated(self._model, activity),
            terms={name: round(value, 6) for name, value in terms.items()},
        )


def _part(read: Activity, share: float) -> Activity:
    return replace(
        read,
        length_s=read.length_s * share,
        cpu_s=read.cpu_s * share,
        received_bytes=read.received_bytes * share,
    )

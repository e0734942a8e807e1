# SPDX-License-Identifier: Apache-2.0
"""NetPerfMeter's scalar and vector files as flows.

A measurement leaves NAME-active.sca and NAME-passive.sca and, per flow and end, NAME-active-FLOW-STREAM.vec,
any of them compressed as .bz2. A flow that sends both ways is two. The transport and the rate stand in the
configuration that it writes (-config=FILE), which names the scalar files; without it the user says them. Its
version, the addresses and how long it was told to send stand nowhere. Pure.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from netjoule.core.errors import InvalidData
from netjoule.core.reason import Reason
from netjoule.importing.ditg import unlike_clocks_ns
from netjoule.importing.flows import (
    HOSTS,
    FileRead,
    Found,
    ImportedFlow,
    Options,
    measured_ns,
    rate_of,
    request,
    settle_unknown,
)
from netjoule.importing.sources import Source
from netjoule.loads.flow.abilities import ABILITIES
from netjoule.loads.flow.generators.messages import Clocks
from netjoule.loads.flow.generators.netperfmeter import as_report, read_scalars, read_vector

GENERATOR = "netperfmeter"
SCALARS, VECTORS, CONFIG = "netperfmeter-scalars", "netperfmeter-vectors", "netperfmeter-config"
_TRANSPORT = {"UDP": "udp", "TCP": "tcp", "DCCP": "dccp-kernel"}
_BEGINNINGS = {'scalar "netPerfMeter.': SCALARS, "AbsTime RelTime ": VECTORS, "NUM_FLOWS=": CONFIG}
_FLOW = re.compile(r'"netPerfMeter\.(?:active|passive)\.flow\[(\d+)\]"')
_SETTING = re.compile(
    r"FLOW(\d+)_(PROTOCOL|(?:OUT|IN)BOUND_FRAME_(?:RATE|SIZE))(?:_VALUE1)?=\"?([\w.+-]+)\"?"
)
_NAMED = re.compile(r'SCALAR_(?:ACTIVE|PASSIVE)_NODE="([^"]+)"')
_FILE = re.compile(r"-(?:active|passive)(?:-[0-9a-f]{8}-[0-9a-f]{4})?\.(?:sca|vec)$")
_ENDS = ("active", "passive")
_ABILITY = ABILITIES[GENERATOR]
_FIGURES = [f"{which} {what}" for which in ("First", "Last") for what in ("Transmission", "Reception")]
_FIGURES += [f"{which} {what}" for which in ("Transmitted", "Received") for what in ("Packets", "Bytes")]
_MOST_FIGURE = 2.0**53
_MOST = {"Received Packets": 2e7}  # each is an object in memory
_LONGEST_S = 86_400.0
_TOGETHER = "import NAME-active.sca, NAME-passive.sca and the vectors beside them together"

_Settings = Mapping[tuple[str, str], str]  # by number of the flow and name


def format_of(text: str) -> str | None:
    """Which of its files a text is; None when none."""
    return next((kind for start, kind in _BEGINNINGS.items() if text.startswith(start)), None)


def read(sources: Sequence[Source], options: Options, found: Found) -> None:
    """Find the flows of all measurements among some files.

    Raises InvalidData for a file that the user named and that cannot be used.
    """
    configs = [source for source in sources if format_of(source.text) == CONFIG]
    measurements: dict[tuple[Path, str], dict[str, Source]] = defaultdict(dict)
    for source in sources:
        found.files.append(FileRead(source, str(format_of(source.text)), options.generator_version))
        if source not in configs:
            measurements[source.path.parent, _FILE.sub("", source.name)][source.name] = source
    for (_, stem), files in measurements.items():
        active = files.get(f"{stem}-active.sca")
        for source in files.values() if active is None else [active]:
            with found.reading(source):
                if active is None:
                    what = "the scalars of its measurement's active side are not among the files"
                    raise source.refuse(what, next_step=_TOGETHER)
                config = next((c for c in configs if _names_it(c, active.name)), None)
                found.flows += list(_Measurement(stem, files, config, options).flows(found.refused))


def _names_it(config: Source, scalars: str) -> bool:
    """Whether a configuration is that of a measurement, by the name of a scalar file."""
    return any(Path(name).name.removesuffix(".bz2") == scalars for name in _NAMED.findall(config.text))


class _Measurement:
    """The files of one measurement by name; scalars of its active side are among them."""

    def __init__(
        self, stem: str, files: Mapping[str, Source], config: Source | None, options: Options
    ) -> None:
        self._stem, self._files, self._config, self._options = stem, files, config, options
        self._active = files[f"{stem}-active.sca"]
        self._settings: _Settings = (
            {(flow, name): value for flow, name, value in _SETTING.findall(config.text)} if config else {}
        )

    def flows(self, refused: list[InvalidData]) -> Iterator[ImportedFlow]:
        """Each flow and direction that carried something; those of other transports are `refused`."""
        numbers = sorted(set(map(int, _FLOW.findall(self._active.text))))
        if not numbers:
            raise self._active.refuse("it describes no flow")
        made = []
        for number in numbers:
            for direction, sender in (("up", "active"), ("down", "passive")):
                _, text = self._of_flow(f"{self._stem}-{sender}.sca", number)
                if self._scalars(text, number)["Transmitted Packets"] > 0:
                    made.append((number, direction))
        if not made:
            raise self._active.refuse("none of its flows sent anything")
        held = [(number, way) for number, way in made if self._transport(number) in _ABILITY.transports]
        if held:
            for number in sorted({number for number, _ in made} - {number for number, _ in held}):
                words = f"netjoule holds no results of {GENERATOR} over {self._transport(number)}"
                refused.append(self._active.refuse(words, f"flow {number}"))
        # Where none is held the first of them is refused with what is.
        for number, direction in held or made:
            yield self._flow(number, direction, company=len(made) > 1)

    def _of_flow(self, name: str, number: int) -> tuple[Source, str]:
        """A file with its text, in which the flow has number 0, the only one that its reader knows."""
        source = self._files.get(name)
        if source is None:
            raise self._active.refuse(
                f"its measurement lacks {name}", next_step="import both beside each other"
            )
        text = source.text if number == 0 else source.text.replace("flow[0]", "flow[-]")
        return source, text.replace(f"flow[{number}]", "flow[0]")

    def _flow(self, number: int, direction: str, *, company: bool) -> ImportedFlow:
        sender, receiver = _ENDS if direction == "up" else _ENDS[::-1]
        named = {f"{end}.sca": f"{self._stem}-{end}.sca" for end in _ENDS}
        named[f"{receiver}.vec"] = f"{self._stem}-{receiver}-{number:08x}-0000.vec"
        found = {key: self._of_flow(name, number) for key, name in named.items()}
        texts = {key: text for key, (_, text) in found.items()}
        sources = tuple(source for source, _ in found.values())
        sent = self._scalars(texts[f"{sender}.sca"], number)
        first_us, last_us = sent["First Transmission"], sent["Last Transmission"]
        packets, size_bytes = round(sent["Transmitted Packets"]), sent["Transmitted Bytes"]
        zero_ns = round(first_us) * 1000
        if packets < 2 or last_us <= first_us:
            raise self._active.refuse(f"its flow {number} has a single moment, so no rate")
        # Not the whole seconds it may have been told: it sends on for up to another one.
        duration_s = (last_us - first_us) * 1e-6 * packets / (packets - 1)
        rate = rate_of(self._asked_mbps(number, direction), 8e-6 * size_bytes / duration_s, self._options)
        spec = request(
            self._active,
            GENERATOR,
            transport=self._transport(number),
            payload_bytes=round(size_bytes / packets),
            offered_rate_mbps=rate.mbps,
            duration_s=duration_s,
            direction=direction,
            ip_version=self._options.ip_version or 4,
        )
        arrivals = _lines(*found[f"{receiver}.vec"])
        got = self._scalars(texts[f"{receiver}.sca"], number)
        shift_ns = self._shift_ns(arrivals, got, first_us, last_us)
        report = as_report(
            spec,
            texts,
            Clocks(-zero_ns, 0),
            hosts=HOSTS,
            boot_id="unknown",
            receiver_offset_ns=-shift_ns,
            duration_s=duration_s,
        )
        report = self._settled(settle_unknown(report, rate), shift_ns)
        notes = [rate.note, Reason("flows_at_once", "other flows of its measurement") if company else None]
        if size_bytes % packets:
            notes.append(Reason("message_sizes_vary", f"taken as {spec.payload_bytes} bytes, their mean"))
        return ImportedFlow(
            GENERATOR,
            self._options.generator_version,
            zero_ns * 1e-9,
            report,
            measured_ns(report, round(duration_s * 1e9)),
            tuple(filter(None, notes)),
            (*sources, self._config) if self._config is not None else sources,
        )

    def _shift_ns(
        self,
        arrivals: tuple[list[float], list[float]],
        got: Mapping[str, float],
        first_us: float,
        last_us: float,
    ) -> int:
        """How far the receiver's clock is taken to be off the sender's; 0 where both may be one.

        Args:
            arrivals: when messages arrived, us, and their delays, ms.
            got: figures of the receiver.
            first_us: when the first message left, us; `last_us` the last.

        Raises InvalidData for times that cannot be of one measurement.
        """
        came_us, delays_ms = arrivals
        shift_ns = unlike_clocks_ns(round(min(delays_ms) * 1e6)) if delays_ms else 0
        self._require_a_day((last_us - first_us) * 1e-6)
        # Where nothing arrived its times of arrival are 0.
        ends_us = (got["First Reception"], got["Last Reception"]) if got["Received Packets"] else ()
        for moment_us in (*ends_us, *came_us):
            self._require_a_day((moment_us - first_us) * 1e-6 - shift_ns * 1e-9)
        return shift_ns

    def _settled(self, report: dict[str, Any], shift_ns: int) -> dict[str, Any]:
        """A report without what these files do not tell."""
        if self._options.ip_version is None:
            # No file has an address, so the size of the IP header is anybody's guess.
            report |= {"mean_ip_packet_bytes": None, "packetisation_source": "unknown"}
        report["generator"]["version"] = self._options.generator_version or "unknown"
        if shift_ns:
            report["receiver"]["one_way_delay_ms"] = None
        return report

    def _scalars(self, text: str, number: int) -> dict[str, float]:
        """The figures that a flow is made of. Raises InvalidData when one is missing or none."""
        try:
            found = {name: float(value) for name, value in read_scalars(text).items()}
        except ValueError as error:
            raise self._active.refuse(f"a figure of flow {number} is no number: {error}") from error
        for name in _FIGURES:
            if name not in found:
                raise self._active.refuse(f"flow {number} lacks '{name}'")
            if not 0 <= found[name] <= _MOST.get(name, _MOST_FIGURE):
                raise self._active.refuse(f"'{name}' of flow {number} is {found[name]:g}, out of bounds")
        return found

    def _require_a_day(self, seconds: float) -> None:
        """Refuse times that lie apart as no measurement's do."""
        if not abs(seconds) <= _LONGEST_S:
            raise self._active.refuse(f"it has times {seconds:.0f} s apart")

    def _transport(self, number: int) -> str:
        told = self._settings.get((str(number), "PROTOCOL"))
        if told is not None:
            return _TRANSPORT.get(told, told.lower())
        if self._options.transport is None:
            raise self._active.refuse(
                "neither it nor a configuration beside it names the transport",
                next_step="import the file of -config= too, or name it: --transport udp, tcp or dccp-kernel",
            )
        return self._options.transport

    def _asked_mbps(self, number: int, direction: str) -> float | None:
        """Frames a second times their size, as configured; None for a saturated flow."""
        way = "OUTBOUND" if direction == "up" else "INBOUND"
        told = (self._settings.get((str(number), f"{way}_FRAME_{what}"), "0") for what in ("RATE", "SIZE"))
        try:
            frames_per_s, size_bytes = (float(value) for value in told)
        except ValueError:
            return None
        return frames_per_s * size_bytes * 8e-6


def _lines(source: Source, text: str) -> tuple[list[float], list[float]]:
    """When messages arrived, wall microseconds, and their delays in ms, as a vector file has them."""
    try:
        rows = list(read_vector(text))
    except (IndexError, ValueError) as error:
        raise source.refuse(f"a line of it is broken: {error}") from error
    if any(not math.isfinite(delay_ms + jitter_ms) for *_, delay_ms, jitter_ms in rows):
        raise source.refuse("a delay or jitter is no number")
    if any(not 0 < packets <= _MOST["Received Packets"] for _, _, packets, _, _ in rows):
        raise source.refuse("its count of packets is out of bounds")
    return [row[0] * 1e-3 for row in rows], [row[3] for row in rows]

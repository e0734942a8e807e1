# SPDX-License-Identifier: Apache-2.0
"""Carries every radio reader's records to radio/<node>.csv while a session lasts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, Self

from netjoule.core.errors import NetjouleError
from netjoule.design.timeline import Span
from netjoule.radio import RadioReader, RadioRecord, state_energy
from netjoule.radio.rates import RateLimits
from netjoule.radio.reader_cost import Look, ReaderCost, cores
from netjoule.radio.state_energy import StateStep

IDLE = "idle"
BATCH_RECORDS = 10  # one write a second at ten records a second: less work while a meter reads
REOPEN_PAUSE_S = 1.0
FAULTS_KEPT = 1000
LOOKS_KEPT = 20_000
"""Per node: hours of one look a second, more than any run with its idle windows lasts."""
STEPS_KEPT = 100_000
"""Per node: hours at ten a second."""
_AWAY = {
    "disassociated": "{node} is not associated",
    "interface_gone": "{node} has lost its radio interface",
}
_PASSING = {
    "roamed": ("radio_roamed", "{node} went to another access point"),
    "counter_reset": ("radio_disassociated", "{node} was associated anew"),
}


@dataclass(frozen=True, slots=True)
class RadioFault:
    """Something that a radio's record says, by a code of reasons.json."""

    t_s: float
    code: str
    detail: str


class RadioSink(Protocol):
    """Where records go."""

    def append_radio(self, node: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to radio/<node>.csv."""


class RadioLog:
    """Context manager: one task per reader; a reader that ends is opened again and the loss is noted."""

    def __init__(
        self,
        sink: RadioSink,
        readers: Sequence[RadioReader],
        clients: Collection[str] = (),
        limits: RateLimits | None = None,
    ) -> None:
        """Log `readers` to `sink`; watch the association of nodes `clients`, and all rates by `limits`."""
        self._sink = sink
        self._readers = readers
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: list[str] = []
        self._clients = frozenset(clients)
        self._faults: deque[RadioFault] = deque(maxlen=FAULTS_KEPT)
        self._looks: dict[str, deque[Look]] = {}
        self._steps: dict[str, deque[StateStep]] = {}
        self._limits = limits or RateLimits()
        self._strays: deque[RadioFault] = deque(maxlen=LOOKS_KEPT)
        self._away: set[str] = set()
        self._states: dict[str, tuple[float, str]] = {}
        self._all_associated = asyncio.Event()
        self._all_associated.set()

    async def __aenter__(self) -> Self:
        """Open every reader. Raises RunFailed when one does not answer."""
        for reader in self._readers:
            await reader.open()
        self._tasks = [asyncio.create_task(self._follow(reader)) for reader in self._readers]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop reading and write what is still in hand."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for reader in self._readers:
            await reader.close()

    def take_losses(self) -> list[str]:
        """What was lost since the last call, one sentence each."""
        lost, self._lost = self._lost, []
        return lost

    def faults(self, t_start_s: float, t_end_s: float) -> list[RadioFault]:
        """What happened to the clients' associations in a time of the campaign, seconds."""
        return [fault for fault in self._faults if t_start_s <= fault.t_s <= t_end_s]

    def stray_rates(self, t_start_s: float, t_end_s: float) -> list[RadioFault]:
        """Looks in a time of the campaign, seconds, at rates that the topology does not allow."""
        return [stray for stray in self._strays if t_start_s <= stray.t_s <= t_end_s]

    def reader_costs(self, idle: Sequence[Span], measure: Span) -> list[ReaderCost]:
        """What each reader that tells its CPU took of it in these windows."""
        found = []
        for node, looks in self._looks.items():
            in_idle, in_measure = cores(looks, idle), cores(looks, [measure])
            if in_idle is not None and in_measure is not None:
                found.append(ReaderCost(node, in_idle, in_measure))
        return found

    def state_energies(self, spans: Mapping[str, Span | None]) -> list[dict[str, Any]]:
        """What each radio with modelled states spent in these windows: `radio_states` of run.json."""
        found = (state_energy.entry(node, steps, spans) for node, steps in self._steps.items())
        return [entry for entry in found if entry is not None]

    def idle_since(self, t_s: float) -> bool | None:
        """Whether all radios that tell their states were idle at a look after `t_s`; None when none tells."""
        looks = self._states.values()
        return all(at_s >= t_s and state == IDLE for at_s, state in looks) if looks else None

    async def wait_associated(self, timeout_s: float) -> None:
        """Return when all clients are associated, as far as their readers tell.

        Raises TimeoutError, and what ended the log of a radio: a full disk, for instance.
        """
        back = asyncio.ensure_future(self._all_associated.wait())
        try:
            either: list[asyncio.Future[Any]] = [back, *self._tasks]
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.cancel()
        for task in self._tasks:
            if task.done():
                task.result()
        if self._away:
            raise TimeoutError

    def away(self) -> list[str]:
        """Clients that are not associated, as far as their readers tell."""
        return sorted(self._away)

    def _watch(self, node: str, record: RadioRecord) -> None:
        """Note what a record of a client says about its association."""
        flags = record.flag.split(";")
        away = [words for flag, words in _AWAY.items() if flag in flags]
        (self._away.add if away else self._away.discard)(node)
        (self._all_associated.clear if self._away else self._all_associated.set)()
        faults = [("radio_disassociated", words) for words in away]
        faults += [fault for flag, fault in _PASSING.items() if flag in flags]
        self._faults.extend(RadioFault(record.t_s, code, words.format(node=node)) for code, words in faults)

    def _is_new_state(self, node: str, record: RadioRecord) -> bool:
        if record.state is None:
            return False
        before, self._states[node] = self._states.get(node), (record.t_s, record.state)
        return before is None or before[1] != record.state

    async def _follow(self, reader: RadioReader) -> None:
        rows: list[dict[str, Any]] = []
        try:
            while True:
                try:
                    record = await reader.read()
                except (OSError, ValueError) as error:
                    record = None
                    self._lost.append(f"radio of {reader.node}: {error}")
                if record is None:
                    await self._again(reader)
                    continue
                if reader.node in self._clients:
                    self._watch(reader.node, record)
                if words := self._limits.outside(record):
                    stray = RadioFault(record.t_s, "radio_outside_rates", f"{reader.node} {words}")
                    self._strays.append(stray)
                if record.reader_cpu_s is not None:
                    looks = self._looks.setdefault(reader.node, deque(maxlen=LOOKS_KEPT))
                    looks.append((record.t_s, record.reader_cpu_s))
                if record.step is not None:
                    self._steps.setdefault(reader.node, deque(maxlen=STEPS_KEPT)).append(record.step)
                rows.append(record.as_row())
                # A new state is written at once: the tail of a run that waits for its result ends there.
                if self._is_new_state(reader.node, record) or len(rows) >= BATCH_RECORDS:
                    self._sink.append_radio(reader.node, rows)
                    rows = []
        finally:
            if rows:
                self._sink.append_radio(reader.node, rows)

    async def _again(self, reader: RadioReader) -> None:
        self._lost.append(f"radio of {reader.node}: its reader ended")
        await reader.close()
        while True:
            await asyncio.sleep(REOPEN_PAUSE_S)
            with suppress(NetjouleError):  # it may pass, whatever it is: a host is being set up
                return await reader.open()

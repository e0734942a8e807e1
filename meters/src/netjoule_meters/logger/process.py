# SPDX-License-Identifier: Apache-2.0
"""The logger: all meters of a campaign at once, one thread each, and one thread that writes.

A meter's thread only reads the meter, looks at what came (`watch`) and puts readings into a queue; a slow
disk therefore delays the writer and nothing else. Announcements have a thread too: a reader that does not
take them holds nobody up. On a host other than the controller, stamps are mapped to the controller's clock
before anything else sees them (`clock_follower`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from netjoule_meters.adapters.base import Meter
from netjoule_meters.clock import Clock, campaign_time_s
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import Cancelled, MeterError
from netjoule_meters.logger.clock_follower import ClockFollower
from netjoule_meters.logger.quality_monitor import QualityEvent, QualityMonitor
from netjoule_meters.logger.readings_file import ReadingsFile
from netjoule_meters.meter_factory import build_meter
from netjoule_meters.reading import Reading

_BACKLOG_ROWS = 500
"""So many rows not yet written are told, and each time they have doubled."""

Emit = Callable[[Mapping[str, Any]], None]
Build = Callable[[MeterConfig, Clock, Callable[[str], None]], Meter]


def _build(config: MeterConfig, clock: Clock, notify: Callable[[str], None]) -> Meter:
    return build_meter(config, clock=clock, notify=notify)


@dataclass
class Logger:
    """Reads ``configs`` into ``out/meters`` until ``end`` is called or writing fails.

    Attributes:
        origin_ns: CLOCK_MONOTONIC at campaign time 0, of the controller when there is a ``clock_server``.
        emit: takes one event, a JSON object; must not block for long.
        build: makes the meter of a configuration.
        clock_server: HOST, PORT of the controller's ``clock serve`` when this is another host.
    """

    configs: Sequence[MeterConfig]
    out: Path
    origin_ns: int
    clock: Clock
    today: date
    emit: Emit
    build: Build = _build
    clock_server: tuple[str, int] | None = None
    _follower: ClockFollower | None = None
    _watchers: list[QualityMonitor] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _meters: list[Meter] = field(default_factory=list)
    _queue: SimpleQueue[tuple[int, Reading] | None] = field(default_factory=SimpleQueue)
    _failure: Exception | None = None
    _told_backlog: int = _BACKLOG_ROWS // 2
    _telling_backlog: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Ask for the end, from any thread; waits on instruments are called off."""
        self._stop.set()
        for meter in self._meters:
            meter.cancel()

    def run(self) -> None:
        """Open all meters, say that they are ready, log until the end.

        Raises:
            MeterError: the first failure, in one sentence.
        """
        files = self._open_files()
        try:
            self._follow_clock()
            for file in files:
                file.require_later(self._controller_ns(self.clock.monotonic_ns()))
            self._meters = [self.build(config, self.clock, self._notifier(config)) for config in self.configs]
            if not self._stop.is_set():
                self._open_meters()
            if not self._stop.is_set():
                self.emit({"event": "ready", "passports": self._passports()})
                self._log(files)
        finally:
            for meter in self._meters:
                meter.close()
            for file in files:
                file.close()
        if self._failure is not None:
            raise self._failure
        rows = {config.meter_id: file.next_seq for config, file in zip(self.configs, files, strict=True)}
        seen = zip(self.configs, self._watchers, strict=False)  # none when it was ended before it began
        summary = {config.meter_id: watcher.summary() for config, watcher in seen}
        self.emit({"event": "ended", "rows": rows, "summary": summary})

    def _follow_clock(self) -> None:
        """Measure how far the controller's clock is; from now on stamps are by its clock."""
        if self.clock_server is not None:
            self._follower = ClockFollower(
                self.clock_server, clock=self.clock, origin_ns=self.origin_ns, emit=self.emit
            )

    def _open_files(self) -> list[ReadingsFile]:
        files: list[ReadingsFile] = []
        try:
            for config in self.configs:
                file = ReadingsFile(self.out / "meters" / f"{config.meter_id}.csv", self.origin_ns)
                files.append(file)
                if file.cut_off_bytes:
                    self._notifier(config)(
                        f"took a cut-off row of {file.cut_off_bytes} bytes off {file.path.name}"
                    )
        except MeterError:
            for file in files:
                file.close()
            raise
        return files

    def _open_meters(self) -> None:
        """Open all at once, so that the slowest alone decides how long it takes."""

        def open_one(meter: Meter) -> None:
            try:
                meter.open()
            except Cancelled:
                return
            except Exception as error:
                self._fail(error)

        self._in_threads([(open_one, (meter,)) for meter in self._meters])
        if self._failure is not None:
            raise self._failure

    def _passports(self) -> list[dict[str, Any]]:
        return [
            meter.passport(config, self.today).document()
            for meter, config in zip(self._meters, self.configs, strict=True)
        ]

    def _log(self, files: Sequence[ReadingsFile]) -> None:
        writer = threading.Thread(target=self._write, args=(files,), name="writer")
        writer.start()
        self._watchers = [
            _watcher(meter, config) for meter, config in zip(self._meters, self.configs, strict=True)
        ]
        if self._follower is not None:
            self._follower.start(self._stop)
        self._in_threads([(self._read, (index,)) for index in range(len(self._meters))])
        self._queue.put(None)
        writer.join()
        if self._follower is not None:
            self._stop.set()
            self._follower.join()

    def _read(self, index: int) -> None:
        config, watcher = self.configs[index], self._watchers[index]
        try:
            for reading in self._meters[index].readings(self._stop):
                seen, remarks = watcher.see(replace(reading, t_ns=self._controller_ns(reading.t_ns)))
                self._queue.put((index, seen))
                self._tell_backlog(config, seen)
                self._tell(config, remarks)
        except Exception as error:
            self._fail(error)
        self._tell(config, watcher.end())

    def _tell(self, config: MeterConfig, remarks: Sequence[QualityEvent]) -> None:
        for remark in remarks:
            self._emit_meter(config, remark.kind, remark.message, remark.t_ns, remark)

    def _tell_backlog(self, config: MeterConfig, newest: Reading) -> None:
        """A disk that is behind costs memory, not readings; people should know, by one of the meters."""
        with self._telling_backlog:
            waiting = self._queue.qsize()
            if waiting < self._told_backlog * 2:
                return
            self._told_backlog = waiting
        text = f"{waiting} rows wait for a slow disk; none is lost while there is memory"
        self._emit_meter(config, "slow_disk", text, newest.t_ns)

    def _controller_ns(self, t_ns: int) -> int:
        """An instant of ours by the controller's clock."""
        return t_ns if self._follower is None else self._follower.to_controller_ns(t_ns)

    def _write(self, files: Sequence[ReadingsFile]) -> None:
        try:
            while (item := self._queue.get()) is not None:
                index, reading = item
                files[index].append(reading)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Keep the first failure and end everything."""
        if self._failure is None:
            self._failure = error
        self.end()

    def _notifier(self, config: MeterConfig) -> Callable[[str], None]:
        def notify(text: str) -> None:
            self._emit_meter(config, "note", text, self._controller_ns(self.clock.monotonic_ns()))

        return notify

    def _emit_meter(
        self, config: MeterConfig, kind: str, message: str, t_ns: int, span: QualityEvent | None = None
    ) -> None:
        """Tell one event of a meter; times in campaign time."""
        event: dict[str, Any] = {"event": "meter", "meter_id": config.meter_id, "t_s": self._t_s(t_ns)}
        event |= {"kind": kind, "message": message}
        if span is not None and span.since_ns is not None:
            event["since_s"] = self._t_s(span.since_ns)
        if span is not None and span.until_ns is not None:
            event["until_s"] = self._t_s(span.until_ns)
        self.emit(event)

    def _t_s(self, t_ns: int) -> float:
        return round(campaign_time_s(t_ns, self.origin_ns), 6)

    @staticmethod
    def _in_threads(calls: Sequence[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
        threads = [threading.Thread(target=function, args=arguments) for function, arguments in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _watcher(meter: Meter, config: MeterConfig) -> QualityMonitor:
    stuck_after_s = meter.settings.get("stuck_after_s")
    return QualityMonitor(
        meter.update_interval_s,
        stuck_after_s=None if stuck_after_s is None else float(stuck_after_s),
        may_stand_still=config.may_stand_still,
    )

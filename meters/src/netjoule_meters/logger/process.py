# SPDX-License-Identifier: Apache-2.0
"""The logger: all meters of a campaign at once, one thread each, and one thread that writes.

A meter's thread only reads the meter and puts readings into a queue; a slow disk therefore delays the
writer and nothing else. Announcements have a thread too: a reader that does not take them holds nobody up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from netjoule_meters.adapters.base import Meter
from netjoule_meters.clock import Clock, campaign_time_s
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import Cancelled, MeterError
from netjoule_meters.logger.csv_file import ReadingsFile
from netjoule_meters.opening import build_meter
from netjoule_meters.reading import Reading

Announce = Callable[[Mapping[str, Any]], None]
Build = Callable[[MeterConfig, Clock, Callable[[str], None]], Meter]


def _build(config: MeterConfig, clock: Clock, notify: Callable[[str], None]) -> Meter:
    return build_meter(config, clock=clock, notify=notify)


@dataclass
class Logger:
    """Reads ``configs`` into ``out/meters`` until ``end`` is called or writing fails.

    Attributes:
        announce: takes one event, a JSON object; must not block for long.
        build: makes the meter of a configuration.
    """

    configs: Sequence[MeterConfig]
    out: Path
    origin_ns: int
    clock: Clock
    today: date
    announce: Announce
    build: Build = _build
    _stop: threading.Event = field(default_factory=threading.Event)
    _meters: list[Meter] = field(default_factory=list)
    _queue: SimpleQueue[tuple[int, Reading] | None] = field(default_factory=SimpleQueue)
    _failure: Exception | None = None

    def end(self) -> None:
        """Ask for the end, from any thread; waits on instruments are called off."""
        self._stop.set()
        for meter in self._meters:
            meter.cancel()

    def run(self) -> None:
        """Open all meters, announce that they are ready, log until the end.

        Raises:
            MeterError: the first failure, in one sentence.
        """
        files = self._open_files()
        try:
            self._meters = [self.build(config, self.clock, self._notifier(config)) for config in self.configs]
            if not self._stop.is_set():
                self._open_meters()
            if not self._stop.is_set():
                self.announce({"event": "ready", "passports": self._passports()})
                self._log(files)
        finally:
            for meter in self._meters:
                meter.close()
            for file in files:
                file.close()
        if self._failure is not None:
            raise self._failure
        rows = {config.meter_id: file.next_seq for config, file in zip(self.configs, files, strict=True)}
        self.announce({"event": "ended", "rows": rows})

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
        self._in_threads([(self._read, (index,)) for index in range(len(self._meters))])
        self._queue.put(None)
        writer.join()

    def _read(self, index: int) -> None:
        try:
            for reading in self._meters[index].readings(self._stop):
                self._queue.put((index, reading))
        except Exception as error:
            self._fail(error)

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
            t_s = campaign_time_s(self.clock.monotonic_ns(), self.origin_ns)
            self.announce(
                {"event": "meter", "meter_id": config.meter_id, "t_s": round(t_s, 6), "message": text}
            )

        return notify

    @staticmethod
    def _in_threads(calls: Sequence[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
        threads = [threading.Thread(target=function, args=arguments) for function, arguments in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

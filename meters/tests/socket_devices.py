# SPDX-License-Identifier: Apache-2.0
"""Emulated devices on 127.0.0.1 whose time stands still: what they show is known to the digit."""

from __future__ import annotations

import os
import select
import threading

from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.ports.network import TcpPort, UdpPort
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EMULATED, EmulationOptions, make_instrument
from netjoule_meters.meter_factory import build_meter

POLL_S = 0.02


class Served:
    """An emulated device on a port, served by a thread; ``now_s`` is its time."""

    def __init__(
        self, model: str, variant: str, *, power_w: float = 12.5, listen: int = 0, **options
    ) -> None:
        self.variant = EMULATED[model].variants[variant]
        self.model = EMULATED[model]
        kind = self.variant.ports[0]
        self.port = UdpPort(port=listen) if kind == "udp" else TcpPort(port=listen, once=kind == "tcp-once")
        self.device = make_instrument(
            model, EmulationOptions(variant=variant, update_interval_s=1.0, **options)
        )
        self.device.feed(PowerInterval(0.0, 1000.0, power_w))
        self.meters, self.notes = [], []
        self.now_s = 0.0
        self.mute = self._unplugged = False
        self.tick(10.0)
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def resource(self) -> str:
        return self.variant.resource.format(port=self.port.name)

    def tick(self, until_s: float) -> None:
        """Let the device's time pass, in steps that meet its updates and its patience."""
        while self.now_s < until_s:
            self.now_s += 0.5
            self.device.step(self.now_s)

    def fault(self, name: str, seconds: float = 1000.0) -> None:
        assert self.device.take_fault(name, {"seconds": seconds}, self.now_s)

    def meter(self, **settings):
        """A meter that reads it; close it, or leave that to the fixture."""
        given = {**self.variant.settings, "update_interval_s": POLL_S, "answer_timeout_s": 60.0, **settings}
        config = MeterConfig("m1", "client", self.model.adapter, self.resource, given)
        self.meters.append(build_meter(config, clock=SystemClock(), notify=self.notes.append))
        return self.meters[-1]

    def close(self) -> None:
        for meter in self.meters:
            meter.close()
        self.unplug()

    def unplug(self) -> None:
        """Nobody listens any more."""
        if self._unplugged:
            return
        self._unplugged = True
        os.write(self._stop_write, b"x")
        self._thread.join(60)
        self.port.close()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def _serve(self) -> None:
        while True:
            poll = select.poll()
            for descriptor in (self._stop_read, *self.port.descriptors()):
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._stop_read in ready:
                return
            self.device.receive(self.port.read())
            answer = self.device.step(self.now_s)
            if answer and not self.mute:
                self.port.write(answer)

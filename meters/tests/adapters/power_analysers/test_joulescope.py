# SPDX-License-Identifier: Apache-2.0
"""The Joulescope adapter with a stand-in for the maker's library."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import pytest
from golden_sentences import raises

from netjoule_meters.adapters.power_analysers.joulescope import JoulescopeMeter, reading_of
from netjoule_meters.errors import GarbageReply, PortUnavailable, SettingRefused, UsageError
from netjoule_meters.reading import Flag
from netjoule_meters.transports.joulescope import Joulescope


def statistics(power_w: float = 0.75, window_s: float = 0.5) -> dict:
    return {
        "time": {"delta": {"value": window_s, "units": "s"}},
        "signals": {
            "current": {"µ": {"value": 0.15, "units": "A"}},
            "voltage": {"µ": {"value": 5.0, "units": "V"}},
            "power": {"µ": {"value": power_w, "units": "W"}},
        },
        "accumulators": {"energy": {"value": 1.0, "units": "J"}},
    }


class Device:
    """What the library gives for one instrument; once its window is set it sends until it is stopped."""

    def __init__(self, name: str = "JS220-000123", window_s: float | None = None, busy: bool = False) -> None:
        self.name, self.busy = name, busy
        self.keeps_window_s = window_s
        self.window_s = window_s or 0.5
        self.parameters: dict[str, str] = {}
        self.closed = 0
        self._stopped = threading.Event()
        self._sender = threading.Thread(target=self._send_on, daemon=True)

    def __str__(self) -> str:
        return self.name

    def statistics_callback_register(self, callback, source) -> None:
        assert source == "sensor"
        self.callback = callback

    def open(self) -> None:
        if self.busy:
            raise RuntimeError("LIBUSB_ERROR_BUSY")

    def close(self) -> None:
        self.closed += 1
        self._stopped.set()

    def stop(self) -> None:
        """Send no more by itself."""
        self._stopped.set()
        self._sender.join()

    def _send_on(self) -> None:
        while not self._stopped.wait(0.005):
            self.send()

    def parameter_set(self, name: str, value: str) -> None:
        if name == "v_range" and value == "2V" and self.name.startswith("JS110"):
            raise KeyError("2V")
        self.parameters[name] = value
        if name == "reduction_frequency":
            self.window_s = self.keeps_window_s or 1 / float(value.removesuffix(" Hz"))
            self._sender.start()

    def send(self, power_w: float = 0.75) -> None:
        self.callback(statistics(power_w, self.window_s))


def library(*devices: Device) -> SimpleNamespace:
    return SimpleNamespace(scan=lambda config: list(devices))


def meter_of(clock, *devices: Device, resource: str = "joulescope:", **settings) -> JoulescopeMeter:
    transport = Joulescope(resource, clock=clock, library=lambda: library(*devices))
    return JoulescopeMeter(transport, settings, clock=clock)


def opened(clock, device: Device, **settings) -> JoulescopeMeter:
    """An open meter whose instrument has stopped to send by itself; nothing waits to be read."""
    meter = meter_of(clock, device, **settings)
    meter.open()
    device.stop()
    meter._transport.drain(0.0)
    return meter


def test_open_sets_range_and_window_and_reads(clock):
    device = Device()
    meter = meter_of(clock, device, update_interval_s=0.1)
    identification = meter.open()
    assert (identification.model, identification.serial) == ("JS220", "000123")
    assert device.parameters == {"i_range": "auto", "v_range": "15V", "reduction_frequency": "10 Hz"}
    device.stop()
    device.send()
    clock.advance(5.0)
    reading = meter.read()
    assert (reading.power_w, reading.voltage_v, reading.current_a) == (0.75, 5.0, 0.15)
    assert reading.flag is Flag.GOOD
    meter.close()
    assert device.closed == 1


def test_stamps_are_those_of_arrival(clock):
    device = Device()
    meter = opened(clock, device)
    device.send(1.0)
    arrived_ns = clock.now_ns
    clock.advance(3.0)
    assert meter.read().t_ns == arrived_ns


def test_lost_samples_are_no_data(clock):
    reading = reading_of(clock.now_ns, statistics(math.nan))
    assert (reading.flag, reading.power_w, reading.voltage_v) == (Flag.NO_DATA, None, 5.0)


@pytest.mark.parametrize("broken", [{}, {"signals": {}}, {"signals": {"power": {"µ": {"value": "x"}}}}])
def test_statistics_without_power_are_garbage(clock, broken):
    with pytest.raises(GarbageReply):
        reading_of(clock.now_ns, broken)


def test_the_library_is_missing(clock):
    def missing():
        raise ImportError("No module named 'joulescope'")

    meter = JoulescopeMeter(Joulescope("joulescope:", clock=clock, library=missing), {}, clock=clock)
    with raises(PortUnavailable) as error:
        meter.open()
    assert error.value.exit_code == 3


def test_none_plugged_in_or_another(clock):
    with raises(PortUnavailable):
        meter_of(clock).open()
    with raises(PortUnavailable):
        meter_of(clock, Device(), resource="joulescope:000999").open()


def test_several_need_a_name(clock):
    devices = (Device("JS220-000001"), Device("JS220-000002"))
    with raises(PortUnavailable):
        meter_of(clock, *devices).open()
    meter = meter_of(clock, *devices, resource="joulescope:000002")
    assert meter.open().serial == "000002"


def test_in_use_by_another_program(clock):
    with raises(PortUnavailable):
        meter_of(clock, Device(busy=True)).open()


def test_a_js110_keeps_its_own_window(clock):
    with raises(SettingRefused):
        meter_of(clock, Device("JS110-000001", window_s=0.5), update_interval_s=0.1).open()


def test_a_range_that_the_model_lacks(clock):
    with raises(SettingRefused):
        meter_of(clock, Device("JS110-000001"), voltage_range_v=2).open()
    with raises(UsageError):
        meter_of(clock, Device(), voltage_range_v=30)


def test_silence_is_a_gap_and_waits_can_be_called_off(clock):
    device = Device()
    meter = opened(clock, device, update_interval_s=0.01)
    readings = meter.readings(threading.Event())
    device.send()
    assert next(readings).flag is Flag.GOOD
    clock.advance(1.0)
    assert next(readings).flag is Flag.TIMEOUT
    meter.cancel()
    assert list(readings) == []


def test_a_slow_reader_loses_the_oldest(clock):
    device = Device()
    transport = Joulescope("joulescope:", clock=clock, library=lambda: library(device))
    transport.open()
    for index in range(1005):
        device.send(float(index))
    _, first = transport.next_statistics(1.0)
    assert first["signals"]["power"]["µ"]["value"] == 5.0

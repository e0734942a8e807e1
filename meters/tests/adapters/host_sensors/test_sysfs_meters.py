# SPDX-License-Identifier: Apache-2.0
"""What a host knows of itself: RAPL, hwmon, battery, each in a sysfs of its own below a temporary folder."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path

import pytest
from golden_sentences import raises

from netjoule_meters.adapters.host_sensors.rapl import CounterSum
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import (
    Cancelled,
    ConnectionLost,
    GarbageReply,
    NoAnswer,
    PortUnavailable,
    SettingRefused,
    UsageError,
    WrongMode,
)
from netjoule_meters.meter_factory import build_meter
from netjoule_meters.reading import Flag
from netjoule_meters.transports.sysfs import Sysfs

INTERVAL_S = 0.01


class Tree:
    """A sysfs that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, folder: str, **files: object) -> None:
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (place / name).write_text(f"{content}\n")


@pytest.fixture
def tree(tmp_path) -> Tree:
    return Tree(tmp_path / "sys")


@pytest.fixture
def packages(tree) -> Tree:
    tree.put("class/powercap/intel-rapl", enabled=1)
    for number in (0, 1):
        zone(tree, f"intel-rapl:{number}", f"package-{number}", 5_000_000)
    zone(tree, "intel-rapl:0:0", "core", 1_000_000)
    zone(tree, "intel-rapl:0:1", "dram", 2_000_000, 65_712_999_613)
    return tree


def zone(tree, folder, name, energy_uj, range_uj=262_143_328_850) -> None:
    tree.put(f"class/powercap/{folder}", name=name, energy_uj=energy_uj, max_energy_range_uj=range_uj)


def count(tree, folder, energy_uj) -> None:
    tree.put(f"class/powercap/{folder}", energy_uj=energy_uj)


def built(tree, clock, adapter, resource, notify=None, **settings):
    settings = {"sysfs_root": str(tree.root), "update_interval_s": INTERVAL_S, **settings}
    return build_meter(MeterConfig("m1", "client", adapter, resource, settings), clock=clock, notify=notify)


def opened(*arguments, **settings):
    meter = built(*arguments, **settings)
    meter.open()
    return meter


def deny(monkeypatch, name: str) -> None:
    """Reading a file called ``name`` is forbidden; tests may run as root, whom no mode bit stops."""
    allowed = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)


# -- RAPL --------------------------------------------------------------------------------------------------


def test_rapl_reads_the_counter_and_shows_power(packages, clock):
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    assert meter.identification.text == "intel-rapl:0 package-0"
    assert meter.counter_modulus_j == pytest.approx(262_143.32885)
    clock.advance(0.5)
    count(packages, "intel-rapl:0", 11_000_000)
    reading = meter.read()
    assert (reading.energy_j, reading.flag) == (11.0, Flag.GOOD)
    assert reading.power_w == pytest.approx(12.0)


def test_rapl_wraps_at_its_range(packages, clock):
    count(packages, "intel-rapl:0", 262_143_000_000)
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    clock.advance(1.0)
    count(packages, "intel-rapl:0", 1_671_150)
    reading = meter.read()
    assert reading.energy_j == pytest.approx(1.67115)
    assert reading.power_w == pytest.approx(2.0)
    gained_j = (reading.energy_j - 262_143.0) % meter.counter_modulus_j
    assert gained_j == pytest.approx(2.0)


def test_rapl_adds_packages_to_one_counter_that_needs_no_memory(packages, clock):
    count(packages, "intel-rapl:1", 262_143_000_000)
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0", add_zones="intel-rapl:1")
    before_j = meter.read().energy_j
    count(packages, "intel-rapl:1", 671_150)
    count(packages, "intel-rapl:0", 6_000_000)
    again = opened(packages, clock, "rapl", "sysfs:intel-rapl:0", add_zones="intel-rapl:1")
    assert again.identification.model == "RAPL package-0+package-1"
    gained_j = (again.read().energy_j - before_j) % again.counter_modulus_j
    assert gained_j == pytest.approx(1.0 + 1.0), "the second package has wrapped"


def test_rapl_adds_zones_of_different_ranges_by_counting_turns(packages, clock):
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0", add_zones="intel-rapl:0:1")
    assert meter.counter_modulus_j is None
    assert meter.read().energy_j == pytest.approx(7.0)
    count(packages, "intel-rapl:0:1", 65_712_000_000)
    assert meter.read().energy_j == pytest.approx(65_717.0)
    count(packages, "intel-rapl:0:1", 1_000_387)
    assert meter.read().energy_j == pytest.approx(65_719.0)


def test_counter_sums():
    equal = CounterSum([10.0, 10.0])
    assert [equal.add(counts) for counts in ([9.0, 0.5], [0.5, 1.0])] == [9.5, 1.5]
    mixed = CounterSum([10.0, 4.0])
    assert [mixed.add(counts) for counts in ([9.0, 3.0], [1.0, 1.0], [2.0, 0.0])] == [12.0, 16.0, 20.0]


@pytest.mark.parametrize(
    "added",
    [
        "intel-rapl:0:0",
        "intel-rapl:0",
        "intel-rapl:7",
        "psys-rapl:0",
    ],
)
def test_rapl_counts_nothing_twice(packages, clock, added):
    zone(packages, "psys-rapl:0", "psys", 1)
    with raises(UsageError):
        opened(packages, clock, "rapl", "sysfs:intel-rapl:0", add_zones=added)


def test_rapl_psys_holds_everything(packages, clock):
    zone(packages, "intel-rapl:2", "psys", 1)
    with raises(UsageError):
        opened(packages, clock, "rapl", "sysfs:intel-rapl:2", add_zones="intel-rapl:0")


def test_rapl_without_permission_says_what_to_do(packages, clock, monkeypatch):
    deny(monkeypatch, "energy_uj")
    with raises(PortUnavailable) as error:
        opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    assert error.value.exit_code == 3


def test_rapl_that_is_not_there(tree, packages, clock):
    with raises(PortUnavailable):
        opened(packages, clock, "rapl", "sysfs:intel-rapl:9")
    bare = Tree(tree.root / "bare")
    bare.put("class")
    with raises(PortUnavailable):
        opened(bare, clock, "rapl", "sysfs:intel-rapl:0")
    with raises(PortUnavailable):
        opened(Tree(tree.root / "none"), clock, "rapl", "sysfs:intel-rapl:0")


def test_rapl_with_an_unreadable_counter_is_garbage_not_energy(packages, clock):
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    count(packages, "intel-rapl:0", "lots")
    reading = meter.read()
    assert (reading.flag, reading.energy_j) == (Flag.GARBAGE, None)
    with raises(NoAnswer):
        opened(packages, clock, "rapl", "sysfs:intel-rapl:0")


def test_rapl_passport(packages, clock):
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    passport = meter.passport(
        MeterConfig("m1", "client", "rapl", "sysfs:intel-rapl:0"), date(2026, 1, 1)
    ).document()
    assert passport["semantics"] == "energy_counter"
    assert passport["counter_modulus_j"] == pytest.approx(262_143.32885)
    assert passport["accuracy"]["status"] == "unknown" and len(passport["provisional"]) == 2


def test_rapl_is_looked_at_for_how_often_it_counts(packages, clock, monkeypatch):
    meter = opened(packages, clock, "rapl", "sysfs:intel-rapl:0")
    with raises(NoAnswer):
        meter.confirm()
    clock.step_ns = 500_000
    looks = iter(range(10_000))
    monkeypatch.setattr(meter, "_value", lambda path, unit: float(next(looks) // 2))
    renewed, _ = meter.confirm()
    assert renewed.holds is True and renewed.seen.startswith("renewed every ")
    clock.step_ns = 50_000_000
    renewed, _ = meter.confirm()
    assert renewed.holds is False


# -- hwmon -------------------------------------------------------------------------------------------------


@pytest.fixture
def ina226(tree) -> Tree:
    sensor(tree, "hwmon2", "1-0040")
    tree.put("class/hwmon/hwmon0", name="coretemp", temp1_input=42000)
    return tree


def sensor(tree, folder, device, **files) -> None:
    known = {"name": "ina226", "in1_input": 5012, "curr1_input": 400, "power1_input": 2_005_000}
    tree.put(f"class/hwmon/{folder}", **{**known, "update_interval": 5, **files})
    tree.put(f"devices/{device}")
    (tree.root / "class/hwmon" / folder / "device").symlink_to(tree.root / "devices" / device)


@pytest.mark.parametrize("name", ["ina226", "hwmon2", "1-0040", "/sys/class/hwmon/hwmon2/"])
def test_hwmon_by_chip_folder_or_device(ina226, clock, name):
    reading = opened(ina226, clock, "hwmon", f"sysfs:{name}").read()
    assert (reading.power_w, reading.voltage_v, reading.current_a) == pytest.approx((2.005, 5.012, 0.4))
    assert reading.flag is Flag.GOOD


def test_hwmon_without_a_power_file_multiplies(tree, clock):
    tree.put("class/hwmon/hwmon1", name="ina3221", in2_input=12000, curr3_input=250)
    meter = opened(tree, clock, "hwmon", "sysfs:ina3221", channel=3, voltage_channel=2)
    assert meter.read().power_w == pytest.approx(3.0)
    with raises(PortUnavailable):
        opened(tree, clock, "hwmon", "sysfs:ina3221")


def test_hwmon_counts_voltages_from_0(tree, clock):
    tree.put("class/hwmon/hwmon1", name="ltc2945", in0_input=12000, in1_input=1000, curr1_input=250)
    meter = opened(tree, clock, "hwmon", "sysfs:ltc2945", channel=1, voltage_channel=0)
    assert meter.read().power_w == pytest.approx(3.0)


def test_hwmon_with_a_mean_only_is_asked_as_often_as_it_has_one(tree, clock):
    tree.put(
        "class/hwmon/hwmon1", name="power_meter", power1_average=45_000_000, power1_average_interval=1000
    )
    with raises(SettingRefused):
        opened(tree, clock, "hwmon", "sysfs:power_meter")
    meter = opened(tree, clock, "hwmon", "sysfs:power_meter", update_interval_s=1.0)
    assert meter.read().power_w == pytest.approx(45.0)


def test_hwmon_two_of_one_name(ina226, clock):
    sensor(ina226, "hwmon3", "1-0041", power1_input=7_000_000)
    with raises(PortUnavailable):
        opened(ina226, clock, "hwmon", "sysfs:ina226")
    assert opened(ina226, clock, "hwmon", "sysfs:1-0041").read().power_w == 7.0


def test_hwmon_not_there(ina226, clock):
    with raises(PortUnavailable):
        opened(ina226, clock, "hwmon", "sysfs:ina219")


def test_hwmon_is_not_asked_faster_than_it_measures(ina226, clock):
    ina226.put("class/hwmon/hwmon2", update_interval=500)
    with raises(SettingRefused):
        opened(ina226, clock, "hwmon", "sysfs:ina226")


def test_hwmon_unplugged_is_a_gap_and_a_reconnection(ina226, clock):
    notes: list[str] = []
    meter = opened(ina226, clock, "hwmon", "sysfs:ina226", notes.append)
    readings = meter.readings(threading.Event())
    assert next(readings).flag is Flag.GOOD
    power = ina226.root / "class/hwmon/hwmon2/power1_input"
    content = power.read_text()
    power.unlink()
    clock.advance(1.0)
    assert next(readings).flag is Flag.TIMEOUT
    power.write_text(content)
    assert next(readings).flag is Flag.RECONNECT
    assert next(readings).power_w == pytest.approx(2.005)
    assert any("is not there" in note for note in notes)


# -- battery -----------------------------------------------------------------------------------------------


@pytest.fixture
def laptop(tree) -> Tree:
    tree.put("class/power_supply/AC", type="Mains", online=0)
    tree.put(
        "class/power_supply/BAT0",
        type="Battery",
        present=1,
        status="Discharging",
        power_now=8_250_000,
        voltage_now=11_400_000,
        manufacturer="ACME",
        model_name="X1",
        serial_number="  17 ",
    )
    return tree


def test_battery_power(laptop, clock):
    meter = opened(laptop, clock, "battery", "sysfs:BAT0")
    assert (meter.identification.text, meter.identification.serial) == ("BAT0 ACME X1", "17")
    reading = meter.read()
    assert (reading.power_w, reading.voltage_v, reading.flag) == (8.25, 11.4, Flag.GOOD)


@pytest.mark.parametrize("current_ua", [-700_000, 700_000])
def test_battery_current_times_voltage_whatever_the_sign(laptop, clock, current_ua):
    (laptop.root / "class/power_supply/BAT0/power_now").unlink()
    laptop.put("class/power_supply/BAT0", current_now=current_ua)
    reading = opened(laptop, clock, "battery", "sysfs:BAT0").read()
    assert (reading.power_w, reading.current_a) == pytest.approx((7.98, 0.7))


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown"])
def test_a_battery_that_does_not_feed_the_host_is_refused(laptop, clock, status):
    laptop.put("class/power_supply/BAT0", status=status)
    with raises(WrongMode) as error:
        opened(laptop, clock, "battery", "sysfs:BAT0")
    assert error.value.exit_code == 3


def test_a_charger_plugged_in_leaves_rows_without_numbers(laptop, clock):
    notes: list[str] = []
    meter = opened(laptop, clock, "battery", "sysfs:BAT0", notes.append)
    assert meter.read().flag is Flag.GOOD
    laptop.put("class/power_supply/BAT0", status="Charging", power_now=30_000_000)
    for _ in range(2):
        reading = meter.read()
        assert (reading.flag, reading.power_w) == (Flag.NO_DATA, None)
    assert notes == ["the battery says 'Charging' after 'Discharging'"]


@pytest.mark.parametrize("has_power", [True, False])
def test_a_battery_of_0_w_does_not_know(laptop, clock, has_power):
    """Some drivers say Discharging and 0."""
    notes: list[str] = []
    if not has_power:
        (laptop.root / "class/power_supply/BAT0/power_now").unlink()
    laptop.put("class/power_supply/BAT0", **{"power_now" if has_power else "current_now": 0})
    meter = opened(laptop, clock, "battery", "sysfs:BAT0", notes.append)
    for _ in range(2):
        reading = meter.read()
        assert (reading.flag, reading.power_w, reading.voltage_v) == (Flag.NO_DATA, None, 11.4)
    assert len(notes) == 1


def test_battery_is_looked_at(laptop, clock):
    (laptop.root / "class/power_supply/BAT0/power_now").unlink()
    laptop.put("class/power_supply/BAT0", current_now=-700_000)
    sign, renewed = opened(laptop, clock, "battery", "sysfs:BAT0").confirm(3)
    assert sign.seen == "current_now is -700000 while discharging"
    assert renewed.seen == "moved 0 times in 3 looks, one every 0.01 s"


@pytest.mark.parametrize(
    ("files", "resource"),
    [
        ({}, "BAT7"),
        ({}, "AC"),
        ({"type": "BMS"}, "BAT0"),
        ({"present": 0}, "BAT0"),
    ],
)
def test_no_such_battery(laptop, clock, files, resource):
    laptop.put("class/power_supply/BAT0", **files)
    with raises(PortUnavailable):
        opened(laptop, clock, "battery", f"sysfs:{resource}")


def test_a_battery_that_measures_no_power(laptop, clock):
    (laptop.root / "class/power_supply/BAT0/power_now").unlink()
    with raises(PortUnavailable):
        opened(laptop, clock, "battery", "sysfs:BAT0")


# -- the transport -----------------------------------------------------------------------------------------


def test_requests_of_sysfs(tree):
    tree.put("class/x", b=2, a=1)
    (tree.root / "class/x/device").symlink_to(tree.root / "class")
    source = Sysfs("sysfs:x", tree.root)
    source.open()
    assert source.fetch("class/x/a", 1.0) == b"1\n"
    assert source.fetch("class/x/", 1.0).split() == [b"a", b"b", b"device"]
    assert source.fetch("class/x/device@", 1.0) == b"class"
    with raises(ConnectionLost):
        source.fetch("class/x/c", 1.0)
    with raises(GarbageReply):
        source.fetch("class/x", 1.0)  # a folder, where a file was asked for


def test_sysfs_waits_can_be_called_off(tree):
    source = Sysfs("sysfs:x", tree.root)
    threading.Timer(0.02, source.cancel).start()
    with pytest.raises(Cancelled):
        source.pause(20.0)
    with pytest.raises(Cancelled):
        source.fetch("class", 1.0)


def test_another_interface_is_refused(tree, clock):
    with raises(UsageError):
        built(tree, clock, "battery", "/dev/ttyUSB0")

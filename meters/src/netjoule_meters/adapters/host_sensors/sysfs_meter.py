# SPDX-License-Identifier: Apache-2.0
"""What the adapters of this host's own sensors share: names, values, permission."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from netjoule_meters.adapters.polled import PolledMeter, number
from netjoule_meters.errors import ConnectionLost, PortUnavailable
from netjoule_meters.passport import Accuracy, Identification
from netjoule_meters.transports.sysfs import NotPermitted

MICRO = 1e-6
MILLI = 1e-3


class SysfsMeter(PolledMeter):
    """A meter whose values are files below ``folder``; the resource names one device in it."""

    interfaces: ClassVar[tuple[str, ...]] = ("sysfs",)
    folder: ClassVar[str]
    what: ClassVar[str]
    """What a device of that folder is, for messages."""
    advice_permission: ClassVar[str] = "run the logger as root, or let its group read the file"

    @abstractmethod
    def _identify_device(self) -> Identification:
        """Find the device and check that it tells power; dialogue errors are turned into sentences."""

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Nothing at hand states limits of error."""
        return Accuracy(None, None, f"unknown: no limits of error are stated for {self.what}")

    def _identify(self) -> Identification:
        try:
            return self._identify_device()
        except NotPermitted as error:
            raise PortUnavailable(f"{error}: {self.advice_permission}") from error

    @property
    def _device_name(self) -> str:
        """The device that the resource names, by the last part of a path."""
        return self._transport.resource.removeprefix("sysfs:").rstrip("/").rpartition("/")[2]

    def _devices(self) -> list[str]:
        """Names in ``folder``; empty when this host has no such folder."""
        try:
            return self._names(self.folder)
        except NotPermitted:
            raise
        except ConnectionLost:
            return []

    def _names(self, folder: str) -> list[str]:
        return self._text(f"{folder}/").split()

    def _text(self, path: str) -> str:
        answer = self._transport.fetch(path, self.reply_timeout_s)
        return answer.decode("utf-8", "replace").strip()

    def _optional_text(self, path: str) -> str | None:
        """Content of a file that a device need not have."""
        try:
            return self._text(path) or None
        except ConnectionLost:
            return None

    def _value(self, path: str, unit: float) -> float:
        """The number in a file, times ``unit``."""
        return number(self._text(path), path) * unit

    def _missing(self, names: Iterable[str]) -> PortUnavailable:
        there = ", ".join(names)
        if not there:
            return PortUnavailable(
                f"no {self.what} on this host, so none called '{self._device_name}': its hardware or kernel "
                "has none, or a container hides them (sysfs_root); read this host's power with another meter"
            )
        return PortUnavailable(
            f"no {self.what} '{self._device_name}' on this host: name one of these as sysfs:NAME: {there}"
        )

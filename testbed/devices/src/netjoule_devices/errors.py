# SPDX-License-Identifier: Apache-2.0
"""Why netjoule-device ends, each with the exit code that every netjoule program uses for it.

DeviceError
+-- UsageError         2: the model or an argument is not usable
+-- EnvironmentLacks   3: the host does not have what is asked for
+-- LinkLost           1: the link did not appear, went away or skipped an interval
"""

from __future__ import annotations


class DeviceError(Exception):
    """Base of all errors that end the program with one sentence."""

    exit_code = 1


class UsageError(DeviceError):
    """The model or an argument is not usable."""

    exit_code = 2


class EnvironmentLacks(DeviceError):
    """The host does not have what is asked for."""

    exit_code = 3


class LinkLost(DeviceError):
    """The link did not appear in time, went away or skipped an interval."""

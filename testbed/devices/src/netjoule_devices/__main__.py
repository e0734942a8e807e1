# SPDX-License-Identifier: Apache-2.0
"""`python -m netjoule_devices` is `netjoule-device`."""

from __future__ import annotations

from netjoule_devices.cli import entry

if __name__ == "__main__":
    entry()

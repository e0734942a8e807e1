# SPDX-License-Identifier: Apache-2.0
"""The run loop: sessions, measurement, finalising, outages, sync pulses."""

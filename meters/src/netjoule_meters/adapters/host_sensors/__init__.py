# SPDX-License-Identifier: Apache-2.0
"""Sensors of the host itself, as Linux's sysfs shows them."""

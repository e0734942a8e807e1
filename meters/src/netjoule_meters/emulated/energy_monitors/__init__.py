# SPDX-License-Identifier: Apache-2.0
"""Emulated home energy monitors."""

# SPDX-License-Identifier: Apache-2.0
"""Instruments that are programs: they speak the real language of their model on a pseudo-terminal."""

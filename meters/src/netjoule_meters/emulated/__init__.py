# SPDX-License-Identifier: Apache-2.0
"""Instruments that are programs: they speak the protocol of the real model on real ports."""

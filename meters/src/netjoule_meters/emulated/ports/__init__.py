# SPDX-License-Identifier: Apache-2.0
"""Ports of emulated instruments: pseudo-terminal, TCP, UDP, VXI-11, and what a serial line does to bytes."""

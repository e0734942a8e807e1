# SPDX-License-Identifier: Apache-2.0
"""Connections that carry bytes: a serial port, or a written dialogue in memory."""

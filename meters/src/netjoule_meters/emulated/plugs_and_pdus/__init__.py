# SPDX-License-Identifier: Apache-2.0
"""Emulated smart plugs, metered sockets and PDUs, each with the protocol of the real device."""

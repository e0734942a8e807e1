# SPDX-License-Identifier: Apache-2.0
"""Emulated bench power analysers, with what stands before them: a GPIB controller, PTDaemon."""

# SPDX-License-Identifier: Apache-2.0
"""Bench power analysers, over their own line or behind PTDaemon."""

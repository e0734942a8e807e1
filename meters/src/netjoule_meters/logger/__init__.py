# SPDX-License-Identifier: Apache-2.0
"""Readings on disk: one file per meter for a whole campaign, readable whenever the process ends."""

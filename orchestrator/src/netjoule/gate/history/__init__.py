# SPDX-License-Identifier: Apache-2.0
"""Verdicts of gates and pilots in a database: for a rig's next gate, its false-alarm rate and its trend.

The runs stay in their folders; a row says where.
"""

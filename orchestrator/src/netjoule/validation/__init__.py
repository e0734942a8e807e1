# SPDX-License-Identifier: Apache-2.0
"""Holds a campaign's folder to its contracts."""

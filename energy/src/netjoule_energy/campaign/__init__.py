# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign: read, computed from, and held against each other."""

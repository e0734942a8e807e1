# SPDX-License-Identifier: Apache-2.0
"""The testbed that a topology file describes."""

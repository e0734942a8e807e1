# SPDX-License-Identifier: Apache-2.0
"""Starts R, and reads the tables that it wrote."""

# SPDX-License-Identifier: Apache-2.0
"""One bench a file: its table, and the limits that its figures are held to."""

# SPDX-License-Identifier: Apache-2.0
"""The numbers of one run at each of its meters, from what was read. No file is read or written here."""

# SPDX-License-Identifier: Apache-2.0
"""The load ``flow``: messages of one transport, paced, by netjoule-traffic or another generator."""

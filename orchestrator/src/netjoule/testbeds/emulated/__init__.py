# SPDX-License-Identifier: Apache-2.0
"""Namespaces of this host, joined by netjoule-link, with emulated meters."""

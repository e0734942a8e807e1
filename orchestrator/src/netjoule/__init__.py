# SPDX-License-Identifier: Apache-2.0
"""netjoule: what a megabit costs, in joules, over UDP, TCP and QUIC."""

__version__ = "0.1.0"

# SPDX-License-Identifier: Apache-2.0
"""What 802.11n and 802.11ac radios can do and say: rates, channels, capabilities, and readers of their state.

Needs nothing but Python; nl80211 is read through pyroute2 where that is installed.
"""

# SPDX-License-Identifier: Apache-2.0
"""What the radio says while the meters read: one record shape for every way of asking.

`reader.py` is the interface, `emulated_link.py` the reader of the emulated link's statistics. Readers of
iw, iwconfig and nl80211 implement the same interface.
"""

from netjoule.radio.emulated_link import LinkStatsReader
from netjoule.radio.reader import RadioReader, RadioRecord

__all__ = ["LinkStatsReader", "RadioReader", "RadioRecord"]

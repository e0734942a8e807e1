# SPDX-License-Identifier: Apache-2.0
"""What the radio says while the meters read: one record shape for every way of asking.

`reader.py` is the interface, `emulated_link.py` the reader of the emulated link's statistics,
`agent_reader.py` that of real and hwsim radios: it runs netjoule_radio's agent on the radio's host, which
asks nl80211, iw or iwconfig.
"""

from netjoule.radio.agent_reader import AgentReader, agent_options
from netjoule.radio.emulated_link import LinkStatsReader
from netjoule.radio.reader import RadioReader, RadioRecord

__all__ = ["AgentReader", "LinkStatsReader", "RadioReader", "RadioRecord", "agent_options"]

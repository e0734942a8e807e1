# SPDX-License-Identifier: Apache-2.0
"""What the testbed of kinds guest and lab is made of.

`control_network.py` which hosts, and that control stays off the radio; `host_locks.py` who has them,
`reservation.py` their place in labgrid, `host_facts.py` what they are; `binaries.py` the traffic program of
each architecture; `clocks.py` each host's clock; `meters.py` loggers where the instruments are. Put together
in `netjoule.testbeds.lab.testbed`.
"""

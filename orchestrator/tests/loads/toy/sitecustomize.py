# SPDX-License-Identifier: Apache-2.0
"""Every Python that a test of the toy load starts with this folder in PYTHONPATH knows its class."""

import netjoule.loads

netjoule.loads.ROOMS["wait"] = "toy_load:WaitLoad"

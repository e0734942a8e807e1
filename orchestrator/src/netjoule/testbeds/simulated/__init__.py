# SPDX-License-Identifier: Apache-2.0
"""The testbed of kind simulated: a program in place of hosts, and a time of its own."""

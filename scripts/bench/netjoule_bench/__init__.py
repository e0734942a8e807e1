# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what this project claims about speed, cost and timing, measured on one machine in one run.

Bottom up: `veth` (two namespaces and the wire between them), `processes` (a program and its CPU time), `flow`
(what is asked and what came of it), `netjoule_traffic`, `iperf3`, `newer_iperf3` and `neighbours` (the
generators), `contest` (who takes part), `repeats` (rounds and medians), `tables` (what is printed and kept),
and one file per bench.
"""

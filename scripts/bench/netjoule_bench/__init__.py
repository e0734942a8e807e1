# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what this project claims about speed, cost and timing, measured on one machine in one run.

Bottom up: `sandbox` (`veth`: two namespaces and the wire between them; `processes`: a program and its CPU
time), `generators` (`flow`: what is asked and what came of it; each generator; `contest`: who takes part),
`repeats` (rounds and medians), `tables` (what is printed and kept), and `benches`, one file each.
"""

# SPDX-License-Identifier: Apache-2.0
"""Where processes run: this machine, a network namespace of it, a host over SSH."""

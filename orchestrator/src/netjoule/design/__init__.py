# SPDX-License-Identifier: Apache-2.0
"""What a workload becomes on a testbed, before anything runs: run table, duration, resolution, limits."""

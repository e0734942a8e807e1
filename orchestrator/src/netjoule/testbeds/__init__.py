# SPDX-License-Identifier: Apache-2.0
"""Where runs happen: the interface of a testbed, and its kinds."""

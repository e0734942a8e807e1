# SPDX-License-Identifier: Apache-2.0
"""Whether a change costs energy: base and head interleaved in one campaign, decided by one rule."""

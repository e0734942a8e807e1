# SPDX-License-Identifier: Apache-2.0
"""What sends, ours and others, and how each is asked and read."""

# SPDX-License-Identifier: Apache-2.0
"""What a meter's readings say about the power of a stretch of time."""

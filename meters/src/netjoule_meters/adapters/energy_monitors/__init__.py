# SPDX-License-Identifier: Apache-2.0
"""Home energy monitors with clamps, which send without being asked."""

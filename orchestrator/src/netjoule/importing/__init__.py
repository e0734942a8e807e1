# SPDX-License-Identifier: Apache-2.0
"""Results that other programs left behind, as a campaign: the same folder, documents and tables."""

# SPDX-License-Identifier: Apache-2.0
"""What a difference of E_A adds up to over a year of calls: the published estimate, and a user's own."""

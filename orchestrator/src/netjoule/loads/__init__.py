# SPDX-License-Identifier: Apache-2.0
"""What runs do: a room per load."""

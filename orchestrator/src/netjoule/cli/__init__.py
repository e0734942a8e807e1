# SPDX-License-Identifier: Apache-2.0
"""The command line: what was typed, checked, handed to the room that does it; what people read of it."""

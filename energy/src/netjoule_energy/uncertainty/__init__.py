# SPDX-License-Identifier: Apache-2.0
"""How far a power difference, and an energy per work, may be off; the grade that follows."""

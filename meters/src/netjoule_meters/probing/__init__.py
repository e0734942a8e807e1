# SPDX-License-Identifier: Apache-2.0
"""Finding instruments without disturbing anybody: ports nobody has open, questions that change nothing."""

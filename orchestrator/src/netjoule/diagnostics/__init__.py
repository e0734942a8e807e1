# SPDX-License-Identifier: Apache-2.0
"""What to know before a campaign: what a host lacks, whether it keeps schedules, how many blocks it takes."""

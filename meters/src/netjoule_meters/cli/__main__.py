# SPDX-License-Identifier: Apache-2.0
"""``python -m netjoule_meters.cli``."""

from netjoule_meters.cli import main

main()

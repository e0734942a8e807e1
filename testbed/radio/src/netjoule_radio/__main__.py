# SPDX-License-Identifier: Apache-2.0
"""`python3 -m netjoule_radio`."""

from netjoule_radio.cli import main

main()

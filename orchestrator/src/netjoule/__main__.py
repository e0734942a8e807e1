# SPDX-License-Identifier: Apache-2.0
"""``python -m netjoule``."""

from netjoule.cli.app import main

if __name__ == "__main__":
    main()

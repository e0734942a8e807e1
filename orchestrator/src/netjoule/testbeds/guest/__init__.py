# SPDX-License-Identifier: Apache-2.0
"""A virtual machine on Debian's stock kernel that sees this host's files and cannot change them."""

from __future__ import annotations

from typing import Literal

DEFAULT_MEMORY_MIB = 1024
AccelChoice = Literal["auto", "kvm", "tcg"]
Network = Literal["ht40-wpa2", "vht80-sae"]

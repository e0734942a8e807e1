# SPDX-License-Identifier: Apache-2.0
"""A virtual machine on Debian's stock kernel that sees this host's files and cannot change them."""

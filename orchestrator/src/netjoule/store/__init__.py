# SPDX-License-Identifier: Apache-2.0
"""The one owner of a campaign's folder, and the clock of its sessions."""

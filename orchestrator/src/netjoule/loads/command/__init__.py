# SPDX-License-Identifier: Apache-2.0
"""The load ``command``: any program on the client until it ends, a server program beside it."""

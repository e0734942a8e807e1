# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with one veth pair between them, and the programs in them."""

# SPDX-License-Identifier: Apache-2.0
"""Smart plugs, metered sockets and PDUs in the network; a mapping says which value is the power."""

# SPDX-License-Identifier: Apache-2.0
"""What a workload file asks for."""

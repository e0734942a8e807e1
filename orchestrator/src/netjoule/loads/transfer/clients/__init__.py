# SPDX-License-Identifier: Apache-2.0
"""What downloads: netjoule-transfer with its algorithms, and the download programs that people use."""

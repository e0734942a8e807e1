# SPDX-License-Identifier: Apache-2.0
"""The load ``transfer``: a set of files from a real web server to the client, by any download program."""

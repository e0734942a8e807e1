# SPDX-License-Identifier: Apache-2.0
"""Real web servers on the server's host: Apache, nginx and Caddy, each by a configuration of its own."""

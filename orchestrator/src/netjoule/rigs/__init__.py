# SPDX-License-Identifier: Apache-2.0
"""A campaign's blocks side by side on several rigs."""

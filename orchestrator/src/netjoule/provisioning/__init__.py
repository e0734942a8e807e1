# SPDX-License-Identifier: Apache-2.0
"""A topology as Ansible's inventory, and the playbooks run."""

# SPDX-License-Identifier: Apache-2.0
"""Lookup plugin: the value behind a reference to a secret. See netjoule.core.secrets."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: netjoule_secret
short_description: The value behind env:NAME, file:PATH or vault:NAME
description:
  - Read on the controller when a task uses it. Put no_log on a task that shows its arguments.
author: [netjoule]
options:
  _terms:
    description: References.
    required: true
"""


class LookupModule(LookupBase):
    """Resolves references."""

    def run(self, terms: list[str], variables: Any = None, **kwargs: Any) -> list[str]:
        """Values in the order of the references. AnsibleLookupError names what is missing, never a value."""
        from netjoule.core import secrets
        from netjoule.core.errors import NetjouleError

        try:
            return [secrets.resolve(term, where="wifi.passphrase").reveal() for term in terms]
        except NetjouleError as error:
            raise AnsibleLookupError(str(error)) from error

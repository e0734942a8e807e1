# SPDX-License-Identifier: Apache-2.0
"""Lookup plugin: the value behind a reference to a secret, as `netjoule provision --reveal` finds it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
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
        own = Path(sys.executable).parent / "netjoule"
        command = [str(own) if own.is_file() else "netjoule", "provision", "--reveal"]
        # References and values go through pipes: a command line can be read by everybody.
        try:
            ended = subprocess.run(
                command, input=json.dumps(terms), capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise AnsibleLookupError(f"no program netjoule to look secrets up with: {error}") from error
        if ended.returncode != 0:
            raise AnsibleLookupError(ended.stderr.strip().removeprefix("netjoule: "))
        values: list[str] = json.loads(ended.stdout)
        return values

# SPDX-License-Identifier: Apache-2.0
"""Lets tests import the helpers beside them, and the one about sshd of the orchestrator's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "orchestrator/tests"))

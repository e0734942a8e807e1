# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

# The modules under test are a program's, not a package's; importlib mode adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
import sys
from pathlib import Path

import hypothesis
import pytest

# A busy host is no defect of what is tested.
hypothesis.settings.register_profile("netjoule", deadline=None)
hypothesis.settings.load_profile("netjoule")

# Helpers of these tests (synthetic.py) are modules beside them; importlib mode adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished synthetic campaign; copy it before changing it."""
    import synthetic

    return synthetic.finished(tmp_path_factory.mktemp("golden") / "tiny")


@pytest.fixture
def campaign_dir(golden: Path, tmp_path: Path) -> Path:
    """A finished synthetic campaign of one's own, without its lock file."""
    place = tmp_path / golden.name
    shutil.copytree(golden, place)
    return place

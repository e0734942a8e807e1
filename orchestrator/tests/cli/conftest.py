# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
import synthetic

from netjoule.hosts import sandbox

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def inside(monkeypatch):
    """As if the sandbox were entered already; the testbed itself is replaced by each test."""
    monkeypatch.setattr(sandbox, "inside", lambda: "rootless")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "t.yaml").write_text(json.dumps(synthetic.topology().document))
    (tmp_path / "w.yaml").write_text(json.dumps(synthetic.workload().document))
    return [str(tmp_path / "w.yaml"), "--testbed", str(tmp_path / "t.yaml"), "--out", str(tmp_path / "out")]

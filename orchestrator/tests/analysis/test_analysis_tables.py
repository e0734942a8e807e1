# SPDX-License-Identifier: Apache-2.0
"""Tables that analysis-r wrote keep their contracts as another language reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import netjoule_contracts as contracts
from netjoule.store.datapackage import TABLES

GOLDEN = Path(__file__).parents[3] / "results/golden"
CONTRACTED = {path.name.removesuffix(".table.json") for path in (contracts.root() / "tables").iterdir()}
KEPT = sorted(path for path in GOLDEN.glob("*/tables/*.csv") if path.stem in CONTRACTED)


@pytest.mark.parametrize("path", KEPT, ids=lambda p: f"{p.parents[1].name}-{p.stem}")
def test_a_kept_table_keeps_its_contract(path: Path) -> None:
    assert list(contracts.table_defects(path.stem, path)) == []


def test_every_table_across_runs_that_a_kept_campaign_has_is_looked_at() -> None:
    of_every_campaign = {"ea_summary", "envelope", "delta_ea", "delta_goodput", "phy_rates", "runs"}
    of_every_campaign |= {"model_fit", "model_residuals", "power_trace"}
    of_every_campaign |= {"ea_order", "ea_drift", "ea_drift_sessions"}
    of_every_campaign |= {"pacing_certificates", "pacing_overview"}
    assert {path.stem for path in KEPT} >= of_every_campaign


def test_tables_across_runs_and_tables_of_raw_data_have_names_of_their_own() -> None:
    across_runs = {path.stem for path in KEPT}
    assert across_runs.isdisjoint(TABLES)

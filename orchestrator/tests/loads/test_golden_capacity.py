# SPDX-License-Identifier: Apache-2.0
"""The study of routers that scale gives the tables again that results/golden/capacity.tar.xz keeps."""

from __future__ import annotations

import csv
import io
import math
import tarfile
from pathlib import Path

from tiny_campaign import netjoule, table

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "results/golden/capacity.tar.xz"
SEED = "2016"
RELATIVE, ABSOLUTE = 1e-6, 1e-9


def test_the_study_alone_gives_the_tables_that_are_kept(tmp_path: Path) -> None:
    where = ROOT / "testbed/topologies/troubled-marriage-simulated.yaml"
    out = tmp_path / "anew"
    done = netjoule(
        *("run", "capacity-alone", "--testbed", str(where), "--seed", SEED, "--rigs", "2", "--out", str(out))
    )
    assert done.returncode == 0, done.stderr
    for name in ("energy_summary", "measure_contrasts", "router_energy"):
        kept = kept_table("capacity-alone", name)
        anew = table(out / "tables" / f"{name}.csv")
        assert len(kept) == len(anew) > 0
        assert [differing(one, other) for one, other in zip(kept, anew, strict=True)] == [[]] * len(kept)


def kept_table(campaign: str, name: str) -> list[dict[str, str]]:
    with tarfile.open(KEPT) as archive:
        packed = archive.extractfile(f"./{campaign}/tables/{name}.csv")
        assert packed is not None
        return list(csv.DictReader(io.TextIOWrapper(packed, "utf-8", newline="")))


def differing(kept: dict[str, str], anew: dict[str, str]) -> list[str]:
    """Columns of a row that differ by more than rounding does."""
    assert kept.keys() == anew.keys()
    return [name for name in kept if not same(kept[name], anew[name])]


def same(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    except ValueError:
        return one == other

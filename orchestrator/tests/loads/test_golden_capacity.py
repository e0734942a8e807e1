# SPDX-License-Identifier: Apache-2.0
"""The study of routers that scale gives the tables again that results/golden/capacity*.tar.xz keep."""

from __future__ import annotations

import csv
import io
import math
import tarfile
from pathlib import Path

import pytest
import series_figures
from tiny_campaign import netjoule, table

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "results/golden"
SEED = "2016"
RELATIVE, ABSOLUTE = 1e-6, 1e-9


@pytest.mark.parametrize(
    ("campaign", "archive", "names"),
    [
        ("capacity-alone", "capacity", ("energy_summary", "measure_contrasts", "router_energy")),
        ("capacity-dccp", "capacity-further", ("measure_contrasts", "router_energy")),
        ("capacity-flows", "capacity-further", ("measure_contrasts", "router_energy", "arm_shares")),
    ],
)
def test_a_campaign_of_the_study_gives_the_tables_that_are_kept(
    tmp_path: Path, campaign: str, archive: str, names: tuple[str, ...]
) -> None:
    out = run(campaign, tmp_path)
    for name in names:
        kept = kept_table(archive, campaign, name)
        anew = table(out / "tables" / f"{name}.csv")
        assert len(kept) == len(anew) > 0
        assert [differing(one, other) for one, other in zip(kept, anew, strict=True)] == [[]] * len(kept)


def test_single_runs_give_the_figures_that_the_page_states(tmp_path: Path) -> None:
    runs = series_figures.read(run("capacity-series", tmp_path))

    def told(path: str, arm: str, of: series_figures.Measure, scale: float, form: str) -> str:
        found = series_figures.over_blocks(runs[path, arm], of)
        assert found is not None
        return f"{scale * found[0]:{form}} ± {scale * found[1]:{form}}"

    page = (ROOT / "docs/findings-capacity.md").read_text(encoding="utf-8")
    rows = dict(line[2:].split(" | ", 1) for line in page.splitlines() if "| T3." in line)
    recovery, highest = series_figures.recovery_s, series_figures.highest_arrivals_mbps
    for arm in ("none", "practra-10"):
        assert f"{told('rtt-100', arm, recovery, 1, '.1f').removesuffix(' ± 0.0')} s" in rows["T3.4"]
    assert f"{told('rtt-100', 'practra-1000', recovery, 1, '.1f')} s" in rows["T3.5"]
    wasted = told("rtt-100", "practra-1000", series_figures.wasted_in_recovery, 100, ".0f")
    assert f"{wasted} % of the recovery" in rows["T3.5"]
    for arm in ("none", "practra-10", "practra-1000"):
        for path in ("rtt-100-bursts", "rtt-100-both"):
            assert told(path, arm, highest, 1, ".1f") in rows["T3.10"]
    assert f"{told('rtt-100-both', 'practra-1000', series_figures.wasted, 100, '.0f')} %" in rows["T3.11"]
    assert f"{told('rtt-100-both', 'practra-10', series_figures.capped, 100, '.0f')} %" in rows["T3.11"]


def test_the_page_states_what_each_transport_lost_over_the_emulated_link() -> None:
    """The campaign of real flows takes hours; its tables are kept."""
    arms = ("practra-10", "practra-100", "practra-1000")
    goodput = {
        (row["transport"], row["path"], row["arm"]): row
        for row in kept_table("capacity-live", "capacity-live", "measure_contrasts")
        if row["measure"] == "t_a_mbps"
    }
    rate_mbps = {
        (row["transport"], row["path"], row["arm"]): float(row["service_rate_mbps"])
        for row in kept_table("capacity-live", "capacity-live", "router_energy")
    }
    page = (ROOT / "docs/findings-capacity.md").read_text(encoding="utf-8").splitlines()
    assert len(goodput) == 8 * 2 * len(arms)
    for transport, path in sorted({cell[:2] for cell in goodput}):
        cells = [goodput[transport, path, arm] for arm in arms]
        shown = [f"| {transport} | {path.removeprefix('rtt-')} | {float(cells[0]['reference_mean']):.2f}"]
        for arm, cell in zip(arms, cells, strict=True):
            percent, low, high = (
                float(cell[f"difference_percent{end}"]) for end in ("", "_ci95_low", "_ci95_high")
            )
            told = f"{percent:.1f} ({low:.1f} to {high:.1f})".replace("-0.0", "0.0")
            shown.append(f"{told} / {rate_mbps[transport, path, arm]:.1f}")
        assert " | ".join(shown) + " |" in page


def run(name: str, folder: Path) -> Path:
    where, out = ROOT / "testbed/topologies/troubled-marriage-simulated.yaml", folder / "anew"
    done = netjoule("run", name, "--testbed", str(where), "--seed", SEED, "--rigs", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out


def kept_table(archive_name: str, campaign: str, name: str) -> list[dict[str, str]]:
    with tarfile.open(GOLDEN / f"{archive_name}.tar.xz") as archive:
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

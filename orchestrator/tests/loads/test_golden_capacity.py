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

    rows = dict(line[2:].split(" | ", 1) for line in page() if "| T3." in line)
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
    assert f"{told('rtt-100-both', 'none', series_figures.over_five, 100, '.0f')} %" in rows["T3.7"]


def test_the_page_states_what_each_transport_lost_over_the_emulated_link() -> None:
    """The campaign of real flows takes hours; its tables are kept."""
    cells = kept_cells("capacity-live", "capacity-live")
    assert len(cells) == 8 * 2 * 3
    for transport, path in sorted({(cell["transport"], cell["path"]) for cell, _ in cells}):
        own = [one for one in cells if (one[0]["transport"], one[0]["path"]) == (transport, path)]
        shown = [f"{transport} | {path.removeprefix('rtt-')} | {float(own[0][0]['reference_mean']):.2f}"]
        for cell, rate_mbps in own:
            percent, low, high = (rounded(value, 1) for value in interval(cell))
            shown.append(f"{percent} ({low} to {high}) / {rate_mbps:.1f}")
        assert f"| {' | '.join(shown)} |" in page()


@pytest.mark.parametrize(
    ("name", "campaign", "of_path", "factors"),
    [
        ("none", "alone", "", {}),
        ("bursts 10 ms, 5 Mb/s", "bursts", "-bursts", {"bursts": "on-10-at-5"}),
        ("bursts 100 ms, 2 Mb/s", "bursts", "-bursts", {"bursts": "on-100-at-2"}),
        ("bursts 100 ms, 5 Mb/s", "bursts", "-bursts", {"bursts": "on-100-at-5"}),
        ("bursts 100 ms, 10 Mb/s", "bursts", "-bursts", {"bursts": "on-100-at-10"}),
        ("bursts 100 ms, 100 Mb/s", "bursts", "-bursts", {"bursts": "on-100-at-100"}),
        ("N2 varies, every 50 ms", "varying", "-varying", {"varying": "every-50"}),
        (
            "both (100 ms, 5 Mb/s; 50 ms)",
            "both",
            "-both",
            {"bursts": "on-100-at-5", "varying": "every-50"},
        ),
    ],
)
def test_the_page_states_the_goodput_that_the_study_found(
    name: str, campaign: str, of_path: str, factors: dict[str, str]
) -> None:
    columns = []
    for rtt_ms in (1, 10, 50, 100):
        asked = factors | {"path": f"rtt-{rtt_ms}{of_path}"}
        own = [
            one
            for one in kept_cells("capacity", f"capacity-{campaign}")
            if one[0]["arm"] in ("practra-10", "practra-100", "practra-1000")
            and all(one[0][factor] == value for factor, value in asked.items())
        ]
        told = ", ".join(change(*one, digits=0, least=1.5) for one in own)
        told = told.replace("0 / 10.0, 0 / 10.0, 0 / 10.0", "none lost")
        columns.append(f"{told} ({float(own[0][0]['reference_mean']):.1f})")
    assert f"| {name} | {' | '.join(columns)} |" in page()


def test_the_page_states_how_much_each_setting_matters() -> None:
    cells = kept_cells("capacity-further", "capacity-sensitivity")
    rows: dict[str, dict[str, list[str]]] = {}
    for cell, rate_mbps in cells:
        rule, _, setting = cell["arm"].partition("-")
        setting = setting.partition("-")[2] or (rule if rule != "practra" else "as above")
        told = change(cell, rate_mbps, digits=1, least=0.5)
        rows.setdefault(setting, {}).setdefault(cell["path"], []).append(told)
    lines = [line for line in page() if line.startswith("| ")]
    for setting, paths in rows.items():
        start = f"| {setting.replace('-', ' ').replace('_', '.')}"
        columns = " | ".join(", ".join(told) for told in paths.values())
        assert any(line.startswith(start) and line.endswith(f" | {columns} |") for line in lines), setting


def page() -> list[str]:
    return (ROOT / "docs/findings-capacity.md").read_text(encoding="utf-8").splitlines()


def kept_cells(archive: str, campaign: str) -> list[tuple[dict[str, str], float]]:
    """Rows of goodput's contrasts, and the mean service rate of each, in the order of the table."""
    factors = ("transport", "path", "bursts", "varying", "arm")
    rates_mbps = {
        tuple(row.get(name) for name in factors): float(row["service_rate_mbps"])
        for row in kept_table(archive, campaign, "router_energy")
    }
    return [
        (row, rates_mbps[tuple(row.get(name) for name in factors)])
        for row in kept_table(archive, campaign, "measure_contrasts")
        if row["measure"] == "t_a_mbps"
    ]


def interval(cell: dict[str, str]) -> list[float]:
    return [float(cell[f"difference_percent{end}"]) for end in ("", "_ci95_low", "_ci95_high")]


def rounded(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0


def change(cell: dict[str, str], rate_mbps: float, *, digits: int, least: float) -> str:
    """Goodput's difference in percent, half its interval from `least` points on, and the service rate."""
    percent, low, high = interval(cell)
    half = (high - low) / 2
    within = f" ±{rounded(half, digits)}" if half >= least else ""
    return f"{rounded(percent, digits)}{within} / {rate_mbps:.1f}"


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

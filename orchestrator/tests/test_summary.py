# SPDX-License-Identifier: Apache-2.0
"""Grades in words, out of the results of a campaign."""

import json
from pathlib import Path
from typing import Any

from netjoule.summary import grade_lines


def result(campaign: Path, run_id: str, valid: bool, *nodes: dict[str, Any]) -> None:
    folder = campaign / "runs" / run_id
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"valid": valid, "nodes": list(nodes)}))


def test_grades_are_counted_by_meter_and_what_limits_them_is_said(tmp_path: Path) -> None:
    coarse = {"meter_id": "plug", "grade": "C", "grade_limits": ["accuracy_unknown", "wide"]}
    result(tmp_path, "a", True, coarse, {"meter_id": "wt", "grade": "A", "grade_limits": []})
    result(tmp_path, "b", True, {**coarse, "grade": "below_resolution", "grade_limits": ["accuracy_unknown"]})
    result(tmp_path, "c", False, coarse)
    result(tmp_path, "d", True, {"meter_id": "plug", "grade": None})
    assert grade_lines(tmp_path) == [
        "grade of meter plug: 1 x C, 1 x below resolution "
        "(kept from a better one by: accuracy unknown, wide)",
        "grade of meter wt: 1 x A",
    ]


def test_a_campaign_without_results_has_no_grades(tmp_path: Path) -> None:
    assert grade_lines(tmp_path) == []

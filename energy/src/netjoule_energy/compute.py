# SPDX-License-Identifier: Apache-2.0
"""Compute per-run numbers of a campaign folder and write them to runs/<run_id>/result.json."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import netjoule_contracts
from netjoule_energy.assess import assess_run
from netjoule_energy.campaign_files import (
    CampaignError,
    find_null_run,
    invalidating_codes,
    read_campaign,
    read_run_input,
    run_folder,
)
from netjoule_energy.result import Result


def compute_run(
    campaign_dir: Path, run_id: str, *, null_run_id: str | None = None, rng: np.random.Generator
) -> Result:
    """Return the numbers of one run from the raw files of its campaign.

    null_run_id: the null run of the same mini-block, whose power is the generator floor.
    rng: drives the Monte Carlo of u95; the same state gives the same digits.

    Raises:
        CampaignError: naming the file that is missing or broken.
    """
    known = read_campaign(campaign_dir)
    source = read_run_input(campaign_dir, known, run_id)
    null = None if null_run_id is None else read_run_input(campaign_dir, known, null_run_id)
    return assess_run(source, null, rng, invalidating_codes())


def compute_and_write(campaign_dir: Path, run_ids: Sequence[str]) -> list[Result]:
    """Compute the runs (of a mini-block, or any) and write result.json of each atomically.

    The null run of each mini-block is found by itself. Draws are seeded by campaign seed and run id, so
    that computing again gives the same numbers (`differing`): the same bytes on the same processor.

    Raises:
        CampaignError: naming the file that is missing or broken; runs before it are written.
    """
    known, codes = read_campaign(campaign_dir), invalidating_codes()
    # A null run is asked for by each run of its mini-block, which follow one another.
    read = lru_cache(maxsize=2)(partial(read_run_input, campaign_dir, known))
    results = []
    for run_id in run_ids:
        source = read(run_id)
        null_run_id = None if source.is_null else find_null_run(campaign_dir, source.run)
        rng = np.random.default_rng([known.seed, zlib.crc32(run_id.encode())])
        result = assess_run(source, None if null_run_id is None else read(null_run_id), rng, codes)
        write_result(run_folder(campaign_dir, run_id) / "result.json", result)
        results.append(result)
    return results


def write_result(path: Path, result: Result) -> None:
    """Write a result so that a reader sees the old file or the whole new one, never a part.

    Raises:
        CampaignError: when the result does not fit its contract (nothing is written then).
    """
    document = result.to_document()
    try:
        netjoule_contracts.validate("result", document)
    except netjoule_contracts.ContractError as error:
        raise CampaignError(f"the result of {result.run_id} {error}") from None
    _write_atomically(path, document)


def _write_atomically(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

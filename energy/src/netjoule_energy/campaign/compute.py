# SPDX-License-Identifier: Apache-2.0
"""Compute per-run numbers of a campaign folder and write them to runs/<run_id>/result.json."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import netjoule_contracts
from netjoule_contracts.types.result import Result
from netjoule_energy.campaign.files import CampaignError, invalidating_codes, read_campaign
from netjoule_energy.campaign.run_files import Runs, run_folder
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.result import document_of


def compute_run(campaign_dir: Path, run_id: str, *, rng: np.random.Generator) -> Result:
    """Return the numbers of one run from the raw files of its campaign.

    The control run of its mini-block, whose power is the floor, is found by itself.
    rng: drives the Monte Carlo of u95; the same state gives the same digits.

    Raises:
        CampaignError: naming the file that is missing or broken.
    """
    runs = Runs(campaign_dir, read_campaign(campaign_dir))
    return assess_run(*runs.with_control(run_id), rng, invalidating_codes())


def compute_and_write(campaign_dir: Path, run_ids: Sequence[str]) -> list[Result]:
    """Compute the runs (of a mini-block, or any) and write result.json of each, as `computed`."""
    return list(computed(campaign_dir, run_ids))


def computed(campaign_dir: Path, run_ids: Iterable[str]) -> Iterator[Result]:
    """Compute runs one after the other and write result.json of each atomically.

    Draws are seeded by campaign seed and run id, so that computing again gives the same numbers
    (`differing`): the same bytes on the same processor.

    Raises:
        CampaignError: naming the file that is missing or broken; runs before it are written.
    """
    known, codes = read_campaign(campaign_dir), invalidating_codes()
    runs = Runs(campaign_dir, known)
    for run_id in run_ids:
        rng = np.random.default_rng([known.seed, zlib.crc32(run_id.encode())])
        result = assess_run(*runs.with_control(run_id), rng, codes)
        write_result(run_folder(campaign_dir, run_id) / "result.json", result)
        yield result


def write_result(path: Path, result: Result) -> None:
    """Write a result so that a reader sees the old file or the whole new one, never a part.

    Raises:
        CampaignError: when the result does not fit its contract (nothing is written then).
    """
    document = document_of(result)
    try:
        hold(document)
    except netjoule_contracts.ContractError as error:
        raise CampaignError(f"the result of {result.run_id} {error}") from None
    _write_atomically(path, document)


def hold(document: Mapping[str, Any]) -> None:
    """Hold a result to its contract, and what its load measured to the contract of that load's part.

    Raises:
        ContractError: naming every offending field.
    """
    netjoule_contracts.validate("result", document)
    part = f"result_{document['load']}"
    for measures in (document["measures"], *(one["measures"] for one in document.get("parts", ()))):
        netjoule_contracts.validate(part, measures)


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

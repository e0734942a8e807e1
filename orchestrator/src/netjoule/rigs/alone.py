# SPDX-License-Identifier: Apache-2.0
"""The one rig of a simulated campaign without Dask: this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from netjoule.core.errors import NetjouleError
from netjoule.rigs.cluster import Returned, Told
from netjoule.rigs.simulated_batch import execute_batch


class Alone:
    """`campaign_run.Workers`, of whom there is one: what it is given it does at once."""

    def __init__(self, rig: str, campaign: Path, put: Callable[[Returned | Told], None]) -> None:
        """`put`: see `cluster.Workers`."""
        self._rigs, self._campaign, self._put = [rig], campaign, put

    def rigs(self) -> list[str]:
        """Itself."""
        return list(self._rigs)

    def submit(self, above: Mapping[int, int], rig: str) -> None:
        """Simulate blocks; see `simulated_batch.execute_batch`."""
        of = tuple(above)
        try:
            done = execute_batch(self._campaign, above, rig, lambda event: self._put(Told(dict(event))))
        except NetjouleError as error:
            self._put(Returned(of, (), error))
        else:
            self._put(Returned(of, done))

    def retire(self, rig: str) -> None:
        """It is given no more."""
        self._rigs.remove(rig)

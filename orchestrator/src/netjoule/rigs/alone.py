# SPDX-License-Identifier: Apache-2.0
"""The one rig of a simulated campaign without Dask: this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from netjoule.core.errors import NetjouleError, RunFailed
from netjoule.rigs.cluster import Returned, Told
from netjoule.rigs.simulated_batch import execute_batch


class Alone:
    """`campaign_run.Workers`, of whom there is one: a thread, so that what it says is shown meanwhile."""

    def __init__(self, rig: str, campaign: Path, put: Callable[[Returned | Told], None]) -> None:
        """`put`: see `cluster.Workers`."""
        self._rigs, self._campaign, self._put = [rig], campaign, put

    def rigs(self) -> list[str]:
        """Itself."""
        return list(self._rigs)

    def submit(self, above: Mapping[int, int], rig: str) -> None:
        """Simulate blocks; see `simulated_batch.execute_batch`."""
        threading.Thread(target=self._work, args=(above, rig), name=rig, daemon=True).start()

    def _work(self, above: Mapping[int, int], rig: str) -> None:
        of = tuple(above)
        try:
            done = execute_batch(self._campaign, above, rig, lambda event: self._put(Told(dict(event))))
        except NetjouleError as error:
            self._put(Returned(of, (), error))
        except Exception as error:  # the thread would end without a word
            self._put(Returned(of, (), RunFailed(f"{type(error).__name__}: {error}")))
        else:
            self._put(Returned(of, done))

    def retire(self, rig: str) -> None:
        """It is given no more."""
        self._rigs.remove(rig)

# SPDX-License-Identifier: Apache-2.0
"""The senders of a run's flows as one: ready together, told go together, ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.loads.flow.generators import Flow, FlowSpec, Generator
from netjoule.loads.flow.generators.base import Endpoints


class FlowGroup:
    """Flows that are ready; made by `open_group`."""

    def __init__(self, flows: Sequence[tuple[FlowSpec, Flow]]) -> None:
        """`flows`: each with what was asked of it, by their numbers."""
        self._flows = tuple(flows)

    @property
    def holds(self) -> bool:
        """Whether idle before and after has all senders' processes and sockets."""
        return all(flow.holds for _, flow in self._flows)

    async def go(self) -> None:
        """Start them all, one right after the other."""
        for _, flow in self._flows:
            await flow.go()

    async def reports(self) -> list[tuple[FlowSpec, dict[str, Any]]]:
        """Every flow's report, once all have ended.

        Raises:
            RunFailed: as the first flow that failed gives it; with several flows it names which.
        """
        tasks = [asyncio.ensure_future(flow.report()) for _, flow in self._flows]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for (asked, _), task in zip(self._flows, tasks, strict=True):
                error = task.exception() if task.done() else None
                if error is not None:
                    raise _named(asked, error) if len(self._flows) > 1 else error
            return [(asked, task.result()) for (asked, _), task in zip(self._flows, tasks, strict=True)]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self) -> None:
        """Close all sockets and end the processes; may be called at any time, and twice.

        Each is ended, whatever becomes of the others; what the first that failed raised is raised then.
        """
        ended = await asyncio.gather(*(flow.end() for _, flow in self._flows), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error


async def open_group(
    maker: Generator,
    asked: Sequence[FlowSpec],
    ends: Mapping[str, Endpoints],
) -> FlowGroup:
    """Start the senders of a run up to the point where only `go` is missing.

    Args:
        maker: makes every flow.
        asked: the flows, by their numbers.
        ends: the two hosts of a flow, by its client.

    Raises:
        RunFailed: when one does not get ready; the others have ended then.
    """
    ready: list[tuple[FlowSpec, Flow]] = []
    try:
        for flow in asked:
            ready.append((flow, await maker.open(flow, ends[flow.client])))
    except BaseException as error:
        await FlowGroup(ready).end()
        if len(asked) > 1 and isinstance(error, RunFailed):
            raise _named(asked[len(ready)], error) from error
        raise
    return FlowGroup(ready)


def _named(flow: FlowSpec, error: BaseException) -> BaseException:
    """The same failure with the flow's name; what is no failure of a flow stays what it is."""
    if not isinstance(error, RunFailed):
        return error
    return RunFailed(f"{flow}: {error}", code=error.code)

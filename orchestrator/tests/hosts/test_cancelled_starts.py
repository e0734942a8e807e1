# SPDX-License-Identifier: Apache-2.0
"""A campaign that is stopped while a program comes up leaves no program behind."""

import asyncio
import signal

import pytest

from netjoule.core import programs
from netjoule.hosts.host import LocalHost, LocalProcess
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic
from netjoule.radio.agent_reader import AgentReader
from netjoule.testbeds.emulated.testbed import EmulatedTestbed


class SilentHost(LocalHost):
    """Starts what never says a word, whatever it is asked for."""

    def __init__(self) -> None:
        super().__init__("here")
        self.started: asyncio.Queue[LocalProcess] = asyncio.Queue()

    async def start(self, argv, *, name, **_: object) -> LocalProcess:
        process = await super().start(["sleep", "600"], name=name)
        self.started.put_nowait(process)
        return process


async def device_model(host: SilentHost) -> None:
    testbed = object.__new__(EmulatedTestbed)
    testbed.local = host
    await testbed._device_model("laptop-cpu")


async def radio_agent(host: SilentHost) -> None:
    await AgentReader("client", host, ["python3", "agent"], float).open()


async def traffic_server(host: SilentHost) -> None:
    await NetjouleTraffic().serve(Endpoints(host, host, "127.0.0.1", "127.0.0.1", 7001))


@pytest.mark.parametrize("begin", [device_model, radio_agent, traffic_server])
def test_what_comes_up_ends_with_the_campaign(begin, monkeypatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name: name)

    async def stopped_meanwhile() -> None:
        host = SilentHost()
        coming_up = asyncio.ensure_future(begin(host))
        process = await host.started.get()
        coming_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await coming_up
        try:
            assert await asyncio.wait_for(process.wait(), 1.0) == -signal.SIGTERM
        finally:
            await process.stop()

    asyncio.run(stopped_meanwhile())

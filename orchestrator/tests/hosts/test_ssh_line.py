# SPDX-License-Identifier: Apache-2.0
"""The line to a host's keeper where something else speaks, or the host is lost: keepers that say a text."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from golden_sentences import raises
from runner_fakes import FakeClock

from netjoule.core.errors import RunFailed
from netjoule.hosts.ssh import Owner, SshHost, SshSettings
from netjoule.hosts.ssh.line import KeeperGone, Line

WITHIN_S = 60.0
"""Nothing takes so long; a hang becomes a failure."""
HELLO = b'{"hello": {"boot_id": "b", "machine": "m", "libc": "l"}, "done": 0}\n'
END = b""


def frame(number: int, **said: Any) -> bytes:
    return json.dumps({"m": number, "done": 1, **said}).encode() + b"\n"


TWO = frame(3, out=1, text="two\n")


class Keeper:
    """Says this, then answers a start, then is silent; hangs up when it is told to."""

    def __init__(self, *said: bytes, on_start: bytes | None = None) -> None:
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._on_start = on_start
        for text in said:
            self._said.put_nowait(text)

    async def read(self) -> bytes:
        return await self._said.get()

    def write(self, data: bytes) -> None:
        if b'"start"' in data and self._on_start is not None:
            self._said.put_nowait(self._on_start)
        if b'"bye"' in data:
            self._said.put_nowait(END)

    async def close(self) -> None:
        return None


class Told(SshHost):
    """A host whose keepers, one after the other, are these; an error is raised in the place of one."""

    def __init__(self, *keepers: Keeper | RunFailed) -> None:
        owner = Owner("mine", "a test", "here", "2026-01-02T03:04:05Z")
        super().__init__(SshSettings("lab", "192.0.2.1"), owner, lambda _remark: None)
        self._keepers: Iterator[Keeper | RunFailed] = iter(keepers)
        self._line = Line("lab", self._next, self._replace, lambda _remark: None, FakeClock())

    async def _next(self) -> Keeper:
        found = next(self._keepers)
        if isinstance(found, RunFailed):
            raise found
        return found

    async def _replace(self) -> None:
        return None


def on(host: Callable[[], Told], story: Callable[[Told], Awaitable[None]]) -> None:
    async def whole() -> None:
        told = host()
        await told._line.open()
        await story(told)
        await told._line.close()

    asyncio.run(asyncio.wait_for(whole(), WITHIN_S))


def test_a_host_that_is_lost_while_a_program_starts_lacks_nothing() -> None:
    """It may come back: the run is repeated; the same program then starts."""

    async def story(host: Told) -> None:
        with raises(RunFailed) as caught:
            await host.start(["true"], name="sender")
        assert caught.value.code == "host_unreachable"
        again = await host.start(["true"], name="sender")
        assert await again.next_line() == b"here\n"

    answer = frame(1, started=2, pid=7) + frame(2, out=2, text="here\n")
    on(
        lambda: Told(Keeper(HELLO, on_start=END), KeeperGone("gone"), Keeper(HELLO, on_start=answer)),
        story,
    )


@pytest.mark.parametrize("spoilt", [TWO[:9] + b"Sorry\n", b"Sorry: " + TWO])
def test_what_the_users_shell_prints_is_passed_over(spoilt: bytes) -> None:
    """Before the greeting, between frames, and on the line of one, which then comes again."""

    async def story(host: Told) -> None:
        process = await host.start(["true"], name="speaker")
        assert (await process.next_line(), await process.next_line()) == (b"one\n", b"two\n")
        assert host.machine == "m"

    begun = frame(1, started=1, pid=7) + b"You have mail.\n" + frame(2, out=1, text="one\n")
    on(
        lambda: Told(
            Keeper(b"Welcome to lab\n[1]\n", HELLO, on_start=begun + spoilt),
            Keeper(b"Welcome to lab\n" + HELLO, TWO),
        ),
        story,
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            ["Welcome to l\xe4b\n", ""],
            "its keeper did not greet; this was printed instead: Welcome to l\ufffdb",
        ),
        (["No shell for you", ""], "its keeper did not greet; this was printed instead: No shell for you"),
        (['{"hello": 1}\n', "\n", ""], 'this was printed instead: {"hello": 1}'),
        ([""], "its keeper hung up"),
    ],
)
def test_a_greeting_that_is_none_is_told_in_a_sentence(said: list[str], words: str) -> None:
    async def connect() -> None:
        await Told(Keeper(*(text.encode("latin-1") for text in said)))._line.open()

    with pytest.raises(RunFailed) as caught:
        asyncio.run(asyncio.wait_for(connect(), WITHIN_S))
    assert str(caught.value).startswith("host lab: ")
    assert str(caught.value).endswith(words)


def test_a_line_whose_next_keepers_greet_in_no_way_is_given_up_with_a_sentence() -> None:
    async def whole() -> RunFailed:
        strangers = (Keeper(b"No shell for you\n", END) for _ in range(5000))
        host = Told(Keeper(HELLO, END), *strangers)
        await host._line.open()
        gone = await host.given_up()
        await host._line.close()
        return gone

    gone = asyncio.run(asyncio.wait_for(whole(), WITHIN_S))
    assert gone.code == "host_unreachable"
    assert "given up after 10 min: its keeper did not greet; this was printed instead: No shell" in str(gone)

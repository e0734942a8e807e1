# SPDX-License-Identifier: Apache-2.0
"""Processes that speak lines: readiness, errors, silence, ends."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from golden_sentences import raises

from netjoule.core.errors import HostLacks
from netjoule.hosts.host import PREFERRED_NICE, LocalHost, LocalProcess, ProcessEnded


def with_process(script: str, use: Callable[[LocalProcess], Awaitable[object]]) -> object:
    async def run() -> object:
        process = await LocalHost("here").start(["sh", "-c", script], name="tool serve")
        try:
            return await use(process)
        finally:
            await process.stop(grace_s=1.0)

    return asyncio.run(run())


def test_expect_skips_other_events_and_returns_the_one() -> None:
    script = """echo '{"event":"interval","n":1}'; echo '{"event": "ready", "port": 7}'; cat"""
    assert with_process(script, lambda p: p.expect("ready", 60)) == {"event": "ready", "port": 7}


def test_an_error_event_becomes_its_message() -> None:
    script = """echo '{"event":"error","code":"x","message":"no route to 10.0.0.1"}'; exit 3"""
    with raises(ProcessEnded) as caught:
        with_process(script, lambda p: p.expect("ready", 60))
    assert caught.value.exit_status == 3


def test_an_early_end_tells_code_and_last_words() -> None:
    with raises(ProcessEnded):
        with_process("echo port taken >&2; echo give another >&2; exit 4", lambda p: p.expect("ready", 60))


def test_a_killed_process_tells_so() -> None:
    with raises(ProcessEnded) as caught:
        with_process("kill -9 $$", lambda p: p.expect("ready", 60))
    assert caught.value.exit_status == -9


def test_silence_has_a_deadline() -> None:
    with raises(ProcessEnded) as caught:
        with_process("cat", lambda p: p.expect("ready", 0.05))
    assert caught.value.exit_status is None


def test_a_line_that_is_no_json_is_named() -> None:
    with raises(ProcessEnded):
        with_process("""echo '{"event":"ready",'; cat""", lambda p: p.expect("ready", 60))


def test_a_very_long_line_passes() -> None:
    script = """printf '{"event":"report","x":"'; head -c 3000000 /dev/zero | tr '\\0' a; echo '"}'"""
    report = with_process(script, lambda p: p.expect("report", 60))
    assert isinstance(report, dict)
    assert len(report["x"]) == 3_000_000


def test_lines_go_in_and_out() -> None:
    async def talk(process: LocalProcess) -> bytes:
        await process.write_line("go")
        return await process.next_line()

    assert with_process("read word; echo got $word; cat", talk) == b"got go\n"


def test_writing_to_an_ended_process_is_no_error() -> None:
    async def talk(process: LocalProcess) -> int:
        code = await process.wait()
        for _ in range(3):
            await process.write_line("go")
        return code

    assert with_process("exit 5", talk) == 5


def test_stop_escalates_and_stays_bounded() -> None:
    async def stop(process: LocalProcess) -> int:
        await process.expect("ready", 60)
        return await process.stop(grace_s=0.1)

    stubborn = """trap '' TERM; echo '{"event":"ready"}'; while :; do read x || :; done"""
    assert with_process(stubborn, stop) == -9


def test_stop_drains_a_process_with_much_to_say() -> None:
    trap = "trap 'head -c 500000 /dev/zero; exit 6' TERM"
    script = trap + """; echo '{"event":"ready"}'; while :; do read x || :; done"""

    async def stop(process: LocalProcess) -> int:
        await process.expect("ready", 60)
        return await process.stop(grace_s=60)

    assert with_process(script, stop) == 6


def test_a_pipeline_joins_two_programs() -> None:
    async def run() -> tuple[bytes, bytes]:
        host = LocalHost("here")
        read_fd, write_fd = os.pipe()
        right = await host.start(["cat"], name="right", stdin_fd=read_fd)
        left = await host.start(["echo", "through"], name="left", stdout_fd=write_fd)
        os.close(read_fd)
        os.close(write_fd)
        line, end = await right.next_line(), await right.next_line()
        assert await left.next_line() == b""
        await asyncio.gather(left.stop(), right.stop())
        return line, end

    assert asyncio.run(run()) == (b"through\n", b"")


def test_a_preferred_process_is_ahead_where_the_user_may_give_that() -> None:
    async def prefer(process: LocalProcess) -> tuple[bool, int]:
        return process.prefer(), os.getpriority(os.PRIO_PROCESS, process.pid)

    got = with_process("cat", prefer)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert got in ((True, PREFERRED_NICE), (False, ours))


def test_a_missing_program_is_named() -> None:
    with raises(HostLacks):
        asyncio.run(LocalHost("here").start(["/nowhere/tool"], name="tool"))


def test_children_are_in_a_process_group_of_their_own() -> None:
    async def group(process: LocalProcess) -> bytes:
        return await process.next_line()

    script = f"{sys.executable} -c 'import os; print(os.getpgid(0))'"
    line = with_process(script, group)
    assert isinstance(line, bytes)
    assert int(line) != os.getpgid(0)

# SPDX-License-Identifier: Apache-2.0
"""What each client is started with, and what programs of others save, as it is found out."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from file_sets import HERE, fetched, fill, serving

from netjoule.core.errors import RunFailed
from netjoule.loads.transfer.clients import downloader, ours, peers
from netjoule.loads.transfer.clients.arms import CLIENTS
from netjoule.loads.transfer.clients.ours import Knobs
from netjoule.loads.transfer.clients.task import MOST_CONNECTIONS, Invocation, Task
from netjoule.loads.transfer.downloads import PeerDownload
from netjoule_contracts import factors

PEERS = [name for name, client in CLIENTS.items() if client.invocation is not None]
FEW = fill(4, "image-2")


def task(files: int = 3, http: str = "1.1", tls: bool = False) -> Task:
    named = {f"f{number}.bin": 1000 for number in range(files)}
    return Task("https://server:8443" if tls else "http://server:8080", named, http, tls)


def invoked(client: str, of: Task) -> Invocation:
    make = CLIENTS[client].invocation
    assert make is not None
    return make(of)


def option(argv: list[str], name: str) -> str | None:
    return argv[argv.index(name) + 1] if name in argv else None


# -- what they are told ---------------------------------------------------------------------------------


def test_every_value_of_the_factor_is_a_client() -> None:
    assert list(CLIENTS) == factors()["client"]["value"]["enum"]


@pytest.mark.parametrize(
    ("client", "asked", "spoken"),
    [("wget", "2", "1.1"), ("curl", "3", "2"), ("eht", "3", "3"), ("h1", "2", "1.1"), ("h3", "1.1", "3")],
)
def test_a_client_speaks_what_is_asked_for_or_the_next_older_version(
    client: str, asked: str, spoken: str
) -> None:
    assert CLIENTS[client].version_for(asked) == spoken


@pytest.mark.parametrize("client", PEERS)
def test_a_peer_is_told_every_file_where_to_save_it_and_the_ca(client: str) -> None:
    of = task(tls=True)
    told = invoked(client, of)
    words = " ".join([*(word for argv in told.argvs for word in argv), *told.files.values()])
    assert all(url in words for url in of.urls)
    assert "saved" in words
    assert "/var/local/ca.pem" in words + " ".join(told.environment.values())
    assert all(argv[0] == CLIENTS[client].program for argv in told.argvs)


@pytest.mark.parametrize("files", [1, 4, 64, 1500])
def test_the_best_flags_use_all_connections_and_no_more(files: int) -> None:
    at_once, parts = task(files).shared_out(16)
    assert at_once * parts <= MOST_CONNECTIONS
    assert at_once == min(files, 64)
    assert at_once * (parts + 1) > MOST_CONNECTIONS or parts == 16
    (aria,) = peers.aria2_best(task(files)).argvs
    assert {f"-j{at_once}", f"-x{parts}", f"-s{parts}"} <= set(aria)
    script = peers.lftp_best(task(files)).files["urls"]
    assert ("pget" in script) == (parts > 1)
    assert f"queue-parallel {at_once}" in script


KNOBS = Knobs("html-1", 7, files=20, bandwidth_mbps=100.0, rtt_ms=290.0, options={"concurrency": 16})


@pytest.mark.parametrize(
    ("client", "algorithm", "concurrency", "connections"),
    [
        ("fixed", "fixed", "16", "64"),
        ("lowe-sequential", "lowe-sequential", "16", "64"),
        ("auto", "auto", "16", "64"),
        ("h1", "fixed", "6", "6"),
        ("h2", "fixed", "1", "1"),
        ("h3", "fixed", "1", "1"),
    ],
)
def test_ours_is_told_its_algorithm_its_level_and_the_limit(
    client: str, algorithm: str, concurrency: str, connections: str
) -> None:
    argv = ours.argv(client, task(tls=True), KNOBS, "netjoule-transfer")
    assert argv[:2] == ["netjoule-transfer", "get"]
    assert option(argv, "--algorithm") == algorithm
    assert option(argv, "--concurrency") == concurrency
    assert option(argv, "--max-connections") == connections
    assert (option(argv, "--dataset"), option(argv, "--seed"), option(argv, "--files")) == (
        "html-1",
        "7",
        "20",
    )
    assert (option(argv, "--bandwidth-mbps"), option(argv, "--rtt-ms")) == ("100", "290")
    assert option(argv, "--interval-s") is None
    assert option(argv, "--ca-file") == "/var/local/ca.pem"
    assert argv[-2:] == ["--json", "--hold"]


def test_ours_needs_no_ca_over_plain_http() -> None:
    assert "--ca-file" not in ours.argv("fixed", task(), KNOBS, "netjoule-transfer")


# -- what they do ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", PEERS)
def test_a_peer_fetches_over_tls_and_its_connections_are_counted(client: str) -> None:
    http = CLIENTS[client].http_versions[-1]

    async def run() -> list[dict[str, Any]]:
        async with serving("apache", FEW) as server:
            return await fetched(server, client, FEW, http=http, tls=True)

    (told,) = asyncio.run(run())
    assert (told["files_n"], told["files_verified_n"], told["failures"]) == (4, 4, [])
    assert told["end_ns"] > told["start_ns"]
    assert told["cpu_s"] > 0
    # The host's count, which has that of others who open connections meanwhile.
    assert told["connections_opened_n"] >= 1
    assert told["received_bytes"] >= told["bytes"]


def test_transfers_follow_one_another_back_to_back() -> None:
    async def run() -> list[dict[str, Any]]:
        async with serving("nginx", FEW) as server:
            return await fetched(server, "wget", FEW, repeat=3)

    runs = asyncio.run(run())
    assert [told["files_verified_n"] for told in runs] == [4, 4, 4]
    assert all(one["end_ns"] <= other["start_ns"] for one, other in pairwise(runs))


def test_a_program_that_does_not_end_in_time_is_ended() -> None:
    async def run() -> None:
        async with serving("nginx", fill(1, "1gb")) as server:
            await fetched(server, "wget", fill(1, "1gb"), timeout_s=0.05)

    with pytest.raises(RunFailed, match="wget did not end in time") as caught:
        asyncio.run(run())
    assert caught.value.code == "transfer_failed"


def test_a_program_that_is_not_there_is_told_before_the_run() -> None:
    request = {
        "fill": fill(1),
        "version_argv": ["no-such-program", "--version"],
        "interface": "lo",
        "timeout_s": 1.0,
        "quiet_s": 0.0,
    }

    async def run() -> None:
        async with serving("nginx", fill(1)) as server:
            await PeerDownload.ready(HERE, Invocation([]), request, server, repeat=1)

    with pytest.raises(RunFailed, match="cannot start no-such-program"):
        asyncio.run(run())


def test_what_curl_prints_is_read() -> None:
    lines = "12 0.5 1 2 saved/a.bin\n9 0.1 0 2 saved/b.bin\nsomething else\n"
    assert peers.told_by_curl(lines) == (1, "2")
    assert peers.told_by_curl("saved a file\n") is None


# -- whether it is right --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda file: None, None),
        (lambda file: file.unlink(), "missing"),
        (lambda file: file.write_bytes(b""), "wrong_length"),
        (lambda file: file.write_bytes(file.read_bytes() + b"\0"), "wrong_length"),
        # Two parts of a file that were saved in each other's place, zeros between their signatures.
        (
            lambda file: file.write_bytes(file.read_bytes()[2**20 :] + file.read_bytes()[: 2**20]),
            "wrong_bytes",
        ),
        (lambda file: file.write_bytes(file.read_bytes()[:-1] + b"x"), "wrong_bytes"),
    ],
)
def test_a_file_counts_when_it_is_what_was_served(tmp_path: Any, change: Any, code: str | None) -> None:
    expected, saved = tmp_path / "expected", tmp_path / "saved"
    content = b"first signature " + bytes(2**20 - 16) + b"second signature" + bytes(5000)
    for folder in (expected, saved):
        folder.mkdir()
        (folder / "a.bin").write_bytes(content)
    change(saved / "a.bin")
    told = downloader.verified(expected, saved, [{"name": "a.bin", "size_bytes": len(content)}])
    assert [one["code"] for one in told["failures"]] == ([] if code is None else [code])
    assert (told["files_verified_n"], told["bytes"]) == ((1, len(content)) if code is None else (0, 0))

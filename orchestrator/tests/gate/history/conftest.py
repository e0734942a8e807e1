# SPDX-License-Identifier: Apache-2.0
"""Verdicts as gates write them, and a history in SQLite or in PostgreSQL 15 to put them into."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = "usr/lib/postgresql/15/bin"
READY_S = 60


@pytest.fixture
def gate_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes the folder of a gate, its verdict in it; what is given replaces fields of the verdict."""
    from verdicts import verdict

    numbers = itertools.count(1)

    def made(**changed: Any) -> Path:
        document = verdict(**({"id": f"gate-{next(numbers)}"} | changed))
        folder = tmp_path / "results" / document["id"]
        (folder / "session-1/runs/r1").mkdir(parents=True)
        (folder / "session-1/plan.csv").write_text("run_id\n")
        (folder / "session-1/runs/r1/run.json").write_text("{}")
        (folder / "session-1/latest").symlink_to("runs/r1")
        (folder / "verdict.json").write_text(json.dumps(document))
        return folder

    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a history that is not there yet, in either database."""
    if request.param == "sqlite":
        return str(tmp_path / "results" / "history.sqlite")
    return str(request.getfixturevalue("postgresql")())


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """Makes empty databases of a server of this test's own, on a socket in a temporary folder."""
    import psycopg

    # Names of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="netjoule-pg-", dir="/tmp"))
    data = folder / "data"
    initialise = ["-D", str(data), "-A", "trust", "-U", "netjoule", "-E", "UTF8", "--no-locale", "--no-sync"]
    subprocess.run([*_unprivileged("initdb"), *initialise], check=True, stdout=subprocess.DEVNULL)
    serve = [
        "-D",
        str(data),
        "-k",
        str(folder),
        "-c",
        "listen_addresses=",
        "-c",
        "jit=off",
        "-c",
        "fsync=off",
    ]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*_unprivileged("postgres"), *serve], stderr=log)
    numbers = itertools.count(1)

    def made() -> str:
        name = f"history_{next(numbers)}"
        with psycopg.connect(f"host={folder} user=netjoule dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://netjoule@/{name}?host={folder}"

    try:
        _wait_for(folder, server)
        yield made
    finally:
        server.send_signal(signal.SIGQUIT)  # nothing of it is kept
        try:
            server.wait(READY_S)
        finally:
            server.kill()
            shutil.rmtree(folder)


def _unprivileged(name: str) -> list[str]:
    """A program of PostgreSQL, which refuses root: root starts it as another user of a namespace."""
    path = os.pathsep.join([f"/{PROGRAMS}", str(ROOT / ".setup/unpacked" / PROGRAMS)])
    program = shutil.which(name, path=path)
    if program is None:
        pytest.fail("no PostgreSQL 15 here: 'scripts/setup.sh test' unpacks it, or install postgresql-15")
    if os.geteuid() != 0:
        return [program]
    # daemon: PostgreSQL wants a user that has a name, and every Debian has this one.
    return ["unshare", "--user", "--map-user=1", "--map-group=1", program]


def _wait_for(folder: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    end_s = time.monotonic() + READY_S
    while True:
        try:
            psycopg.connect(f"host={folder} user=netjoule dbname=postgres").close()
        except psycopg.OperationalError:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end_s, (folder / "log").read_text()
            time.sleep(0.05)
        else:
            return

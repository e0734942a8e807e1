# SPDX-License-Identifier: Apache-2.0
"""The database of the history: which one, its schema, and one sentence for all that hinders.

Whatever happens here ends with exit code 3 at worst: 1 would be a regression to somebody who calls a gate.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from netjoule.core.errors import HostLacks, UsageError
from netjoule.gate.history.tables import REVISION

DEFAULT = "results/history.sqlite"
VARIABLE = "NETJOULE_HISTORY"
BUSY_S = 30.0
"""How long another writer is waited for."""

# Writers of a PostgreSQL database come one after the other, as SQLite's do; any number that nobody else has.
_WRITER = 0x6E6A6F75
_FULL = ("the disk is full", "free some space, then run 'netjoule history --record FOLDER' on the gate")
_READ_ONLY = ("it is read-only", "check who owns the file and its folder, or name another with --history")
_BUSY = ("another program holds it", "wait for it to end; then repeat the command")
_REVISION = re.compile("[0-9]{4}")
_NO_HISTORY = ("it is no database of netjoule's history", "name another with --history")
_BY_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", _READ_ONLY[1]),
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_NOTADB: _NO_HISTORY,
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "restore a copy, or name another with --history"),
    sqlite3.SQLITE_IOERR: ("it could not be read or written", "check that the disk is sound and not full"),
}
_BY_SQLSTATE = {"53100": _FULL, "25006": _READ_ONLY, "42501": _READ_ONLY, "55P03": _BUSY}


def address(asked: str | None) -> URL:
    """The database that is meant: an option's value, else the environment's, else the default's.

    Args:
        asked: a URL, or the path of an SQLite file.

    Raises:
        UsageError: when it is neither, or of another kind of database.
        HostLacks: for PostgreSQL without its driver.
    """
    named = asked or os.environ.get(VARIABLE) or DEFAULT
    if "://" not in named:
        return URL.create("sqlite", database=named)
    try:
        url = make_url(named)
    except (ArgumentError, ValueError):  # of a port
        raise UsageError("the history's address is no URL", next_step=_FORMS) from None
    if url.drivername == "sqlite" and url.database:
        return url
    if url.drivername not in ("postgresql", "postgresql+psycopg"):
        raise UsageError(f"the history cannot be kept in {url.drivername}", next_step=_FORMS)
    if importlib.util.find_spec("psycopg") is None:
        raise HostLacks(
            "the history is in PostgreSQL, and the Python package psycopg is not installed",
            next_step="pip install --no-deps --require-hashes -r scripts/requirements-postgresql.txt",
        )
    return url.set(drivername="postgresql+psycopg")


_FORMS = "name a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE"


def require(asked: str | None) -> None:
    """Refuse what no history can be kept in. Raises UsageError, HostLacks as `reading`."""
    with reading(asked):
        pass


@contextmanager
def reading(asked: str | None) -> Iterator[Connection | None]:
    """A transaction that sees one state of the history; nothing where there is none yet.

    Raises:
        HostLacks: naming what hinders.
        UsageError: as `address`.
    """
    url = address(asked)
    if url.drivername == "sqlite" and not Path(str(url.database)).exists():
        yield None
        return
    with _connected(url, "BEGIN") as connection:
        found = revision(connection)
        _require_ours(connection, found, url)
        if found in (None, REVISION):
            yield connection if found else None
            return
    with writing(asked) as connection:  # which brings it up to date
        yield connection


@contextmanager
def writing(asked: str | None) -> Iterator[Connection]:
    """A transaction of the only writer, in a history of today's schema: all of it in the end, or nothing.

    Raises:
        HostLacks, UsageError: as `reading`.
    """
    url = address(asked)
    if url.drivername == "sqlite":
        _make_folder(url)
    with _connected(url, "BEGIN IMMEDIATE") as connection:
        if url.drivername != "sqlite":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER})
        found = revision(connection)
        if found != REVISION:
            _require_ours(connection, found, url)
            migrate(connection, REVISION)
        yield connection


def revision(connection: Connection) -> str | None:
    """Of the history's schema; nothing of an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def migrate(connection: Connection, target: str) -> None:
    """Bring the schema up or down to a revision (``base``: no tables), in the transaction of `connection`."""
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    found = revision(connection)
    up = found is None or (target != "base" and target >= found)
    (command.upgrade if up else command.downgrade)(config, target)


def alembic_config() -> Any:
    """What Alembic is to know: where the migrations are."""
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _require_ours(connection: Connection, found: str | None, url: URL) -> None:
    """Refuse a database with somebody else's tables, and one of a newer netjoule. Raises HostLacks."""
    others = found is None and set(inspect(connection).get_table_names()) - {"alembic_version"}
    if others or (found is not None and not _REVISION.fullmatch(found)):
        raise HostLacks(
            f"the history {_shown(url)} cannot be used: {_NO_HISTORY[0]}", next_step=_NO_HISTORY[1]
        )
    if found is not None and found > REVISION:
        raise HostLacks(
            f"the history {_shown(url)} is of a newer netjoule (schema {found}; this one knows {REVISION})",
            next_step="update netjoule, or name another with --history",
        )


@contextmanager
def _connected(url: URL, begin: str) -> Iterator[Connection]:
    engine = _engine(url, begin)
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        raise _refused(url, error) from error
    finally:
        engine.dispose()


def _engine(url: URL, begin: str) -> Engine:
    if url.drivername != "sqlite":
        options = f"-c lock_timeout={int(BUSY_S * 1000)}"
        return create_engine(
            url, poolclass=NullPool, connect_args={"connect_timeout": int(BUSY_S), "options": options}
        )
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_S})

    @event.listens_for(engine, "connect")
    def _set_up(raw: Any, _record: object) -> None:
        # Python's own transactions would leave changes of the schema outside.
        raw.isolation_level = None
        # At once with another one that does it, or on a read-only disk: then it stays as it is.
        with suppress(sqlite3.OperationalError):
            raw.execute("PRAGMA journal_mode=WAL")
        # A verdict that was told is not lost with the power.
        raw.execute("PRAGMA synchronous=FULL")
        raw.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _make_folder(url: URL) -> None:
    try:
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostLacks(
            f"the history {_shown(url)} cannot be made: {error.strerror}", next_step=_READ_ONLY[1]
        ) from error


def _refused(url: URL, error: DBAPIError) -> HostLacks:
    """The sentence for what the database did not do."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        why = _BY_SQLITE.get(code)
    else:
        why = _BY_SQLSTATE.get(getattr(cause, "sqlstate", None) or "")
    what, hint = why or (" ".join(str(cause).split()), "check the database, or name another with --history")
    return HostLacks(f"the history {_shown(url)} cannot be used: {what}", next_step=hint)


def _shown(url: URL) -> str:
    """Its address without a password."""
    if url.drivername == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)

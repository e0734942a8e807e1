# SPDX-License-Identifier: Apache-2.0
"""Which database, its schema up and down, and one sentence for all that hinders."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from verdicts import verdict

from netjoule.core.errors import HostLacks, UsageError
from netjoule.gate.history import database, store
from netjoule.gate.history.tables import REVISION, metadata


def test_the_option_comes_before_the_environment_and_that_before_the_default(monkeypatch):
    monkeypatch.delenv(database.VARIABLE, raising=False)
    assert database.address(None).render_as_string() == "sqlite:///results/history.sqlite"
    monkeypatch.setenv(database.VARIABLE, "sqlite:////srv/gates.sqlite")
    assert database.address(None).database == "/srv/gates.sqlite"
    assert database.address("here.sqlite").database == "here.sqlite"
    assert database.address("postgresql://a@b/c").drivername == "postgresql+psycopg"


@pytest.mark.parametrize("address", ["sqlite://", "mysql://a@b/c", "postgresql://a@b:port/c", "://"])
def test_what_is_no_history_is_refused(address):
    with pytest.raises(UsageError, match="postgresql://"):
        database.address(address)


def test_postgresql_without_its_driver_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(database.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HostLacks, match="requirements-postgresql") as refused:
        database.address("postgresql://a@b/c")
    assert refused.value.exit_code == 3
    assert database.address("here.sqlite").drivername == "sqlite"


def test_the_newest_migration_is_the_one_that_is_asked_for():
    assert ScriptDirectory.from_config(database.alembic_config()).get_heads() == [REVISION]


def test_migrations_go_up_to_the_tables_and_down_to_nothing(url):
    with database.writing(url) as connection:
        assert database.revision(connection) == REVISION
        settings = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=settings), metadata) == []
        made = set(inspect(connection).get_table_names())
        assert made == {*metadata.tables, "alembic_version"}
        database.migrate(connection, "base")
        assert set(inspect(connection).get_table_names()) == {"alembic_version"}
        database.migrate(connection, REVISION)
        assert set(inspect(connection).get_table_names()) == made


def test_a_migration_that_fails_leaves_nothing(url, monkeypatch):
    from netjoule.gate.history import tables

    with database.writing(url) as connection:
        database.migrate(connection, "base")
    monkeypatch.setattr(tables, "REVISION", REVISION)

    def broken(connection, target):
        real(connection, target)
        raise RuntimeError("cut")

    real = database.migrate
    monkeypatch.setattr(database, "migrate", broken)
    with pytest.raises(RuntimeError, match="cut"), database.writing(url):
        pass
    with database.reading(url) as connection:
        assert connection is None


def test_a_history_of_a_newer_netjoule_is_left_alone(gate_folder, url):
    with database.writing(url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    folder = gate_folder()
    for use in (lambda: store.listed(url=url), lambda: store.record(verdict(), folder, url)):
        with pytest.raises(HostLacks, match=r"of a newer netjoule.*update netjoule"):
            use()


def test_passwords_are_not_told():
    with pytest.raises(HostLacks) as refused, database.reading("postgresql://me:hunter2@127.0.0.1:1/nothing"):
        pass
    assert "hunter2" not in str(refused.value)
    assert "postgresql://me:***@127.0.0.1:1/nothing" in str(refused.value)
    assert "\n" not in str(refused.value)


def one_sentence(refused):
    assert refused.value.exit_code == 3
    assert "\n" not in str(refused.value)


def test_an_sqlite_file_that_another_program_holds_is_waited_for_and_named(
    gate_folder, tmp_path, monkeypatch
):
    place = tmp_path / "history.sqlite"
    folder = gate_folder()
    store.record(verdict(), folder, str(place))
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    other = sqlite3.connect(place, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HostLacks, match="another program holds it") as refused:
            store.record(verdict(id="second"), folder, str(place))
        # Readers see what was there.
        assert [row["id"] for row in store.listed(url=str(place))] == ["gate-1"]
    finally:
        other.close()
    one_sentence(refused)


def test_a_postgresql_database_that_another_program_holds_is_waited_for(gate_folder, postgresql, monkeypatch):
    url = postgresql()
    folder = gate_folder()
    store.record(verdict(), folder, url)
    with database.writing(url):
        monkeypatch.setattr(database, "BUSY_S", 0.2)
        with pytest.raises(HostLacks, match="another program holds it") as refused:
            store.record(verdict(id="second"), folder, url)
    one_sentence(refused)


def test_what_is_no_database_is_named_and_kept(gate_folder, tmp_path):
    place = tmp_path / "history.sqlite"
    place.write_text("gate,verdict\n" * 100)
    with pytest.raises(HostLacks, match="no database of netjoule's history") as refused:
        store.record(verdict(), gate_folder(), str(place))
    one_sentence(refused)
    assert place.read_text() == "gate,verdict\n" * 100


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE orders (id INTEGER)"],
        [
            "CREATE TABLE alembic_version (version_num VARCHAR(32))",
            "INSERT INTO alembic_version VALUES ('a3f09c')",
        ],
    ],
)
def test_the_database_of_another_program_is_named_and_kept(gate_folder, tmp_path, statements):
    place = tmp_path / "history.sqlite"
    with sqlite3.connect(place) as raw:
        for statement in statements:
            raw.execute(statement)
    raw.close()
    for use in (
        lambda url: store.listed(url=url),
        lambda url: store.record(verdict(), gate_folder(), url),
        database.require,
    ):
        with pytest.raises(HostLacks, match="no database of netjoule's history") as refused:
            use(str(place))
        one_sentence(refused)
    with sqlite3.connect(place) as raw:
        assert raw.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    raw.close()


READ_ONLY = """
import sys, json
from pathlib import Path
from netjoule.cli.app import run_command
from netjoule.core.errors import NetjouleError
from netjoule.gate.history import store
folder = Path(sys.argv[2])
try:
    store.record(json.loads((folder / "verdict.json").read_text()), folder, sys.argv[1])
except NetjouleError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_read_only_history_is_named(gate_folder, tmp_path, there):
    """As an ordinary user: root may write everywhere."""
    place = tmp_path / "kept" / "history.sqlite"
    folder = gate_folder(id="second")
    place.parent.mkdir()
    if there:
        store.record(verdict(), folder, str(place))
        place.chmod(0o444)
    place.parent.chmod(0o555)
    ended = _as_nobody(place, folder)
    place.parent.chmod(0o755)
    assert ended.returncode == 3, ended.stderr
    assert ended.stdout.count("\n") == 1
    assert "check who owns the file and its folder" in ended.stdout
    assert [path.name for path in place.parent.iterdir()] == (["history.sqlite"] if there else [])


def _as_nobody(place: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    # Without the right to write everywhere; what root owns it may read.
    drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*drop, sys.executable, "-c", READ_ONLY, str(place), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_one_command_line_has_all_of_a_verdict(gate_folder, tmp_path):
    """A history in WAL: whole in one file as soon as nobody has it open."""
    place = tmp_path / "history.sqlite"
    folder = gate_folder()
    store.record(json.loads((folder / "verdict.json").read_text()), folder, str(place))
    assert [path.name for path in tmp_path.glob("history*")] == ["history.sqlite"]
    with sqlite3.connect(place) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert raw.execute("SELECT count(*) FROM gates").fetchone() == (1,)
    raw.close()

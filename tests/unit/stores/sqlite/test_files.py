"""Opening a file: its disk, its schema, the processes that live."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.sqlite import SqliteStore
from papaver.stores.sqlite.connection import check_local, connect_reader, connect_writer, create_file
from papaver.stores.sqlite.database import Readers
from papaver.stores.sqlite.holders import Holders
from papaver.stores.sqlite.migrations import migrate, scripts
from papaver.testing.stores.samples import CLIENT, COMPANY, opened

pytestmark = pytest.mark.anyio


def test_a_network_disk_is_refused(tmp_path: Path) -> None:
    """SQLite's log needs memory that all its users share."""
    path = tmp_path / "store.db"
    create_file(path)
    device = path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /srv rw,noatime shared:1 - nfs4 host:/srv rw\n"
    mounts.write_text("1 2 0:99 / /proc rw - proc proc rw\n" + line)
    with pytest.raises(StoreUnusable, match="network file system \\(nfs4\\)"):
        check_local(path, mounts)


@pytest.mark.parametrize("lines", ["", "1 2 0:99 / / rw - nfs host:/ rw\n", None])
def test_a_disk_that_is_not_listed_is_judged_by_its_locks(tmp_path: Path, lines: str | None) -> None:
    """Not every platform lists them."""
    path, mounts = tmp_path / "store.db", tmp_path / "mountinfo"
    create_file(path)
    if lines is not None:
        mounts.write_text(lines)
    check_local(path, mounts)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """In one sentence that names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="cannot be opened"):
        create_file(tmp_path / "file" / "store.db")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    """Conversations are private; what exists keeps its permissions."""
    path = tmp_path / "made" / "store.db"
    create_file(path)
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
    path.chmod(0o640)
    create_file(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_database_without_a_log_is_refused() -> None:
    """In memory there is none."""
    with pytest.raises(StoreUnusable, match="journal_mode is memory"):
        connect_writer(Path(":memory:"))


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    """Only the writer's thread does."""
    path = tmp_path / "store.db"
    connect_writer(path).close()
    reader = connect_reader(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("CREATE TABLE t (a)")
    reader.close()


def test_every_table_puts_the_company_first(tmp_path: Path) -> None:
    """So that one Company's rows lie together and no query can forget it."""
    connection = connect_writer(tmp_path / "store.db")
    migrate(connection, "store")
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if not name.startswith("sqlite_")
    ]
    keys = {
        table: [name for _, name, *_, place in connection.execute(f"PRAGMA table_info({table})") if place == 1]
        for table in tables
    }
    connection.close()
    assert len(tables) >= 10
    assert keys == {table: ["company"] for table in tables}


@pytest.mark.requirement("ca-99")
@pytest.mark.parametrize("family", ["store", "vault"])
def test_a_file_is_migrated_once(tmp_path: Path, family: str) -> None:
    """The scripts are numbered without gaps, and a later file is not touched."""
    name = "store" if family == "store" else "vault"
    connection = connect_writer(tmp_path / "store.db")
    known = scripts(name)
    assert list(known) == list(range(1, len(known) + 1))
    assert [migrate(connection, name), migrate(connection, name)] == [len(known), 0]
    connection.execute(f"PRAGMA user_version = {len(known) + 1}")
    with pytest.raises(StoreUnusable, match="later version"):
        migrate(connection, name)
    connection.close()


def test_a_broken_migration_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One script is one transaction."""
    script = "CREATE TABLE a (b);\nCREATE TABLE a (b);\n"

    def one_script(_: str) -> dict[int, str]:
        return {1: script}

    monkeypatch.setattr("papaver.stores.sqlite.migrations.scripts", one_script)
    connection = connect_writer(tmp_path / "store.db")
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "store")
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    connection.close()


async def test_a_later_file_is_left_alone(tmp_path: Path) -> None:
    """Opening says so and lets go of everything."""
    path = tmp_path / "store.db"
    connection = connect_writer(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(StoreUnusable, match="schema 999"):
        await store.open()
    assert _names(tmp_path / "store.db-holders") == []


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Reads as well as writes."""
    async with opened(lambda: SqliteStore(tmp_path / "store.db")) as store:
        own = await store.tables(COMPANY)
    for action in (own.clients.clients(), own.clients.verdict(CLIENT), own.clients.judge(CLIENT, None)):
        with pytest.raises(StoreFailed, check=lambda fault: "not open" in fault.detail):
            await action


def test_a_damaged_read_is_told(tmp_path: Path) -> None:
    """Never as a driver's error."""
    path = tmp_path / "store.db"
    connect_writer(path).close()
    readers = Readers(path)
    readers.open()
    with pytest.raises(StoreFailed, check=lambda fault: "no such table" in fault.detail):
        readers.near(lambda connection: connection.execute("SELECT * FROM events").fetchone())
    readers.close()


def test_a_process_lives_as_long_as_its_lock(tmp_path: Path) -> None:
    """Whatever became of its pid."""
    one, two = Holders(tmp_path / "holders"), Holders(tmp_path / "holders")
    one.open()
    two.open()
    assert one.name != two.name
    assert (one.lives(one.name), one.lives(two.name), two.lives(one.name)) == (True, True, True)
    name = two.name
    two.close()
    two.close()
    assert (one.lives(name), two.lives(name)) == (False, False)
    one.close()


def test_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    """A kill leaves the file without its lock; strangers' files stay."""
    folder = tmp_path / "holders"
    folder.mkdir()
    dead = folder / "sqlite-1-0123456789abcdef"
    dead.touch()
    (folder / "README").touch()
    one = Holders(folder)
    assert not one.lives(dead.name)
    one.open()
    assert sorted(path.name for path in folder.iterdir()) == ["README", one.name]
    one.close()


def test_a_name_of_another_kind_is_believed(tmp_path: Path) -> None:
    """Only its `until` ends such a lease; a name is no path either."""
    holders = Holders(tmp_path)
    assert [holders.lives(name) for name in ("runner", "../../etc/passwd", "sqlite-1-x")] == [True, True, True]


def test_a_lock_file_that_cannot_be_opened_may_live(tmp_path: Path) -> None:
    """Doubt never voids a lease."""
    name = "sqlite-1-0123456789abcdef"
    (tmp_path / name).mkdir()
    assert Holders(tmp_path).lives(name)

"""The number that tells every process when an operator's word has changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from papaver.stores.sqlite import SqliteStore, writer
from papaver.stores.sqlite.generation import Generation
from papaver.testing.stores.samples import CLIENT, code_of, tables

pytestmark = pytest.mark.anyio


def test_two_maps_of_one_file_are_one_number(tmp_path: Path) -> None:
    """Odd while something changes; the next to open mends what a dead process has left odd."""
    one, two = Generation(tmp_path / "n"), Generation(tmp_path / "n")
    one.open()
    two.open()
    one.changing()
    one.changing()
    assert (one.number, two.number) == (1, 1)
    two.close()
    two.open()
    assert one.number == 2
    two.changed()
    one.close()
    one.close()
    assert (one.number, two.number) == (0, 2)
    two.close()


async def test_a_verdict_is_obeyed_by_another_process_at_once(tmp_path: Path) -> None:
    """Also one that is in memory already."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as one, tables(lambda: SqliteStore(path)) as two:
        for verdict in ("blocked", "allowed", None, "blocked"):
            await one.clients.judge(CLIENT, verdict)
            assert [await side.clients.verdict(CLIENT) for side in (one, two, two)] == [verdict] * 3


async def test_a_verdict_whose_commit_failed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not written is not obeyed, and the number is even again."""

    def fail(_: object, __: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    path = tmp_path / "store.db"
    number = Generation(path.with_name("store.db-clients"))
    async with tables(lambda: SqliteStore(path)) as own:
        number.open()
        with monkeypatch.context() as patched:
            patched.setattr("papaver.stores.crash.WATCHED", True)
            patched.setattr(writer, "_pass", fail)
            assert await code_of(own.clients.judge(CLIENT, "blocked")) == "temporarily_unavailable"
        assert (await own.clients.verdict(CLIENT), number.number) == (None, 2)
        number.close()


async def test_nothing_is_remembered_while_a_verdict_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two steps each question goes to the file, and memory has a bound."""
    monkeypatch.setattr("papaver.stores.sqlite.clients.KEPT", 2)
    path = tmp_path / "store.db"
    number = Generation(path.with_name("store.db-clients"))
    async with tables(lambda: SqliteStore(path)) as own:
        number.open()
        await own.clients.judge(CLIENT, "blocked")
        number.changing()
        assert [await own.clients.verdict(CLIENT) for _ in range(2)] == ["blocked"] * 2
        with sqlite3.connect(path) as other:
            other.execute("UPDATE clients SET verdict = 'allowed'")
        other.close()
        assert await own.clients.verdict(CLIENT) == "allowed"
        number.changed()
        for n in range(9):
            assert await own.clients.verdict(type(CLIENT)(f"https://agent{n}.example/a.json")) is None
        assert await own.clients.verdict(CLIENT) == "allowed"
        number.close()

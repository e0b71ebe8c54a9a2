"""What stands beside a head in SQLite, and the outbox: what a message rewrites, and what a failed commit leaves."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from papaver.ports.company import ConversationLog
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, NoteKind
from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore, writer
from papaver.testing.stores.samples import NOW, answer, at, code_of, lease, receipt_key, say, speak, tables

pytestmark = pytest.mark.anyio
A, BAD = ConversationId("cnv_a"), ConversationId("cnv_bad")


def fail(name: str) -> None:
    if name.endswith("before-commit"):
        raise sqlite3.OperationalError("disk I/O error")


async def tell(log: ConversationLog, *conversations: str) -> None:
    notes = tuple(Note(NoteKind.MESSAGE, ConversationId(one), 1, 1) for one in conversations)
    await log.apply(Keys(), lambda _: Change(None, notes=notes))


async def told(log: ConversationLog) -> list[tuple[int, str]]:
    """Number and conversation of all that may be taken now."""
    found: list[tuple[int, str]] = []
    while (one := await log.take_note("teller", now=NOW, until=NOW + 9)) is not None:
        found.append((one.n, one.note.conversation))
    return found


async def test_a_message_does_not_touch_what_rarely_changes(tmp_path: Path) -> None:
    """Neither who waits since when nor what may go one day: their indexes stay as they are, whatever a turn says."""
    path = tmp_path / "store.db"

    def queue(loaded: Loaded, since: datetime | None) -> Change[None]:
        assert loaded.head is not None
        return Change(None, (replace(loaded.head, queued_at=since),))

    async with tables(lambda: SqliteStore(path)) as own:
        for _ in range(2):
            await speak(own.log, A)
        await own.log.apply(Keys(A), lambda loaded: queue(loaded, at()))
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "CREATE TRIGGER rare BEFORE UPDATE OF attends, attends_since, prunable ON conversations"
                " BEGIN SELECT RAISE(ABORT, 'touched'); END"
            )
        assert await speak(own.log, A, when=90_000) == 3
        turn = await lease(own.log, when=90_000)
        assert turn is not None
        assert await answer(own.log, turn) == 5
        left = own.log.apply(Keys(A), lambda loaded: queue(loaded, None))
        assert await code_of(left) == "temporarily_unavailable", "who waits no longer is written"


async def test_a_failed_commit_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing that it held back, nor the number, goes into the next one."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        with monkeypatch.context() as patched:
            patched.setattr("papaver.stores.crash.WATCHED", True)
            patched.setattr(writer, "crash_point", fail)
            said = say(A, receipt=True)
            lost = own.log.apply(
                Keys(A, receipt=receipt_key("msg_1")),
                lambda loaded: replace(said(loaded), notes=(Note(NoteKind.MESSAGE, A, 1, 1),)),
            )
            assert await code_of(lost) == "temporarily_unavailable"
        await tell(own.log, "cnv_b")
        assert await told(own.log) == [(1, "cnv_b")]


async def test_a_change_that_fails_takes_no_note_of_its_group_along(tmp_path: Path) -> None:
    """The group is undone and done again one by one: each note is there once, in order."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "CREATE TRIGGER bad BEFORE INSERT ON notes WHEN new.conversation = 'cnv_bad'"
                " BEGIN SELECT RAISE(ABORT, 'bad row'); END"
            )
        codes = await asyncio.gather(*(code_of(tell(own.log, one)) for one in ("cnv_a", BAD, "cnv_b")))
        assert codes == ["", "temporarily_unavailable", ""]
        assert await told(own.log) == [(1, "cnv_a"), (2, "cnv_b")]


async def test_many_notes_are_numbered_in_their_order(tmp_path: Path) -> None:
    """Of one change and of several in one group, more than one statement takes."""
    names = [f"cnv_{n}" for n in range(150)]
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        await asyncio.gather(tell(own.log, *names[:100]), tell(own.log, *names[100:]))
        assert await told(own.log) == list(enumerate(names, 1))

"""The outbox of one Company in SQLite: what is to be told, each conversation in its order."""

from __future__ import annotations

import sqlite3

from papaver.ports.company import LeasedNote
from papaver.protocol.conversation.change import Note, NoteKind
from papaver.protocol.terms import ConversationId
from papaver.stores.notify import RegisteredWatch
from papaver.stores.sqlite.turns import SqliteTurns
from papaver.stores.sqlite.writer import Transaction
from papaver.stores.turns import NOTES

__all__ = ["SqliteOutbox"]

_FIRST = (
    "SELECT n, conversation, kind, seq, first_seq, attempts FROM notes AS note"
    " WHERE company = ? AND (free_at <= ? OR holder IN ({dead}))"
    " AND NOT EXISTS (SELECT 1 FROM notes AS earlier WHERE earlier.company = note.company"
    " AND earlier.conversation = note.conversation AND earlier.n < note.n)"
    " ORDER BY n LIMIT 1"
)


class SqliteOutbox(SqliteTurns):
    """The outbox's part of `ConversationLog`."""

    def watch_notes(self) -> RegisteredWatch:
        self._database.start_watching()
        return self._database.registry.watch((self._company, NOTES))

    async def take_note(self, holder: str, *, now: float, until: float) -> LeasedNote | None:
        # A look first, as for turns: mostly there is nothing to write.
        if self._database.readers.near(lambda connection: self._first(connection, now)) is None:
            return None

        def taken(transaction: Transaction) -> LeasedNote | None:
            connection = transaction.settled()
            found = self._first(connection, now)
            if found is not None:
                connection.execute(
                    "UPDATE notes SET attempts = attempts + 1, free_at = ?, holder = ? WHERE company = ? AND n = ?",
                    (until, holder, self._company, found.n),
                )
            return found

        return await self._database.writer.run(taken)

    def _first(self, connection: sqlite3.Connection, now: float) -> LeasedNote | None:
        holders = connection.execute(
            "SELECT DISTINCT holder FROM notes WHERE company = ? AND holder IS NOT NULL", (self._company,)
        )
        dead = [holder for (holder,) in holders if not self._database.holders.lives(holder)]
        row = connection.execute(_FIRST.format(dead=", ".join("?" * len(dead))), (self._company, now, *dead)).fetchone()
        if row is None:
            return None
        n, conversation, kind, seq, first_seq, attempts = row
        return LeasedNote(n, Note(NoteKind(kind), ConversationId(conversation), seq, first_seq), attempts + 1)

    async def done_note(self, note: LeasedNote) -> None:
        def done(transaction: Transaction) -> None:
            transaction.settled().execute("DELETE FROM notes WHERE company = ? AND n = ?", (self._company, note.n))
            transaction.topics.add((self._company, NOTES))

        await self._database.writer.run(done)

    async def later_note(self, note: LeasedNote, at: float) -> None:
        def put_off(transaction: Transaction) -> None:
            transaction.settled().execute(
                "UPDATE notes SET free_at = ?, holder = NULL WHERE company = ? AND n = ?", (at, self._company, note.n)
            )

        await self._database.writer.run(put_off)

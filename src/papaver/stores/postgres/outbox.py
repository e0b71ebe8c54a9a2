"""The outbox of one Company in PostgreSQL: what is to be told, each conversation in its order."""

from __future__ import annotations

from papaver.ports.company import LeasedNote
from papaver.protocol.conversation.change import Note, NoteKind
from papaver.protocol.terms import ConversationId
from papaver.stores.postgres.turns import PostgresTurns
from papaver.stores.turns import NOTES

__all__ = ["PostgresOutbox"]

_FREE = "(free_at <= $2 OR holder = ANY($3::text[]))"
_TAKE = (
    "UPDATE notes SET attempts = attempts + 1, free_at = $4, holder = $5 WHERE n = ("
    f"SELECT n FROM notes AS note WHERE company = $1 AND {_FREE}"
    " AND NOT EXISTS (SELECT FROM notes AS earlier WHERE earlier.company = note.company"
    " AND earlier.conversation = note.conversation AND earlier.n < note.n)"
    f" ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED) AND {_FREE}"
    " RETURNING n, conversation, kind, seq, first_seq, attempts"
)


class PostgresOutbox(PostgresTurns):
    """The outbox's part of `ConversationLog`."""

    async def take_note(self, holder: str, *, now: float, until: float) -> LeasedNote | None:
        found = await self._fetch(_TAKE, now, list(self._holders.dead), until, holder)
        if not found:
            return None
        n, conversation, kind, seq, first_seq, attempts = found[0]
        return LeasedNote(n, Note(NoteKind(kind), ConversationId(conversation), seq, first_seq), attempts)

    async def done_note(self, note: LeasedNote) -> None:
        await self._value("DELETE FROM notes WHERE company = $1 AND n = $2", note.n)
        self._wake({(self._company, NOTES)})

    async def later_note(self, note: LeasedNote, at: float) -> None:
        await self._value("UPDATE notes SET free_at = $3, holder = NULL WHERE company = $1 AND n = $2", note.n, at)

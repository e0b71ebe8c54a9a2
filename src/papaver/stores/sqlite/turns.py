"""The turn queue of one Company in SQLite: due conversations, leases with fencing, the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from papaver.ports.company import LeasedTurn, Share
from papaver.protocol.conversation.record import read_head, write_head
from papaver.protocol.conversation.state import Lease
from papaver.protocol.terms import ConversationId, TurnId
from papaver.stores.digests import number
from papaver.stores.notify import RegisteredWatch
from papaver.stores.sqlite.database import Database
from papaver.stores.sqlite.group import Group, lost
from papaver.stores.sqlite.shares import Shares
from papaver.stores.sqlite.writer import Transaction
from papaver.stores.turns import begun, continues, given_back

__all__ = ["SqliteTurns", "dead_holders"]


def dead_holders(connection: sqlite3.Connection, company: int, database: Database) -> tuple[str, ...]:
    """Holders of turns that do not live any more."""
    rows = connection.execute(
        "SELECT DISTINCT holder FROM conversations WHERE company = ? AND holder IS NOT NULL",
        (company,),
    )
    return tuple(holder for (holder,) in rows if not database.holders.lives(holder))


class SqliteTurns:
    """The turns' half of `ConversationLog`."""

    def __init__(self, database: Database, company: int) -> None:
        self._database = database
        self._company = company
        self._leasing = 0
        self.group = Group(company)

    def watch_turns(self) -> RegisteredWatch:
        self._database.start_watching()
        return self._database.registry.watch((self._company, ""))

    async def lease(
        self, holder: str, turn_id: TurnId, *, now: float, until: float, share: Share | None = None
    ) -> LeasedTurn | None:
        # A look first: several processes are woken by one message, and only one of them has to write.
        if not self._leasing and not self._database.readers.near(
            lambda connection: self._look(connection, holder, now, share)
        ):
            return None
        self._leasing += 1
        try:
            return await self._database.writer.run(
                lambda transaction: self._lease(transaction, holder, turn_id, now, until, share), "lease"
            )
        finally:
            self._leasing -= 1

    def _look(self, connection: sqlite3.Connection, holder: str, now: float, share: Share | None) -> bool:
        """Whether there is a turn to lease."""
        dead = dead_holders(connection, self._company, self._database)
        due = self._longest_due(connection, now, dead) is not None
        if share is None or not due:
            return due
        clients, users = Shares(connection, self._company, holder).full(share)
        return not (clients or users) or self._longest_due(connection, now, dead, clients, users) is not None

    def _waiting(self, now: float, dead: tuple[str, ...]) -> tuple[str, tuple[object, ...]]:
        """The condition of a due turn that nobody holds, and its values."""
        nobody = f"(holder IS NULL OR until <= ? OR holder IN ({', '.join('?' * len(dead))}))"
        return f"company = ? AND due_since IS NOT NULL AND {nobody}", (self._company, now, *dead)

    def _longest_due(
        self,
        connection: sqlite3.Connection,
        now: float,
        dead: tuple[str, ...],
        clients: Sequence[int] = (),
        users: Sequence[int] = (),
    ) -> ConversationId | None:
        """But of these clients and Users none."""
        waiting, values = self._waiting(now, dead)
        for column, full in (("client_key", clients), ("user_key", users)):
            if full:
                waiting += f" AND {column} NOT IN ({', '.join('?' * len(full))})"
        row = connection.execute(
            f"SELECT id FROM conversations WHERE {waiting} ORDER BY due_since LIMIT 1", (*values, *clients, *users)
        ).fetchone()
        return None if row is None else ConversationId(row[0])

    def _lease(
        self,
        transaction: Transaction,
        holder: str,
        turn_id: TurnId,
        now: float,
        until: float,
        share: Share | None,
    ) -> LeasedTurn | None:
        group = self.group
        group.enter(transaction)
        connection = transaction.settled()
        if group.dead is None:
            group.dead = dead_holders(connection, self._company, self._database)
        shares = group.shares.get(holder)
        if shares is None and share is not None:
            shares = group.shares[holder] = Shares(connection, self._company, holder)
        clients, users = ((), ()) if shares is None or share is None else shares.full(share)
        conversation = self._longest_due(connection, now, group.dead, clients, users)
        if conversation is None:
            return None
        stored = group.stored(conversation)
        assert stored is not None
        head, token, goes_on = begun(stored.head), stored.token + 1, False
        of_it = (self._company, conversation)
        earlier, until_seq = connection.execute(
            "SELECT turn_id, until_seq FROM conversations WHERE company = ? AND id = ?", of_it
        ).fetchone()
        if earlier is not None and continues(head, until_seq):
            goes_on, turn_id = True, TurnId(earlier)
        else:
            until_seq = head.asked_seq
        connection.execute(
            "UPDATE conversations SET head = ?, token = ?, turn_id = ?, until_seq = ?, holder = ?, until = ?"
            " WHERE company = ? AND id = ?",
            (write_head(head), token, turn_id, until_seq, holder, until, *of_it),
        )
        journal = self._journal(connection, conversation, keep=goes_on) if earlier is not None else {}
        group.leased(head, token, holder)
        if shares is not None:
            shares.add(number(head.client_id), number(head.client_id, head.user_id))
        return LeasedTurn(Lease(conversation, turn_id, token, holder, until), head, until_seq, journal)

    def _journal(self, connection: sqlite3.Connection, conversation: ConversationId, *, keep: bool) -> dict[str, bytes]:
        of_it = (self._company, conversation)
        if keep:
            rows = connection.execute("SELECT key, value FROM journal WHERE company = ? AND conversation = ?", of_it)
            return dict(rows.fetchall())
        connection.execute("DELETE FROM journal WHERE company = ? AND conversation = ?", of_it)
        return {}

    async def renew(self, lease: Lease, until: float) -> bool:
        def renewed(transaction: Transaction) -> bool:
            return (
                transaction.connection.execute(
                    "UPDATE conversations SET until = ?"
                    " WHERE company = ? AND id = ? AND token = ? AND holder IS NOT NULL",
                    (until, self._company, lease.conversation_id, lease.token),
                ).rowcount
                == 1
            )

        return await self._database.writer.run(renewed)

    async def release(self, lease: Lease) -> None:
        def released(transaction: Transaction) -> None:
            connection = transaction.connection
            if not self._holds(connection, lease):
                return
            of_it = (self._company, lease.conversation_id)
            (record,) = connection.execute(
                "SELECT head FROM conversations WHERE company = ? AND id = ?", of_it
            ).fetchone()
            connection.execute(
                "UPDATE conversations SET head = ?, holder = NULL, until = NULL WHERE company = ? AND id = ?",
                (write_head(given_back(read_head(record))), *of_it),
            )
            transaction.topics.add((self._company, ""))

        await self._database.writer.run(released)

    async def journal(self, lease: Lease, key: str, value: bytes) -> bool:
        def noted(transaction: Transaction) -> bool:
            self.group.enter(transaction)
            held = not lost(lease, self.group.stored(lease.conversation_id))
            if held:
                self.group.note_journal(lease.conversation_id, key, value)
            return held

        return await self._database.writer.run(noted, "journal")

    def _holds(self, connection: sqlite3.Connection, lease: Lease) -> bool:
        """Whether this lease is still the newest."""
        row = connection.execute(
            "SELECT token, holder FROM conversations WHERE company = ? AND id = ?",
            (self._company, lease.conversation_id),
        ).fetchone()
        return row is not None and row[0] == lease.token and row[1] is not None

    async def turns_pending(self, now: float) -> tuple[int, float]:
        def query(connection: sqlite3.Connection) -> tuple[int, float]:
            waiting, values = self._waiting(now, dead_holders(connection, self._company, self._database))
            count, oldest = connection.execute(
                f"SELECT count(*), min(due_since) FROM conversations WHERE {waiting}", values
            ).fetchone()
            return count, now if oldest is None else oldest

        return await self._database.readers.far(query)

    async def turns_held(self, now: float) -> int:
        def query(connection: sqlite3.Connection) -> int:
            dead = dead_holders(connection, self._company, self._database)
            (count,) = connection.execute(
                "SELECT count(*) FROM conversations WHERE company = ? AND holder IS NOT NULL AND until > ?"
                f" AND holder NOT IN ({', '.join('?' * len(dead))})",
                (self._company, now, *dead),
            ).fetchone()
            return count

        return await self._database.readers.far(query)

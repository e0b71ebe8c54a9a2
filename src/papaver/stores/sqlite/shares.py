"""How many turns a process runs for each client and each User, so that none of them has all of it."""

from __future__ import annotations

import sqlite3
from collections import Counter

from papaver.ports.company import Share

__all__ = ["Shares"]


class Shares:
    """What `holder` runs now, by the keys of the rows."""

    __slots__ = ("_clients", "_users")

    def __init__(self, connection: sqlite3.Connection, company: int, holder: str) -> None:
        self._clients: Counter[int] = Counter()
        self._users: Counter[int] = Counter()
        for client, user, count in connection.execute(
            "SELECT client_key, user_key, count(*) FROM conversations WHERE company = ? AND holder = ?"
            " GROUP BY client_key, user_key",
            (company, holder),
        ):
            self._clients[client] += count
            self._users[user] += count

    def add(self, client: int, user: int) -> None:
        """One more was leased."""
        self._clients[client] += 1
        self._users[user] += 1

    def full(self, share: Share) -> tuple[list[int], list[int]]:
        """The clients, and the Users, that have all they may have."""
        clients = [key for key, count in self._clients.items() if count >= share.client]
        return clients, [key for key, count in self._users.items() if count >= share.user]

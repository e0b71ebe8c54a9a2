"""The outfitter's users: an e-mail address and a password, hashed with Argon2, in the shop's database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

__all__ = ["TooManyTries", "Users"]

TRIES = 10
WINDOW = 60.0
"""So many wrong passwords for one address in so many seconds, and no other is looked at."""


class TooManyTries(Exception):
    """Wait a while before the next try."""


class Users:
    """Who may sign in. `clock` counts seconds that never go back."""

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = str(path), clock
        self._hasher = PasswordHasher()
        # For an unknown address a hash is checked as well, so that the answer's time does not tell it apart.
        self._nobody = self._hasher.hash("nobody has this password")
        self._tries: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def add(self, email: str, account: str, password: str) -> None:
        with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
            connection.execute(
                "INSERT INTO users VALUES (?, ?, ?)", (email.lower(), account, self._hasher.hash(password))
            )

    def check(self, email: str, password: str) -> str | None:
        """The account of who has this password; None for a wrong one. Raises TooManyTries."""
        name = email.strip().lower()
        self._count(name)
        with closing(sqlite3.connect(self._path, timeout=5)) as connection:
            row = connection.execute("SELECT account, password_hash FROM users WHERE email = ?", (name,)).fetchone()
        account, stored = row or (None, self._nobody)
        try:
            self._hasher.verify(stored, password)
        except (VerifyMismatchError, InvalidHashError):
            return None
        with self._lock:
            self._tries.pop(name, None)
        return account

    def _count(self, name: str) -> None:
        now = self._clock()
        with self._lock:
            tries = [at for at in self._tries.get(name, []) if at > now - WINDOW]
            if len(tries) >= TRIES:
                raise TooManyTries
            self._tries = {one: ats for one, ats in self._tries.items() if ats[-1] > now - WINDOW}
            self._tries[name] = [*tries, now]

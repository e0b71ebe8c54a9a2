"""Numbered SQL files and their runner: one transaction each, under the store's file lock, noted in `user_version`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import Literal

from papaver.stores.faults import StoreUnusable

__all__ = ["migrate", "scripts"]


def scripts(family: Literal["store", "vault"]) -> dict[int, str]:
    """Number → SQL, in order."""
    folder = resources.files("papaver.stores.sqlite.migrations") / family
    found = {int(file.name[:4]): file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    return dict(sorted(found.items()))


def migrate(connection: sqlite3.Connection, family: Literal["store", "vault"]) -> int:
    """Bring the file up to date; how many scripts that took. The caller holds the file lock.

    Raises StoreUnusable for a file that a later version of papaver has written.
    """
    known = scripts(family)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > max(known):
        raise StoreUnusable(
            f"the file was written by a later version of papaver (schema {version}, this one knows {max(known)})"
        )
    missing = [number for number in known if number > version]
    for number in missing:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(known[number]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except sqlite3.Error:
            connection.rollback()
            raise
    return len(missing)


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

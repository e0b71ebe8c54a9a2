"""Numbered SQL files and their runner: one transaction under an advisory lock, noted in a table of each family."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final, Literal

from papaver.stores.faults import StoreUnusable
from papaver.stores.postgres.server import Connection

__all__ = ["migrate", "scripts"]


Family = Literal["vault", "store"]
_NOTED: Final[Mapping[Family, str]] = {"vault": "migrations", "store": "store_migrations"}


def scripts(family: Family = "vault") -> dict[int, str]:
    """Number → SQL, in order."""
    folder = resources.files("papaver.stores.postgres.migrations") / family
    found = {int(file.name[:4]): file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    return dict(sorted(found.items()))


async def migrate(connection: Connection, schema: str, family: Family = "vault") -> int:
    """Bring the schema up to date, and make it when it is not there; how many scripts that took.

    Inside the caller's transaction: until it ends, everyone else who opens one in this schema waits. Raises
    StoreUnusable for tables that a later version of papaver has written.
    """
    noted = _NOTED[family]
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"papaver migrations {schema}")
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema):
        await connection.execute(f'CREATE SCHEMA "{schema}"')
    if await connection.fetchval("SELECT to_regclass($1)", noted) is None:
        await connection.execute(f"CREATE TABLE {noted} (number integer PRIMARY KEY)")
    known = scripts(family)
    version = await connection.fetchval(f"SELECT coalesce(max(number), 0) FROM {noted}")
    if version > max(known):
        raise StoreUnusable(
            f"the schema {schema} was written by a later version of papaver"
            f" (schema {version}, this one knows {max(known)})"
        )
    missing = [number for number in known if number > version]
    for number in missing:
        await connection.execute(known[number])
        await connection.execute(f"INSERT INTO {noted} (number) VALUES ($1)", number)
    return len(missing)

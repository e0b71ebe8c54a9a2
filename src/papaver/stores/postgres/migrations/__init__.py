"""Numbered SQL files and their runner: one transaction under an advisory lock, noted in the table `migrations`."""

from __future__ import annotations

from importlib import resources

from papaver.stores.faults import StoreUnusable
from papaver.stores.postgres.server import Connection

__all__ = ["migrate", "scripts"]


def scripts() -> dict[int, str]:
    """Number → SQL, in order."""
    folder = resources.files("papaver.stores.postgres.migrations") / "vault"
    found = {int(file.name[:4]): file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    return dict(sorted(found.items()))


async def migrate(connection: Connection, schema: str) -> int:
    """Bring the schema up to date, and make it when it is not there; how many scripts that took.

    Inside the caller's transaction: until it ends, everyone else who opens a vault in this schema waits. Raises
    StoreUnusable for tables that a later version of papaver has written.
    """
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"papaver migrations {schema}")
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema):
        await connection.execute(f'CREATE SCHEMA "{schema}"')
    if await connection.fetchval("SELECT to_regclass('migrations')") is None:
        await connection.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
    known = scripts()
    version = await connection.fetchval("SELECT coalesce(max(number), 0) FROM migrations")
    if version > max(known):
        raise StoreUnusable(
            f"the schema {schema} was written by a later version of papaver"
            f" (schema {version}, this one knows {max(known)})"
        )
    missing = [number for number in known if number > version]
    for number in missing:
        await connection.execute(known[number])
        await connection.execute("INSERT INTO migrations (number) VALUES ($1)", number)
    return len(missing)

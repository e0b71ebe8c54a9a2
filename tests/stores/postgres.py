"""The PostgreSQL server of the tests, asked directly."""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["DSN", "connect", "query"]

DSN = os.environ.get("PAPAVER_POSTGRES_URL") or "postgresql://postgres@127.0.0.1:5432/postgres"


async def connect() -> Any:
    """A connection of asyncpg, which has no types."""
    return await importlib.import_module("asyncpg").connect(DSN)


async def query(statement: str, *values: object) -> list[Any]:
    """The rows, read on a connection of its own."""
    connection = await connect()
    try:
        return await connection.fetch(statement, *values)
    finally:
        await connection.close()

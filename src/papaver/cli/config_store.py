"""`store` and `redis` of `papaver.toml`: a file, a database, or the environment variable that names one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from papaver.ports.company import CompanyStore
from papaver.protocol.errors import ConfigurationError
from papaver.stores.sqlite.store import SqliteStore

__all__ = ["store_of"]

_VARIABLE: Final = "env:"
_DATABASES: Final = ("postgresql://", "postgres://")


def store_of(path: Path, store: str, redis: str | None) -> CompanyStore:
    """The store that the file at `path` names. Raises ConfigurationError; no message holds a password."""
    named, cache = _resolved(path, "store", store), None if redis is None else _resolved(path, "redis", redis)
    if named.startswith(_DATABASES):
        from papaver.stores.postgres.store import PostgresStore

        return PostgresStore(named, redis=cache)
    if "://" in named:
        raise _wrong(path, "store is a URL of another kind, expected postgresql://… or the path of a file")
    if cache is not None:
        raise _wrong(path, 'redis is given, but the store is a file; Redis goes with store = "postgresql://…"')
    if not Path(named).name or (path.parent / named).is_dir():
        raise _wrong(path, f'store is "{named}", expected the path of a file such as "poppy.db"')
    return SqliteStore(path.parent / named)


def _resolved(path: Path, key: str, value: str) -> str:
    if not value.startswith(_VARIABLE):
        return value
    name = value.removeprefix(_VARIABLE)
    found = os.environ.get(name)
    if not found:
        raise _wrong(path, f"{key} is {value}, and the environment has no {name}")
    return found


def _wrong(path: Path, what: str) -> ConfigurationError:
    return ConfigurationError(f"{path}: {what}", rule="config.file")

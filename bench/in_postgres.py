"""PostgreSQL for a figure: the server that PAPAVER_POSTGRES_URL names, or one of the figure's own; schemas in it."""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["dsn", "execute", "own_server", "schema_place"]

VARIABLE = "PAPAVER_POSTGRES_URL"


def dsn() -> str:
    return os.environ.get(VARIABLE) or "postgresql://postgres@127.0.0.1:5432/postgres"


@contextmanager
def own_server(folder: Path) -> Generator[str]:
    """A fresh server in a folder beside this one, unless one is named or none is installed; what was used, in a word.

    So that it lies in memory where a store in a file does. As root it runs as the user `postgres`, as it demands.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, programs)]))
    if os.environ.get(VARIABLE) or found is None:
        yield "a server that runs"
        return
    place = Path(tempfile.mkdtemp(prefix="papaver-bench-", dir=folder.parent))
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(place, user)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = [found, "--pgdata", f"{place}/data", "--username", "postgres", "--auth", "trust"]
    subprocess.run(made, user=user, check=True, stdout=subprocess.DEVNULL, cwd=place)
    options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    with (place / "log").open("wb") as log:
        command = [str(Path(found).with_name("postgres")), "-D", f"{place}/data", *words]
        server = subprocess.Popen(command, user=user, stdout=log, stderr=log, cwd=place)
    os.environ[VARIABLE] = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        _wait(port)
        yield "its own server"
    finally:
        del os.environ[VARIABLE]
        server.terminate()
        server.wait(60)
        shutil.rmtree(place)


def _wait(port: int, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            execute("SELECT 1")
        except (OSError, importlib.import_module("asyncpg").CannotConnectNowError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"PostgreSQL does not answer on port {port}")


@contextmanager
def schema_place() -> Generator[str]:
    """A schema's name of one's own; what it names is dropped afterwards."""
    name = f"papaver_bench_{secrets.token_hex(6)}"
    try:
        yield name
    finally:
        execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def execute(*statements: str) -> Sequence[Any]:
    """The rows of the last one. Each commits by itself."""
    return asyncio.run(_execute(statements))


async def _execute(statements: Sequence[str]) -> Sequence[Any]:
    connection: Any = await importlib.import_module("asyncpg").connect(dsn())
    try:
        rows: Sequence[Any] = ()
        for statement in statements:
            rows = await connection.fetch(statement)
        return rows
    finally:
        await connection.close()

"""A PostgreSQL and a Redis of a figure's own, which can be stopped and started again while others use them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

__all__ = ["OwnPostgres", "OwnRedis", "free_port", "services"]

PLACES = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def program(name: str) -> str:
    """Its path. Raises FileNotFoundError, which names it."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *PLACES]))
    if found is None:
        raise FileNotFoundError(f"{name} is not installed")
    return found


class Service:
    """One program on a free port; it is there when its port takes connections."""

    def __init__(self, place: Path) -> None:
        self.place, self.port = place, free_port()
        self._process: asyncio.subprocess.Process | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    async def start(self, **options: Any) -> None:
        with (self.place / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command(), stdout=log, stderr=log, cwd=self.place, **options
            )
        async with asyncio.timeout(60):
            while not await self._answers():
                assert self._process.returncode is None, f"it ended; see {self.place}/log"
                await asyncio.sleep(0.05)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            await process.wait()


class OwnRedis(Service):
    """Without a file: what it knew is gone when it stops."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        options = {"port": str(self.port), "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        return [program("redis-server"), *(word for name, value in options.items() for word in (f"--{name}", value))]


class OwnPostgres(Service):
    """A cluster in a folder. As root it runs as the user `postgres`, as it demands. SIGINT ends every connection."""

    user = "postgres" if os.geteuid() == 0 else None

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        if self.user is not None:
            shutil.chown(self.place, self.user)
        words = [program("initdb"), "-D", f"{self.place}/data", "-U", "postgres", "-A", "trust"]
        subprocess.run(words, user=self.user, check=True, stdout=subprocess.DEVNULL, cwd=self.place)

    def command(self) -> list[str]:
        options = {"port": str(self.port), "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [program("postgres"), "-D", f"{self.place}/data", *words]

    async def start(self, **options: Any) -> None:
        await super().start(user=self.user, **options)

    async def restart(self) -> None:
        await self.stop()
        await self.start()


def made(folder: Path) -> tuple[OwnPostgres, OwnRedis]:
    folder.chmod(0o755)
    for name in ("postgres", "redis"):
        (folder / name).mkdir()
    postgres = OwnPostgres(folder / "postgres")
    postgres.make()
    return postgres, OwnRedis(folder / "redis")


@asynccontextmanager
async def services(folder: Path) -> AsyncGenerator[tuple[OwnPostgres, OwnRedis]]:
    """Both run; they are gone afterwards."""
    postgres, redis = made(folder)
    try:
        await postgres.start()
        await redis.start()
        yield postgres, redis
    finally:
        await redis.stop(signal.SIGKILL)
        await postgres.stop()

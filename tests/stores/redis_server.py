"""The Redis of the tests, and one of a test's own that may be stopped, held and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.house.services import program

__all__ = ["URL", "OwnRedis", "own_redis"]

URL = os.environ.get("PAPAVER_REDIS_URL") or "redis://127.0.0.1:6379"


class OwnRedis:
    """A process on a free port, without a file: what it knew is gone when it stops."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._process: asyncio.subprocess.Process | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns when it takes connections."""
        path = program("PAPAVER_REDIS_SERVER", "redis-server", "valkey-server")
        assert path, "redis-server is not installed; install it, or set PAPAVER_REDIS_SERVER"
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self._place}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = await asyncio.create_subprocess_exec(path, *words, stdout=asyncio.subprocess.PIPE)
        assert self._process.stdout is not None
        while b"eady to accept connections" not in await self._process.stdout.readline():
            assert not self._process.stdout.at_eof()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            # Its output is read to the end, so that the pipe is closed, too.
            await process.communicate()

    def hold(self) -> None:
        """Its connections stay, and nothing answers."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@asynccontextmanager
async def own_redis(place: Path) -> AsyncGenerator[OwnRedis]:
    """Not started yet."""
    own = OwnRedis(place)
    try:
        yield own
    finally:
        await own.stop()

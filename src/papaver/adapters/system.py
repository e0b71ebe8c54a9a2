"""The system's clock and randomness, as the ports `Clock` and `Ids`."""

from __future__ import annotations

import secrets
import time

import anyio

from papaver.values.base64url import encode

__all__ = ["SystemClock", "SystemIds"]


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since the epoch, UTC, with fractions."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back; for waiting only."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for this many seconds."""
        await anyio.sleep(seconds)


class SystemIds:
    """Randomness from the operating system."""

    def token(self, size: int = 16) -> str:
        """`size` random bytes as base64url text, without padding."""
        return encode(secrets.token_bytes(size))

    def secret(self, size: int = 32) -> bytes:
        """`size` random bytes."""
        return secrets.token_bytes(size)

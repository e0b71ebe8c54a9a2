"""What a Personal Agent asks of its vault and of its way to OAuth's endpoints.

The vault has encrypted rows, changed atomically, and locks across processes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from papaver.web.messages import Request, Response

__all__ = ["Poster", "Vault"]


class Vault(Protocol):
    """Rows of bytes under (kind, key). Values are encrypted at rest; kinds and keys are hidden too (keyed hashes).

    A vault belongs to one Personal Agent. Kinds in use: `user-id`, `agent-id`, `delegated-key`, `company`, `session`,
    `conversation`, `outbox`, `account`, `sign-in`, `service`, `description`.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def load(self, kind: str, key: str) -> bytes | None: ...

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace a row by what `decide` makes of it, in one durable transaction; None deletes. Returns the new value.

        Two changes of one row never interleave, in this process or another.
        """
        ...

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        """Every (key, value) of one kind, oldest first."""
        ...

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one task of one process at a time."""
        ...

    @property
    def guarded_by(self) -> str:
        """Where the key of the encryption is: `keyring` or the path of a 0600 file."""
        ...


class Poster(Protocol):
    """The guarded way to token, revocation and device endpoints (section 3): https, public addresses, no redirect."""

    async def post(self, request: Request, seconds: float, max_bytes: int) -> Response:
        """Send a form. Any status is a Response, a redirect included: it is not followed, and its body is not read.

        `seconds` is for all of it, `max_bytes` the longest body. No response is FetchFailed. What is sent is secret:
        it is in no log, no trace and no error.
        """
        ...

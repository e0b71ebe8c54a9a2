"""One Redis server as the replicas use it: its client, what it may raise, and one word in the log for each outage."""

from __future__ import annotations

import importlib
import logging
from hashlib import blake2b
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from papaver.stores.faults import StoreUnusable
from papaver.values.base64url import encode
from papaver.values.secret import Secret

__all__ = ["Link", "RedisServer", "scope"]

log = logging.getLogger("papaver.stores.redis")


def scope(secret: bytes) -> str:
    """Under which a Company's names lie in Redis: the same on each replica, and no other store's."""
    return encode(blake2b(b"papaver redis", key=secret, digest_size=12).digest())


class Link(Protocol):
    """What we use of a subscribed connection, in the driver's words."""

    async def subscribe(self, *channels: str) -> None: ...

    async def unsubscribe(self, *channels: str) -> None: ...

    async def ping(self) -> object: ...

    async def aclose(self) -> None: ...


class RedisServer:
    """Nothing connects before it is used; nothing is tried twice here. Its repr shows no password."""

    def __init__(self, url: str | Secret, *, timeout: float) -> None:
        """`timeout`: seconds to connect, and to wait for an answer."""
        self._url = url if isinstance(url, Secret) else Secret(url)
        self._timeout = timeout
        self._client: Any = None
        self._is_away = False
        self.faults: tuple[type[BaseException], ...] = (OSError,)
        """What a server that is away, or that refuses, raises; complete once this is open."""

    def __repr__(self) -> str:
        return f"<RedisServer {self._place}>"

    @property
    def _place(self) -> str:
        try:
            parts = urlsplit(self._url.reveal())
            return f"{parts.hostname or parts.path}:{parts.port or 6379}"
        except ValueError:
            return "?"

    @property
    def is_open(self) -> bool:
        return self._client is not None

    def open(self) -> None:
        """Raises StoreUnusable when the URL cannot be read, or the driver is not there; not when the server is away."""
        try:
            driver: Any = importlib.import_module("redis.asyncio")
            retry: Any = importlib.import_module("redis.asyncio.retry")
            backoff: Any = importlib.import_module("redis.backoff")
        except ImportError as fault:
            raise StoreUnusable("Redis needs the extra `redis`; install papaver[redis]") from fault
        self.faults = (OSError, TimeoutError, driver.RedisError)
        try:
            self._client = driver.Redis.from_url(
                self._url.reveal(),
                protocol=2,
                socket_connect_timeout=self._timeout,
                socket_timeout=self._timeout,
                socket_keepalive=True,
                retry=retry.Retry(backoff.NoBackoff(), 0),
            )
        except ValueError:
            raise StoreUnusable(
                "the URL of Redis cannot be read; it has the form redis://user:password@host:6379/0, or rediss:// with "
                "TLS, with special characters in the password written as %XX"
            ) from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def link(self) -> Link:
        """A connection for subscriptions. For a server that is open."""
        return self._client.pubsub()

    async def heard(self, link: Link, seconds: float) -> dict[str, Any] | None:
        """The next message on a link, in the driver's form; None when there is none for so long."""
        return await cast(Any, link).get_message(timeout=seconds)

    def pipeline(self) -> Any:
        """Commands that are sent at once, on a connection of the pool; no transaction. For a server that is open."""
        return self._client.pipeline(transaction=False)

    def away(self, fault: BaseException) -> None:
        """It did not answer: said once, until it does."""
        if not self._is_away:
            self._is_away = True
            log.warning(
                "Redis at %s is away (%s): the replicas' hints wait for their next look, and each counts for itself",
                self._place,
                type(fault).__name__,
            )

    def back(self) -> None:
        """It answered."""
        if self._is_away:
            self._is_away = False
            log.info("Redis at %s is back", self._place)

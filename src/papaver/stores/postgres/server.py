"""One PostgreSQL server as a vault or store uses it: a bounded pool, a second try after a restart, no password told."""

from __future__ import annotations

import importlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.values.secret import Secret

__all__ = ["PLANNED_ONCE", "Connection", "Server"]

R = TypeVar("R")
SETTINGS: Final[Mapping[str, str]] = {
    "application_name": "papaver",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
"""Of every connection. A host that died is noticed, and its locks given back, after a minute."""
COMMAND_SECONDS: Final = 30.0
PLANNED_ONCE: Final[Mapping[str, str]] = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}
"""For statements of which each finds few rows by an index, also in tables that nobody has analysed yet."""


class Connection(Protocol):
    """What we use of a connection of asyncpg, which has no types."""

    async def execute(self, query: str, *values: object) -> str: ...

    async def fetch(self, query: str, *values: object) -> Sequence[Any]: ...

    async def fetchval(self, query: str, *values: object) -> Any: ...

    def transaction(self) -> AbstractAsyncContextManager[object]: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self, *, timeout: float) -> None: ...


class _Pool(Protocol):
    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]: ...

    async def expire_connections(self) -> None: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class Server:
    """Opened on the event loop that uses it. Its repr shows neither user nor password."""

    def __init__(
        self,
        dsn: str | Secret,
        schema: str,
        *,
        connections: int,
        timeout: float,
        what: str = "the vault",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`connections`: in the pool, at most; `timeout`: seconds to wait for one of them, or to connect.

        `what` it is for, in words. `settings`: of every connection, beside SETTINGS.
        """
        self._what, self._settings = what, settings or {}
        self._dsn = dsn if isinstance(dsn, Secret) else Secret(dsn)
        self.schema = schema
        self._connections, self._timeout = connections, timeout
        self._pool: _Pool | None = None
        self._faults: tuple[type[BaseException], ...] = (OSError,)
        self.lost: tuple[type[BaseException], ...] = (ConnectionError,)
        """What a connection that is over may raise, once the server is open."""

    def __reduce__(self) -> str:
        raise TypeError("a connection to a database is not pickled")

    def __repr__(self) -> str:
        return f"<Server with the schema {self.schema}>"

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    async def open(self) -> None:
        """Connect. Raises StoreUnusable, which says what to do."""
        driver = _driver()
        # The internal one is what a connection raises that was ended by the server while nobody used it.
        client = driver.InterfaceError, driver.InternalClientError
        self._faults = (OSError, driver.PostgresError, *client)
        self.lost = (
            ConnectionError,
            driver.PostgresConnectionError,
            *client,
            driver.AdminShutdownError,
            driver.CrashShutdownError,
        )
        try:
            pool = driver.create_pool(
                self._dsn.reveal(), min_size=0, max_size=self._connections, reset=_keep, **self._options()
            )
        except (ValueError, *self._faults):
            raise self._unreadable() from None
        self._pool = pool
        try:
            await pool
            async with pool.acquire(timeout=self._timeout):
                pass
        except BaseException as fault:
            pool.terminate()
            self._pool = None
            if isinstance(fault, (driver.ClientConfigurationError, ValueError)):
                raise self._unreadable() from None
            if isinstance(fault, self._faults):
                raise self._unusable(fault) from None
            raise

    def _options(self) -> dict[str, object]:
        return {
            "timeout": self._timeout,
            "command_timeout": COMMAND_SECONDS,
            "server_settings": {**SETTINGS, **self._settings, "search_path": f'"{self.schema}"'},
        }

    async def connect(self) -> Connection:
        """A connection beside the pool, the caller's to close. Raises StoreFailed."""
        try:
            connection: Connection = await _driver().connect(self._dsn.reveal(), **self._options())
        except self._faults as fault:
            raise self._failed(fault) from None
        return connection

    async def close(self) -> None:
        """Waits for what runs."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def first(self, work: Callable[[Connection], Awaitable[R]]) -> R:
        """What `work` makes of a connection when it is opened. Raises StoreUnusable, which says what to do."""
        try:
            return await self._run(work)
        except self._faults as fault:
            raise self._unusable(fault) from None

    async def run(self, work: Callable[[Connection], Awaitable[R]], *, repeat: Callable[[], bool] = lambda: True) -> R:
        """What `work` makes of a connection. Raises StoreFailed.

        Where the connection turns out to be lost, as after a restart of the server, `work` gets another one, once, and
        only if `repeat` says that it may.
        """
        try:
            return await self._run(work)
        except self.lost as fault:
            if not repeat():
                raise self._failed(fault) from None
        except self._faults as fault:
            raise self._failed(fault) from None
        try:
            if self._pool is not None:
                await self._pool.expire_connections()
            return await self._run(work)
        except self._faults as fault:
            raise self._failed(fault) from None

    async def _run(self, work: Callable[[Connection], Awaitable[R]]) -> R:
        if self._pool is None:
            raise StoreFailed(f"{self._what} is not open")
        async with self._pool.acquire(timeout=self._timeout) as connection:
            return await work(connection)

    @asynccontextmanager
    async def told(self) -> AsyncGenerator[None]:
        """Faults of the driver become StoreFailed."""
        try:
            yield
        except self._faults as fault:
            raise self._failed(fault) from None

    def _failed(self, fault: BaseException) -> StoreFailed:
        if isinstance(fault, TimeoutError):
            return StoreFailed("TimeoutError: PostgreSQL did not answer in time, or all connections were in use")
        return StoreFailed(f"{type(fault).__name__}: {self._without_password(str(fault))}")

    def _unusable(self, fault: BaseException) -> StoreUnusable:
        """The same at the start, with what to do."""
        said = self._without_password(str(fault)) or type(fault).__name__
        remedy = next((remedy for name, remedy in _REMEDIES if _is_a(fault, name)), _UNREACHED)
        return StoreUnusable(
            f"{self._what} in PostgreSQL cannot be opened: {said}; "
            f"{remedy.format(schema=self.schema, what=self._what)}",
            detail=type(fault).__name__,
        )

    def _unreadable(self) -> StoreUnusable:
        return StoreUnusable(
            f"the DSN of {self._what} cannot be read; it has the form postgresql://user:password@host:5432/database, "
            "with special characters in the password written as %XX"
        )

    def _without_password(self, text: str) -> str:
        for password in _passwords(self._dsn.reveal()):
            text = text.replace(password, "…")
        return text


_UNREACHED = "start the server, or correct {what}'s DSN"
_REMEDIES: Final = (
    ("InvalidAuthorizationSpecificationError", "correct user and password in {what}'s DSN"),
    ("InvalidCatalogNameError", "make the database, or correct {what}'s DSN"),
    (
        "InsufficientPrivilegeError",
        'let the role make tables in the schema: CREATE SCHEMA "{schema}" AUTHORIZATION its_name',
    ),
    ("TooManyConnectionsError", "raise max_connections of the server, or lower `connections` of {what}"),
)
"""By the name of the driver's class, or of one that it inherits from."""


async def _keep(_: object) -> None:
    """Nobody here leaves a setting, a lock or a cursor on a connection of the pool: one way to the server is saved."""


def _is_a(fault: BaseException, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(fault).__mro__)


def _driver() -> ModuleType:
    try:
        return importlib.import_module("asyncpg")
    except ImportError as fault:
        raise StoreUnusable("a vault in PostgreSQL needs asyncpg; install papaver with the extra `postgres`") from fault


def _passwords(dsn: str) -> list[str]:
    """As it is written in the DSN and as it is meant, in either place where one may be."""
    written = re.findall(r"^[^/]*//[^/@:]*:([^/]*)@", dsn) + re.findall(r"[?&]password=([^&#]*)", dsn)
    try:
        parts = urlsplit(dsn)
        written += [parts.password or "", *parse_qs(parts.query).get("password", [])]
    except ValueError:
        pass  # what was found before is all that can be
    return sorted({*written, *map(unquote, written)} - {""}, key=len, reverse=True)

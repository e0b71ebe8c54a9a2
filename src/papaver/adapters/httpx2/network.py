"""Resolves a host once, judges every address, dials a judged one and looks again at who answered (section 3).

httpx2 and httpcore2 would resolve a name for themselves, after any check that we made. This network backend is the one
place below them that sees host and address together, so the address that was judged is the address connected to.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, Final, Self, cast

import anyio
import httpcore2

from papaver.adapters.httpx2.failures import refused, resolve_flag, unreachable, why
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.values.rules import rule
from papaver.web.addresses import why_refused

__all__ = [
    "Dialler",
    "Network",
    "NetworkSettings",
    "Resolver",
    "dial_by_system",
    "refused",
    "resolve_by_system",
    "unreachable",
]

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host name, port) → every address, the preferred one first; empty when there is no such name. Raises OSError."""

Dialler = Callable[[str, int], Awaitable[httpcore2.AsyncNetworkStream]]
"""(IP address, port) → an open connection to it. Raises `httpcore2.ConnectError` or `ConnectTimeout`."""

STAGGER: Final = 0.25
"""Seconds that an address has for itself before the next one is tried beside it (RFC 8305 5)."""

_STRICT: Final = NetworkSettings()

MAX_DIALLED: Final = 8
"""Addresses of one name that are tried; all of them are judged."""

# The library declares it in two ways, of which the type checker takes the empty one.
_SOCKETS: Final = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

_NO_SUCH_NAME: Final = frozenset(
    code for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if (code := getattr(socket, name, None)) is not None
)


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Every address that the system's resolver has for a name; none when there is no such name. Raises OSError."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            return ()
        raise
    except UnicodeError:
        return ()
    return tuple(dict.fromkeys(str(where[0]) for *_, where in found))


async def dial_by_system(address: str, port: int) -> httpcore2.AsyncNetworkStream:
    """A TCP connection to an IP address."""
    return await _SOCKETS.connect_tcp(address, port)


class Network(httpcore2.AsyncNetworkBackend):
    """The way to the open internet, for `GuardedFetcher` and `open_client`. Made once; it announces its exceptions.

    `settings`  the exceptions that the user asked for
    `resolver`  where addresses come from
    `dialler`   how one is connected to
    """

    def __init__(
        self,
        settings: NetworkSettings = _STRICT,
        *,
        resolver: Resolver = resolve_by_system,
        dialler: Dialler = dial_by_system,
    ) -> None:
        self.settings = settings
        self._resolve = resolver
        self._dial = dialler
        settings.announce()

    @classmethod
    def of(cls, network: Self | NetworkSettings) -> Self:
        """The network itself, or a new one with these settings."""
        return cls(network) if isinstance(network, NetworkSettings) else network

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """The one TLS context of this network. Raises ConfigurationError when the CA file cannot be read."""
        return self.settings.trust()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to a judged address of `host`, within `timeout` seconds in all.

        Raises FetchFailed when the name may not be connected to, and `httpcore2.ConnectError` or `ConnectTimeout`.
        """
        try:
            with anyio.fail_after(timeout):
                entry = self.settings.resolve.find(host, port)
                if entry is not None:
                    return await self._first_to_answer(host, (entry.address,), entry.to_port)
                addresses = await self._addresses(host, port)
                check_name_exists(host, addresses)
                check_addresses_public(host, addresses)
                return await self._first_to_answer(host, _interleaved(addresses)[:MAX_DIALLED], port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host}:{port} was not connected to in {timeout} s") from error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Refused: another party's URL never leads to a socket of this machine."""
        raise refused("", "fetch.address-public", f"a unix socket at {path}")

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for this many seconds."""
        await anyio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            return (str(ipaddress.ip_address(host)),)
        except ValueError:
            pass
        try:
            return await self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} could not be resolved: {error.strerror or error}") from error

    async def _first_to_answer(self, host: str, addresses: Sequence[str], port: int) -> httpcore2.AsyncNetworkStream:
        """The first connection that opens; an address that keeps silent does not hold up the next one."""
        opened: list[tuple[str, httpcore2.AsyncNetworkStream]] = []
        failures: list[tuple[str, Exception]] = []

        async def attempt(address: str, ended: anyio.Event) -> None:
            try:
                stream = await self._dial(address, port)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failures.append((address, error))
            else:
                opened.append((address, stream))
                attempts.cancel_scope.cancel()
            finally:
                ended.set()

        try:
            async with anyio.create_task_group() as attempts:
                for address in addresses:
                    ended = anyio.Event()
                    attempts.start_soon(attempt, address, ended)
                    with anyio.move_on_after(STAGGER):
                        await ended.wait()
            if not opened:
                causes = "; ".join(f"{where} port {port}: {why(failure)}" for where, failure in failures)
                raise httpcore2.ConnectError(f"no address of {host} answers: {causes}") from failures[0][1]
            address, stream = opened[0]
            check_peer(host, address, stream.get_extra_info("server_addr"))
            del opened[0]
            return stream
        finally:
            with anyio.CancelScope(shield=True):
                for _, spare in opened:
                    await spare.aclose()


@rule("fetch.name-exists")
def check_name_exists(host: str, addresses: Sequence[str]) -> None:
    """A name without an address is a definite answer (readings 15). Raises FetchFailed."""
    if not addresses:
        raise refused(
            f"https://{host}",
            "fetch.name-exists",
            f"{host} does not exist",
            expected=f"a host named {host}",
            found="no such host",
            remedy=f"check the spelling; for local work: {resolve_flag(f'https://{host}')}",
        )


@rule("fetch.address-public")
def check_addresses_public(host: str, addresses: Sequence[str]) -> None:
    """Every address of a host is public, not only the one that would be dialled (section 3, readings 52).

    Raises FetchFailed.
    """
    for address in addresses:
        reason = why_refused(address)
        if reason is not None:
            raise refused(
                f"https://{host}",
                "fetch.address-public",
                f"{host} is at {address}: {reason}",
                expected="public addresses only",
                remedy=f"for local work say where it is: --resolve {host}:443={bracketed(address)}:443",
            )


@rule("fetch.peer-is-judged")
def check_peer(host: str, address: str, peer: tuple[object, ...] | None) -> None:
    """The other end of the socket is the address that was judged (readings 52). Raises FetchFailed.

    `peer` is the socket's remote name, its address first.
    """
    found = str(peer[0]) if peer else ""
    try:
        same = ipaddress.ip_address(found) == ipaddress.ip_address(address)
    except ValueError:
        same = False
    if not same:
        raise refused(f"https://{host}", "fetch.peer-is-judged", f"{host}: dialled {address}, connected to {found!r}")


def bracketed(address: str) -> str:
    """An IP address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def _interleaved(addresses: Sequence[str]) -> list[str]:
    """The addresses with IPv6 and IPv4 taking turns, beginning with the family of the first (RFC 8305 4)."""
    first = ":" in addresses[0]
    mine = [address for address in addresses if (":" in address) is first]
    others = [address for address in addresses if (":" in address) is not first]
    return [address for address in chain.from_iterable(zip_longest(mine, others)) if address is not None]

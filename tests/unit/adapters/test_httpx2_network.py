"""The pinned network: resolving, judging and dialling, without a socket."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import anyio
import httpcore2
import pytest

from papaver.adapters import httpx2 as package
from papaver.adapters.httpx2 import network as module
from papaver.adapters.httpx2.network import Network, check_peer, resolve_by_system
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.ports.system import FetchFailed

pytestmark = pytest.mark.anyio

V4 = ["93.184.215.14", "8.8.8.8"]
V6 = ["2606:4700::1111", "2001:4860:4860::8888"]


class Line(httpcore2.AsyncNetworkStream):
    """A connection that is only open or closed."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.closed = False

    def get_extra_info(self, info: str) -> Any:
        return (self.address, 443) if info == "server_addr" else None

    async def aclose(self) -> None:
        self.closed = True


class Lines:
    """Addresses of every name, and what dialling them does."""

    def __init__(self, addresses: Sequence[str], *failing: str) -> None:
        self.addresses = addresses
        self.failing = failing
        self.dialled: list[str] = []
        self.opened: list[Line] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return self.addresses

    async def dial(self, address: str, port: int) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(address)
        if address in self.failing:
            raise httpcore2.ConnectError(f"{address} is down")
        line = Line(address)
        self.opened.append(line)
        return line

    def network(self) -> Network:
        return Network(resolver=self.resolve, dialler=self.dial)


async def test_the_families_take_turns_beginning_with_the_preferred() -> None:
    """RFC 8305: a family that is down costs one attempt, not all of its addresses."""
    for addresses, order in ((V6 + V4, [V6[0], V4[0], V6[1], V4[1]]), ([V4[0], *V6], [V4[0], V6[0], V6[1]])):
        lines = Lines(addresses, *addresses)
        with pytest.raises(httpcore2.ConnectError) as caught:
            await lines.network().connect_tcp("shop.example", 443)
        assert lines.dialled == order
        assert all(f"{address} is down" in str(caught.value) for address in order)


async def test_all_addresses_are_judged_and_only_some_are_tried() -> None:
    """A name with very many addresses cannot keep us dialling; its last one still refuses it."""
    many = [f"8.8.8.{n}" for n in range(1, 200)]
    lines = Lines(many, *many)
    with pytest.raises(httpcore2.ConnectError):
        await lines.network().connect_tcp("shop.example", 443)
    assert lines.dialled == many[: module.MAX_DIALLED]
    lines = Lines([*many, "192.168.1.1"])
    with pytest.raises(FetchFailed) as caught:
        await lines.network().connect_tcp("shop.example", 443)
    assert (caught.value.rule, lines.dialled) == ("fetch.address-public", [])


async def test_of_two_connections_that_open_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both dials end in the same turn of the loop; the spare one is closed."""
    monkeypatch.setattr(module, "STAGGER", 0)
    lines = Lines(V4)
    both = anyio.Event()

    async def together(address: str, port: int) -> httpcore2.AsyncNetworkStream:
        line = await lines.dial(address, port)
        if len(lines.opened) == 2:
            both.set()
        with anyio.CancelScope(shield=True):
            await both.wait()
        return line

    kept = await Network(resolver=lines.resolve, dialler=together).connect_tcp("shop.example", 443)
    assert [(line is kept, line.closed) for line in lines.opened] == [(True, False), (False, True)]


@pytest.mark.requirement("papaver-07")
async def test_a_connection_to_somewhere_else_is_closed() -> None:
    """The peer is looked at before the connection is given on."""
    line = Line("10.0.0.1")

    async def dial(address: str, port: int) -> httpcore2.AsyncNetworkStream:
        return line

    with pytest.raises(FetchFailed) as caught:
        await Network(resolver=Lines(V4).resolve, dialler=dial).connect_tcp("shop.example", 443)
    assert (caught.value.rule, line.closed) == ("fetch.peer-is-judged", True)


@pytest.mark.parametrize("peer", [None, (), ("",), ("8.8.8.9", 443), ("/run/socket",), ("::ffff:8.8.8.8", 443)])
def test_a_peer_is_the_same_address_in_the_same_form(peer: tuple[object, ...] | None) -> None:
    """What cannot be read is not the same."""
    with pytest.raises(FetchFailed):
        check_peer("shop.example", "8.8.8.8", peer)
    check_peer("shop.example", "2606:4700:0::1111", ("2606:4700::1111", 443, 0, 0))


async def test_no_unix_socket() -> None:
    """The library's other way to connect is closed."""
    with pytest.raises(FetchFailed):
        await Network().connect_unix_socket("/run/docker.sock")


async def test_sleeping_is_the_library_s_own_business() -> None:
    """It only has to work."""
    await Network().sleep(0)


async def test_the_system_s_answers_are_addresses_without_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not exist has none; a resolver that is down is an error that may pass."""

    async def found(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host == "missing.example":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        if host == "down.example":
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        if host == "odd.example":
            raise UnicodeError("label too long")
        return [
            (2, 1, 6, "", ("8.8.8.8", port)),
            (10, 1, 6, "", ("2606:4700::1111", port, 0, 0)),
            (2, 1, 6, "", ("8.8.8.8", port)),
        ]

    monkeypatch.setattr(module.anyio, "getaddrinfo", found)
    assert await resolve_by_system("shop.example", 443) == ("8.8.8.8", "2606:4700::1111")
    assert await resolve_by_system("missing.example", 443) == ()
    assert await resolve_by_system("odd.example", 443) == ()
    with pytest.raises(httpcore2.ConnectError):
        await Network().connect_tcp("down.example", 443)
    with pytest.raises(FetchFailed) as caught:
        await Network().connect_tcp("missing.example", 443)
    assert caught.value.rule == "fetch.name-exists"


async def test_the_deadline_of_a_connection_covers_the_look_up() -> None:
    """httpcore2's own timeout, for a client that has no other."""

    async def silent(host: str, port: int) -> Sequence[str]:
        await anyio.Event().wait()
        return ()

    with pytest.raises(httpcore2.ConnectTimeout):
        await Network(resolver=silent).connect_tcp("shop.example", 443, timeout=0.01)


def test_settings_become_a_network_and_a_network_stays_one() -> None:
    """Callers may have either; the TLS context is made once."""
    network = Network.of(NetworkSettings())
    assert Network.of(network) is network
    assert network.trust is network.trust


def test_the_package_exports_what_it_names() -> None:
    """Each name is imported when it is asked for."""
    for name in set(package.__all__) - {"PersonalAgent"}:
        assert getattr(package, name).__name__ == name
        assert name in dir(package)
    with pytest.raises(AttributeError):
        _ = package.nothing

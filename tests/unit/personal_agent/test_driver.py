"""The driver: each effect is performed by its port, results and errors go back into the flow, which always ends."""

from __future__ import annotations

import pytest

from papaver.personal_agent.driver import Ports, drive, no_sender
from papaver.personal_agent.flows.effects import (
    Flow,
    Send,
    SessionFields,
    exclusive,
    fetch,
    keep,
    load,
    load_all,
    send,
    wait,
)
from papaver.ports.system import FetchFailed, FetchPolicy
from papaver.protocol.destinations import Destinations
from papaver.testing.clock import SeededIds
from papaver.values.secret import Secret
from papaver.web.messages import Headers, Request, Response
from tests.house.agent_ports import MemoryVault, PassingClock
from tests.house.agent_world import unreachable

pytestmark = pytest.mark.anyio

FIELDS = SessionFields("Poppy-Session", Secret("jwt"), ())


class Pages:
    """A fetcher that says what it was asked."""

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        if url.endswith("away"):
            raise unreachable(url)
        return Response(200, headers, str(policy.redirects).encode(), url)


def ports() -> Ports:
    """Ports in memory."""
    return Ports(MemoryVault(), Pages(), PassingClock(1000.0), SeededIds())


async def test_every_effect_meets_its_port() -> None:
    """Results come back where they were asked for."""

    def flow() -> Flow[list[object]]:
        response = yield from fetch(Request("GET", "https://a.example", Headers([("accept", "x")])), FetchPolicy(3))
        yield from wait(7)
        kept = yield from keep("session", "k", lambda stored: (stored or b"") + b"1")
        under_lock = yield from exclusive("name", keep("session", "k", lambda stored: (stored or b"") + b"2"))
        loaded = yield from load("session", "k")
        rows = yield from load_all("session")
        sent = yield from send(Request("GET", "https://b.example"), FIELDS, Destinations(()))
        return [response.body, list(response.headers), kept, under_lock, loaded, rows, sent.status]

    async def sender(effect: Send) -> Response:
        assert effect.fields.jwt == Secret("jwt")
        return Response(204)

    used = ports()
    assert await drive(flow(), used, sender) == [
        b"3",
        [("accept", "x")],
        b"1",
        b"12",
        b"12",
        (("k", b"12"),),
        204,
    ]
    assert used.clock.now() == 1007.0


async def test_an_error_of_ours_is_raised_inside_the_flow() -> None:
    """The flow may know what to do about it."""

    def flow() -> Flow[str]:
        try:
            yield from fetch(Request("GET", "https://a.example/away"), FetchPolicy())
        except FetchFailed as error:
            return error.url
        return "there"

    assert await drive(flow(), ports()) == "https://a.example/away"


async def test_any_other_error_ends_the_flow() -> None:
    """It is closed, and the error goes to the caller."""
    left: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield from send(Request("GET", "https://b.example"), FIELDS, Destinations(()))
        finally:
            left.append("closed")

    with pytest.raises(TypeError, match="may not send GET"):
        await drive(flow(), ports(), no_sender)
    assert left == ["closed"]


async def test_a_flow_without_effects_just_returns() -> None:
    """There is nothing to perform."""

    def flow() -> Flow[int]:
        yield from ()
        return 5

    assert await drive(flow(), ports()) == 5

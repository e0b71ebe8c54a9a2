"""The way to OAuth's endpoints: one request, no redirect, and no trace of what was sent."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from papaver.adapters.httpx2.poster import GuardedPoster
from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
from papaver.adapters.httpx2.transport import LIMIT
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.errors import NotADestination
from papaver.web.messages import Headers, Request

pytestmark = pytest.mark.anyio

URL = "https://auth.example.com/token"
FORM = Request("POST", URL, Headers([("content-type", "application/x-www-form-urlencoded")]), b"code=canary")


class Scripted(httpx2.AsyncBaseTransport):
    """A transport that answers, fails or hangs as it is told."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[httpx2.Request] = []
        self.closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        if self.answer == "hang":
            await anyio.sleep_forever()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, httpx2.Response)
        return self.answer

    async def aclose(self) -> None:
        self.closed = True


async def test_a_form_is_sent_once_with_what_was_named() -> None:
    """The answer is whole, whatever its status."""
    wire = Scripted(httpx2.Response(400, headers={"x": "y"}, content=b"{}"))
    poster = GuardedPoster(transport=wire)
    answer = await poster.post(FORM, 5, 1000)
    assert (answer.status, answer.body, answer.headers.first("x"), answer.url) == (400, b"{}", "y", URL)
    [request] = wire.seen
    assert await request.aread() == b"code=canary"
    assert request.headers["content-length"] == "11"
    assert request.extensions[LIMIT] == 1000
    assert request.extensions["timeout"]["read"] == 5
    await poster.aclose()
    assert wire.closed


@pytest.mark.requirement("3-18")
async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    """Its body is not even read."""

    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("read")
        yield b""

    wire = Scripted(httpx2.Response(307, headers={"Location": "https://evil.example"}, content=never()))
    answer = await GuardedPoster(transport=wire).post(FORM, 5, 1000)
    assert (answer.status, answer.body) == (307, b"")
    assert len(wire.seen) == 1


@pytest.mark.parametrize(
    ("failure", "fault"),
    [
        (httpx2.ConnectError("canary"), FetchFault.UNREACHABLE),
        (httpx2.ReadTimeout("x"), FetchFault.UNREACHABLE),
        (FetchFailed(FetchFault.REFUSED, "no", url=URL, rule="fetch.address-public"), FetchFault.REFUSED),
    ],
)
async def test_a_failure_holds_nothing_that_was_sent(failure: Exception, fault: FetchFault) -> None:
    """No cause, no frame below ours."""
    with pytest.raises(FetchFailed) as caught:
        await GuardedPoster(transport=Scripted(failure)).post(FORM, 5, 1000)
    assert caught.value.fault is fault
    assert caught.value.__context__ is None
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [frame for frame in frames if frame.name in ("_send", "handle_async_request")]


async def test_no_answer_in_time_is_a_failure() -> None:
    """The whole exchange has one deadline."""
    with pytest.raises(FetchFailed) as caught:
        await GuardedPoster(transport=Scripted("hang")).post(FORM, 0.01, 1000)
    assert caught.value.fault is FetchFault.UNREACHABLE


async def test_without_a_transport_it_is_the_guarded_one() -> None:
    """Plain http is refused before a connection is made."""
    poster = GuardedPoster()
    with pytest.raises(FetchFailed) as caught:
        await poster.post(Request("POST", "http://auth.example.com/token"), 5, 1000)
    assert caught.value.rule == "web.https-only"
    await poster.aclose()


async def test_an_authorization_field_goes_to_the_url_that_was_named_alone() -> None:
    """An introspection endpoint takes one; nothing listens there, so the request got as far as the socket."""
    nobody = NetworkSettings(ResolveMap.read(["auth.example.com:443=127.0.0.1:1"]))
    poster = GuardedPoster(nobody, authorized_at=URL)
    fields = Headers([("authorization", "Basic eDp5")])
    with pytest.raises(FetchFailed) as dialled:
        await poster.post(Request("POST", URL, fields), 5, 1000)
    assert dialled.value.fault is FetchFault.UNREACHABLE
    with pytest.raises(NotADestination) as refused:
        await poster.post(Request("POST", f"{URL}/other", fields), 5, 1000)
    assert refused.value.rule == "fetch.no-credentials"
    await poster.aclose()

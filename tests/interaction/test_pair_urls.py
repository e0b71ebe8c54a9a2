"""The URL that a Personal Agent signs, the one that it sends and the one that a Company verifies: one, however odd."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from papaver.adapters.asgi import CompanyEndpoint, Receive, Scope, Send, incoming_of, send_response
from papaver.protocol.destinations import Destinations
from papaver.protocol.errors import NotADestination, PoppyError
from papaver.testing.pair import Pair, pair
from papaver.testing.wire import asgi_site
from papaver.web.messages import Response
from papaver.web.urls import UrlError, htu
from tests.house.pairing import claims, signed

pytestmark = pytest.mark.anyio

SEGMENTS = st.sampled_from(
    [
        "", ".", "..", "...", "a", "A", "a.b", "~", "%7e", "%7E", "%2e", "%2E%2e", "%2f", "%25", "%2541", "%c3%a9", "é",
        "日本", "|", "[x]", "a b", "%20", "+", "a;b=c", ":", "@", "'", "(", "*", "%zz", "%", "^", "`", "{x}", '"', "\\",
        "<x>", "poppy", "conversations",
    ]
)  # fmt: skip
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda parts: "".join(f"/{part}" for part in parts))
TAILS = st.sampled_from(["", "?", "?q=shoes", "?a=/../b", "?x#y", "#part", "?q=é", "?q=%zz&q=1", "?a?b"])
HOSTS = st.sampled_from(["api.example.com", "API.example.com", "api.example.com:443", "api.EXAMPLE.com:0443"])
METHODS = st.sampled_from(["GET", "POST", "DELETE", "PATCH", "get"])


def acceptable(_: Destinations, url: str, method: str) -> bool:
    """A document that names every URL there is: only one that is none is no destination."""
    try:
        return bool(htu(url))
    except UrlError:
        return False


async def verified(both: Pair, method: str, url: str) -> str:
    """What became of one request to an API of the Company: "agrees", its refusal, or "unsaid" when nothing was sent."""
    company = both.company

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        incoming = incoming_of(scope, receive)
        try:
            await company.verify_api(incoming)
        except PoppyError as error:
            await send_response(company.api_error(error, incoming), send)
        else:
            await send_response(Response(204), send)

    session = (await both.agent.discover("example.com")).session("dana")
    both.wire.sites["api.example.com"] = asgi_site(CompanyEndpoint(company, api))
    try:
        response = await session.http.request(method, url)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, NotADestination):
        return "unsaid"
    return "agrees" if response.status_code == 204 else response.text


@given(METHODS, HOSTS, PATHS, TAILS)
@example("GET", "api.example.com", "/a/../b/%2e%2e/c", "?q=%zz")
@example("GET", "api.example.com", "", "?q")
@example("POST", "api.example.com:443", "/a b/é|", "#part")
@example("GET", "api.example.com", "/%zz", "")
@settings(max_examples=120)
async def test_b26_what_is_signed_is_what_is_verified(method: str, host: str, path: str, tail: str) -> None:
    """One function makes the `htu` of both sides: only a client that sends another URL than it signs could differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Destinations, "accept", acceptable)
        async with pair() as both:
            told = await verified(both, method, f"https://{host}{path}{tail}")
            assert told in ("agrees", "unsaid"), told
            if told == "agrees":
                assert {claims(one)["htm"] for one in signed(both)} == {one.request.method for one in signed(both)}


@pytest.mark.parametrize(
    "url", ["/a/../b/%2e%2e/c?q=%7e", "?q", "/a b/é|#part", "/%2F//x/", "/(a)*'@:;b=c", "/%25/%2541?q=é"]
)
async def test_b26_odd_urls_are_verified_and_not_merely_left_unsent(url: str) -> None:
    """So that the property above is about something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Destinations, "accept", acceptable)
        async with pair() as both:
            assert await verified(both, "GET", f"https://api.example.com{url}") == "agrees"

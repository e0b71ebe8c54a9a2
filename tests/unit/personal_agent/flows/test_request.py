"""A signed request: what every try carries, which answers are mended, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from papaver.personal_agent.flows.effects import Send
from papaver.personal_agent.flows.recoveries import RECOVERIES, Attempt
from papaver.personal_agent.flows.request import Exchange, signed
from papaver.personal_agent.live import LiveSession
from papaver.protocol.destinations import Destination
from papaver.protocol.dialect import Version
from papaver.protocol.errors import ConfigurationError, DiscoveryFailed, NotADestination, RateLimited
from papaver.testing.rules import switched_off
from papaver.values.base64url import decode
from papaver.versions import DIALECTS
from papaver.web.fields import write_http_date
from papaver.web.messages import Headers, Request
from tests.house.agent_world import DOMAIN, ENDPOINT, V, World, answer, document, error, unreachable

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
NEWER = Version(V.major, V.minor + 1)
READ = Request("GET", f"{ENDPOINT}/cnv_1/events")
OK = answer(200, {})


def ask(world: World, live: LiveSession, request: Request = READ) -> Exchange:
    """One signed request."""
    return world.run(signed(live, lambda _: request))


def codes(world: World, *script: Any) -> tuple[int, int]:
    """The status of the answer to one request after this script, and how often it was sent."""
    world.company.script = list(script)
    exchange = ask(world, world.live())
    return exchange.response.status, len(world.company.requests)


@pytest.mark.requirement("5.2-01", "5.2-05", "5.2-22")
def test_each_request_has_a_header_of_its_own() -> None:
    """The Company verifies each, by delegation and key; no two have one id."""
    world = World()
    live = world.live()
    for _ in range(3):
        ask(world, live)
    assert len({proven.jti for proven in world.company.proven}) == 3
    assert len({proven.sid for proven in world.company.proven}) == 1


@pytest.mark.requirement("5-04", "5.2-19")
def test_signed_out_requests_carry_the_session_header_alone() -> None:
    """Every claim is there, but `ath` and, with one agent, `agent_id`."""
    world = World()
    ask(world, world.live())
    [request] = world.company.requests
    assert "authorization" not in request.headers
    jwt = request.headers.first("poppy-session")
    assert jwt is not None
    claims = json.loads(decode(jwt.split(".")[1]))
    assert set(claims) == {"iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti"}


@pytest.mark.requirement("5.1-08", "5.1-13", "5.2-20")
def test_the_agent_id_is_the_same_on_every_request() -> None:
    """It is sent when the User has named agents, and left out otherwise."""
    world = World()
    live = world.live(agent="travel")
    ask(world, live)
    ask(world, live)
    first, second = world.company.proven
    assert first.agent_id == second.agent_id
    assert first.agent_id is not None
    assert first.user_id == second.user_id


@pytest.mark.requirement("3.4-12", "3.4-13", "3.4-15")
def test_versions_are_declared_alike_on_every_request() -> None:
    """`Poppy-Version` is ours; `Poppy-Extensions` names what both sides have, in one version each (3.3)."""
    world = World()
    world.extensions = {"shop.example/gift-wrap": ("2", "1"), "links": ("1",)}
    entries = [{"version": "1"}, {"version": "2"}]
    world.company.documents[POPPY] = document(extensions={"shop.example/gift-wrap": entries, "operations": entries})
    live = world.live()
    ask(world, live)
    ask(world, live)
    for request in world.company.requests:
        assert request.headers.all("poppy-version") == (str(V),)
        assert request.headers.all("poppy-extensions") == ('"shop.example/gift-wrap";v="2"',)


@pytest.mark.requirement("3.3-06")
def test_without_a_shared_extension_none_is_declared() -> None:
    """There is no header at all."""
    world = World()
    world.extensions = {"links": ("1",)}
    ask(world, world.live())
    assert "poppy-extensions" not in world.company.requests[0].headers


@pytest.mark.requirement("5.2-04", "5.2-03")
@pytest.mark.parametrize(
    "url",
    [
        "https://api.shop.example/poppy/other",
        f"{ENDPOINT}/cnv_1/events/",
        "https://evil.example/poppy/conversations",
        f"https://{DOMAIN}/.well-known/poppy.json",
        "http://api.shop.example/poppy/conversations",
    ],
)
def test_nothing_is_signed_for_another_url(url: str) -> None:
    """A host in common makes no destination: not even a JWT is made."""
    world = World()
    live = world.live()
    with pytest.raises(NotADestination) as caught:
        ask(world, live, Request("POST", url))
    assert caught.value.rule == "destination.listed"
    assert world.company.requests == []


def test_the_send_carries_what_it_is_judged_by() -> None:
    """The hop can be judged again where it leaves; the JWT shows itself nowhere."""
    world = World()
    ask(world, world.live())
    [send] = [effect for effect in world.done if isinstance(effect, Send)]
    assert send.destinations.listed[0] == Destination(ENDPOINT, methods=frozenset({"POST"}))
    assert send.fields.jwt.reveal() not in repr(send)
    assert "poppy-session" not in send.request.headers


@pytest.mark.requirement("papaver-16")
@pytest.mark.parametrize("name", ["Poppy-Session", "Poppy-Version", "Poppy-Extensions", "Authorization"])
def test_the_sessions_headers_are_its_own(name: str) -> None:
    """A caller that brings one is told, and nothing leaves."""
    world = World()
    live = world.live()
    with pytest.raises(ConfigurationError) as caught:
        ask(world, live, replace(READ, headers=Headers([(name, "x")])))
    assert caught.value.rule == "session.headers-ours"
    assert world.company.requests == []


@pytest.mark.requirement("papaver-17", "5.5-02")
def test_a_closed_session_sends_nothing() -> None:
    """Not to sign out, for there is nothing to revoke, and nothing else: its `sid` is used no longer."""
    world = World()
    live = world.live()
    ask(world, live)
    sent, fetched = list(world.company.requests), list(world.fetched)
    live.ended = True
    with pytest.raises(ConfigurationError) as caught:
        ask(world, live)
    assert caught.value.rule == "session.open"
    assert (world.company.requests, world.fetched) == (sent, fetched)
    ask(world, world.live())
    first, second = world.company.proven
    assert first.sid != second.sid


# ── recoveries ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("5.5-05", "5.2-11")
def test_an_ended_session_is_followed_by_another() -> None:
    """The same request goes out once more under a fresh `sid`, for the same User."""
    world = World()
    assert codes(world, error("session_ended"), OK) == (200, 2)
    first, second = world.company.proven
    assert first.sid != second.sid
    assert first.user_id == second.user_id


@pytest.mark.requirement("5.5-06")
def test_a_second_ended_session_is_final() -> None:
    """No third try."""
    assert codes(World(), error("session_ended"), error("session_ended"), OK) == (400, 2)


def test_two_requests_of_one_ended_session_open_one_other() -> None:
    """Who learns of it later uses the Session that was opened meanwhile."""
    world = World()
    live = world.live()
    ask(world, live)
    opened = live.current
    assert opened is not None
    live.leave(opened)
    ask(world, live)
    other = live.current
    live.leave(opened)
    assert live.current is other


@pytest.mark.requirement("3.4-22", "3.4-23")
def test_another_version_means_another_session() -> None:
    """The documents are asked for past every cache, and the request goes once more, in the other version."""
    world = World()
    world.dialects = {V: DIALECTS[V], NEWER: replace(DIALECTS[V], version=NEWER)}
    live = world.live()
    world.fetched.clear()
    world.company.documents[POPPY] = document(protocol_version=str(NEWER))
    world.company.script = [error("version_unsupported"), OK]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.house.agent_world.DIALECTS", world.dialects)
        exchange = ask(world, live)
    assert exchange.response.status == 200
    assert exchange.opened.dialect.version == NEWER
    sent = [request.headers.first("poppy-version") for request in world.company.requests]
    assert sent == [str(V), str(NEWER)]
    first, second = world.company.proven
    assert first.sid != second.sid
    assert {request.headers.first("cache-control") for request in world.fetched} == {"no-cache"}


@pytest.mark.requirement("3.4-16")
def test_another_extension_means_another_session() -> None:
    """What is declared stays the same for as long as a `sid` does, whatever is implemented meanwhile."""
    world = World()
    world.company.documents[POPPY] = document(
        extensions={"links": [{"version": "1"}], "x.example/a": [{"version": "2"}]}
    )
    world.extensions = {"links": ("1",)}
    live = world.live()
    ask(world, live)
    world.extensions = {"links": ("1",), "x.example/a": ("2",)}
    live.setup = world.live().setup
    ask(world, live)
    ask(world, world.live())
    declared = [request.headers.first("poppy-extensions") for request in world.company.requests]
    assert declared == ['"links";v="1"', '"links";v="1"', '"links";v="1", "x.example/a";v="2"']
    first, again, other = world.company.proven
    assert first.sid == again.sid
    assert other.sid != first.sid
    assert other.user_id == first.user_id


def test_two_requests_of_one_version_discover_once() -> None:
    """Who learns of it later finds another Session in use, and uses it."""
    world = World()
    live = world.live()
    ask(world, live)
    opened = live.current
    assert opened is not None
    live.leave(opened)
    ask(world, live)
    world.fetched.clear()
    attempt = Attempt(opened, 0.0, READ, error("version_unsupported"))
    assert world.run(RECOVERIES[400, "version_unsupported"](live, attempt))
    assert world.fetched == []


@pytest.mark.requirement("3.4-24")
def test_the_same_version_again_means_stop() -> None:
    """The choice came out as before, so the request is not sent again."""
    world = World()
    assert codes(world, error("version_unsupported"), OK) == (400, 1)


def test_a_failed_discovery_ends_the_request() -> None:
    """Without a document nothing can be chosen."""
    world = World()
    live = world.live()
    world.company.script = [error("version_unsupported")]
    world.company.documents[POPPY] = 500
    with pytest.raises(DiscoveryFailed):
        ask(world, live)


@pytest.mark.parametrize("ahead", [400.0, -400.0])
def test_b25_a_wrong_clock_is_corrected_once(ahead: float) -> None:
    """The Company's `Date` tells how far ours is off; delegation and JWT are made by its time from then on."""
    world = World()
    world.company_ahead = ahead
    world.company.check_time = False
    now = world.clock.now() + ahead
    live = world.live()
    world.company.script = [error("invalid_session", Date=write_http_date(now)), OK]
    assert ask(world, live).response.status == 200
    world.company.check_time = True
    ask(world, live)
    assert live.offset == ahead
    assert world.company.proven[-1].iat == now
    assert world.company.proven[-1].delegation.iat <= now


@pytest.mark.parametrize(
    "date",
    [None, "yesterday", "near", "far"],
)
def test_b25_other_refusals_are_final(date: str | None) -> None:
    """Without a `Date`, with one near ours, or one that no clock can be off by, the Session is not sent again."""
    world = World()
    named = {"near": write_http_date(world.clock.now() + 60), "far": write_http_date(world.clock.now() + 90_000)}
    told = Headers([] if date is None else [("Date", named.get(date, date))])
    assert codes(world, replace(error("invalid_session"), headers=told), OK) == (400, 1)


def test_b25_the_correction_is_tried_once() -> None:
    """A Company that still refuses is believed."""
    world = World()
    world.company.check_time = False
    first = error("invalid_session", Date=write_http_date(world.clock.now() + 300))
    second = error("invalid_session", Date=write_http_date(world.clock.now() + 900))
    assert codes(world, first, second, OK) == (400, 2)


@pytest.mark.requirement("5.6-06")
@pytest.mark.parametrize(
    ("refusal", "seconds"),
    [
        (error("rate_limited", 429, Retry_After="7"), 7),
        (answer(429, None, Retry_After="7"), 7),
        (error("temporarily_unavailable", 503, Retry_After="3"), 3),
        (answer(429), 1),
        (answer(429, None, Retry_After="soon"), 1),
        (answer(429, None, Retry_After="0"), 1),
    ],
)
def test_the_company_says_when_to_come_again(refusal: Any, seconds: int) -> None:
    """The same request waits at least that long, and is sent once more."""
    world = World()
    assert codes(world, refusal, OK) == (200, 2)
    assert world.waits == [seconds]


@pytest.mark.requirement("5.6-06")
def test_a_long_pause_is_the_callers() -> None:
    """It is not waited for, and the request is not sent again before it is over."""
    world = World()
    live = world.live()
    world.company.script = [answer(429, None, Retry_After="600")]
    assert ask(world, live).response.status == 429
    with pytest.raises(RateLimited) as caught:
        ask(world, live)
    assert (caught.value.rule, caught.value.retry_after) == ("request.paced", 600)
    assert len(world.company.requests) == 1
    world.clock.advance(580)
    ask(world, live)
    assert world.waits == [20.0]
    ask(world, live, Request("POST", ENDPOINT, body=b'{"message":{"id":"m","author":{"type":"agent"},"text":"x"}}'))
    assert world.waits == [20.0]


def test_each_recovery_is_used_once() -> None:
    """Different recoveries may follow each other; none comes twice."""
    world = World()
    script = [error("session_ended"), answer(429, None, Retry_After="1"), error("session_ended"), OK]
    assert codes(world, *script) == (400, 3)


def test_what_is_not_in_the_table_is_the_callers() -> None:
    """Other statuses and codes come back as they are."""
    for refusal in (error("conversation_closed", 409), error("session_ended", 409), answer(500), answer(302)):
        assert codes(World(), refusal, OK) == (refusal.status, 1)
    assert len(RECOVERIES) == 9


@pytest.mark.requirement("8.11-08")
def test_a_success_is_never_sent_again() -> None:
    """A challenge beside it changes nothing: the message was accepted."""
    challenge = 'Bearer error="insufficient_scope", scope="orders:read"'
    accepted = answer(202, {"error": "session_ended"}, WWW_Authenticate=challenge)
    assert codes(World(), accepted, OK) == (202, 1)


def test_a_failure_of_the_network_is_raised() -> None:
    """This flow does not know whether the request may be repeated."""
    world = World()
    live = world.live()
    world.company.script = [unreachable()]
    with pytest.raises(Exception, match="no answer"):
        ask(world, live)


def test_the_destination_check_is_what_refuses() -> None:
    """Without it, the request would be signed and sent."""
    world = World()
    live = world.live()
    with switched_off("destination.listed"):
        exchange = ask(world, live, Request("GET", "https://evil.example/poppy/conversations/cnv_1/events"))
    assert exchange.response.status == 404

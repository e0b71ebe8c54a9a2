"""What a Personal Agent does when a Company refuses, and what it does not do twice (section 7, 3.4, 5.5, 5.6)."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest

from papaver.company.settings import CompanyLimits
from papaver.protocol.errors import RateLimited, Refused, SignInNeeded, TemporarilyUnavailable
from papaver.testing.keys import NOW
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange, Lost, Onward
from papaver.web.messages import Headers, Response
from tests.house.pairing import POPPY_JSON, Script, claims, jose, lose_request, replies, signed, told

pytestmark = pytest.mark.anyio

START, EVENTS = "/conversations", "/events"
CLIENT = "https://agent.example/agent.json"


def refusal(code: str, status: int = 400, **headers: str) -> Response:
    return told(status, {"error": code, "error_description": "for developers"}, **headers)


def bodies(both: Pair) -> list[bytes]:
    """The bodies of the starts that were sent."""
    return [one.request.body for one in signed(both) if one.place.endswith(START)]


@pytest.mark.requirement("7-32", "7-33", "5.5-05")
async def test_an_ended_session_is_followed_by_one_other() -> None:
    """The Company ends it: the same request, signed for a new `sid`, once; the conversation goes on."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        assert session.sid is not None
        await both.company.sessions.end(CLIENT, session.sid)  # type: ignore[arg-type]
        before = len(signed(both))
        await conversation.say("Still there?")
        refused, accepted = signed(both)[before:]
        assert refused.response is not None
        assert (refused.response.status, json.loads(refused.response.body)["error"]) == (400, "session_ended")
        assert refused.request.body == accepted.request.body
        assert (claims(refused)["sid"] == claims(accepted)["sid"], session.sid) == (False, claims(accepted)["sid"])
        assert claims(refused)["sub"] == claims(accepted)["sub"]
        assert await replies(conversation) == ["You said: Still there?"]


@pytest.mark.requirement("5.5-06")
async def test_a_second_ended_session_is_final() -> None:
    """Exactly two tries, each under a `sid` of its own."""
    async with pair() as both:
        Script(both).always(START, refusal("session_ended"))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert caught.value.code == "session_ended"
        assert len({claims(one)["sid"] for one in signed(both)}) == len(signed(both)) == 2
        assert await both.agent.pending() == ()


@pytest.mark.requirement("7-31", "7-30", "4.1-16")
async def test_invalid_session_stops_the_request() -> None:
    """A Company that does not accept this agent: one try, the same Session, and the reason is the caller's to read."""
    async with pair() as both:
        await both.company.clients.judge(both.agent.identity.client_id, "blocked")
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert caught.value.code == "invalid_session"
        assert b"does not accept this client" in caught.value.response.body
        [only] = signed(both)
        assert session.sid == claims(only)["sid"]
        await both.company.clients.judge(both.agent.identity.client_id, None)
        await session.ask("Hi")
        assert session.sid == claims(only)["sid"]


@pytest.mark.requirement("3.2-03")
async def test_without_an_issuer_a_session_is_verified_all_the_same() -> None:
    """A header that was changed on the way is refused; the audience is the domain."""
    async with pair() as both:

        async def tamper(exchange: Exchange, onward: Onward) -> Response:
            header = str(exchange.request.headers.first("poppy-session"))
            changed = header[:-4] + ("AAAA" if header[-4:] != "AAAA" else "BBBB")
            fields = exchange.request.headers.with_(("poppy-session", changed))
            exchange.request = type(exchange.request)(
                exchange.request.method, exchange.request.url, Headers(fields), exchange.request.body
            )
            return await onward()

        Script(both).then(START, tamper)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert (caught.value.code, caught.value.response.status) == ("invalid_session", 400)
        await session.ask("Hi")
        assert {claims(one)["aud"] for one in signed(both)} == {"https://example.com"}


@pytest.mark.requirement("3.4-22", "3.4-24", "7-35")
async def test_version_unsupported_is_looked_into_past_every_cache() -> None:
    """The document is asked for anew; it says the same, so the request is not sent again."""
    async with pair() as both:
        Script(both).then(START, refusal("version_unsupported"))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert caught.value.code == "version_unsupported"
        first, again = [one for one in both.wire.exchanges if one.place.endswith(POPPY_JSON)]
        assert "cache-control" not in first.request.headers
        assert again.request.headers.first("cache-control") == "no-cache"
        assert len(signed(both)) == 1


@pytest.mark.parametrize("ahead", [300.0, -300.0, 86_000.0])
async def test_b25_a_wrong_clock_is_learned_from_the_company_once(ahead: float) -> None:
    """The Company refuses the first JWT and says what time it is; from then on every request is right at once."""
    async with pair() as both:
        both.agent_clock.ahead = ahead
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        refused, accepted, *_ = signed(both)
        assert refused.response is not None
        assert json.loads(refused.response.body)["error"] == "invalid_session"
        assert (claims(refused)["iat"], claims(accepted)["iat"]) == (int(NOW + ahead), NOW)
        assert claims(refused)["sid"] == claims(accepted)["sid"]
        await replies(conversation)
        await conversation.say("And?")
        assert [one.response.status for one in signed(both) if one.response is not None].count(400) == 1


async def test_b25_a_clock_that_is_hardly_wrong_is_left_alone() -> None:
    """Companies allow a minute."""
    async with pair() as both:
        both.agent_clock.ahead = -50
        await (await both.agent.discover("example.com")).session("dana").ask("Hi")
        assert len(signed(both)) == 1


async def test_b25_a_company_that_lies_about_the_time_is_believed_once() -> None:
    """It refuses for another reason, with a wrong Date: a second try, no third, and no key that lives for ever."""
    async with pair() as both:
        Script(both).always(START, refusal("invalid_session", date=formatdate(NOW + 3600, usegmt=True)))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert caught.value.code == "invalid_session"
        assert [claims(one)["iat"] - NOW for one in signed(both)] == [0, 3600]


@pytest.mark.requirement("5.6-06")
async def test_a_real_limit_is_kept() -> None:
    """The Company counts; the agent waits as long as it is told, and comes through."""
    async with pair(echoing(limits=CompanyLimits(requests_per_user=3))) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        for number in range(4):
            await session.ask(str(number))
        limited = next(one for one in signed(both) if one.response is not None and one.response.status == 429)
        again = signed(both)[signed(both).index(limited) + 1]
        assert limited.response is not None
        assert again.at - limited.at >= int(str(limited.response.headers.first("retry-after"))) > 0
        assert again.request.body == limited.request.body
        assert len(await both.agent.conversations()) == 4


@pytest.mark.requirement("5.6-06")
@pytest.mark.parametrize(
    ("value", "least"),
    [("3", 3), (formatdate(NOW + 7, usegmt=True), 7), ("0", 1), ("soon", 1), ("-5", 1), ("", 1)],
    ids=["seconds", "date", "zero", "words", "negative", "empty"],
)
async def test_retry_after_is_waited_for_in_either_form(value: str, least: int) -> None:
    """What cannot be read is a second, and no storm."""
    async with pair() as both:
        Script(both).then(START, told(429, retry_after=value))
        await (await both.agent.discover("example.com")).session("dana").ask("Hi")
        limited, again = signed(both)
        assert again.at - limited.at >= least
        assert both.agent_clock.slept == [least]


@pytest.mark.requirement("5.6-06")
async def test_a_long_pause_is_the_callers_and_still_holds() -> None:
    """Nothing waits for an hour; and nothing is sent within it, by this Session, either."""
    async with pair() as both:
        Script(both).then(START, told(429, retry_after="3600"))
        session = (await both.agent.discover("example.com")).session("dana")
        for expected in (3600, 1800):
            with pytest.raises(RateLimited) as caught:
                await session.ask("Hi")
            assert caught.value.retry_after == expected
            assert len(signed(both)) == 1
            assert await both.agent.pending() == ()
            both.clock.advance(1800)
        await session.ask("Hi")
        assert len(signed(both)) == 2
        assert both.agent_clock.slept == []


async def test_a_company_that_cannot_check_just_now_is_asked_again() -> None:
    """It cannot reach the agent's own documents: 503 with Retry-After, and then they are there (readings 15)."""
    async with pair() as both:
        Script(both).then("/agent.json", lose_request)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        assert await replies(conversation) == ["You said: Hi"]
        first, second, *_ = signed(both)
        assert first.response is not None
        assert (first.response.status, json.loads(first.response.body)["error"]) == (503, "temporarily_unavailable")
        assert second.at - first.at >= int(str(first.response.headers.first("retry-after")))
        assert first.request.body == second.request.body


async def test_a_company_that_can_never_check_is_given_up() -> None:
    """One more try, then the caller is told; the message was not accepted and does not wait in the outbox."""
    async with pair() as both:
        Script(both).always("/agent.json", lose_request)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(TemporarilyUnavailable):
            await session.ask("Hi")
        assert len(signed(both)) == 2
        assert await both.agent.pending() == ()


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_gateways_word_is_passing(status: int) -> None:
    """A page of a proxy while the server restarts: sent again, a little later, under the same id."""
    async with pair() as both:
        Script(both).then(START, told(status, b"<html>Bad gateway</html>"), lose_request)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        assert await replies(conversation) == ["You said: Hi"]
        assert len(set(bodies(both))) == 1
        assert both.agent_clock.slept == [1, 2]


@pytest.mark.parametrize(
    ("challenge", "status", "scope"),
    [
        ('Bearer scope="orders:read"', 401, "orders:read"),
        ("Bearer", 401, ""),
        ('Bearer error="invalid_token"', 401, ""),
        ('Bearer error="insufficient_scope", scope="orders:write addresses"', 403, "orders:write addresses"),
        ('DPoP algs="ES256", Bearer scope="orders:read"', 401, ""),
    ],
)
async def test_an_account_that_is_needed_is_the_callers_to_get(challenge: str, status: int, scope: str) -> None:
    """Signed out as this agent is, a challenge ends the request; it is sent once."""
    async with pair() as both:
        Script(both).always(START, told(status, www_authenticate=challenge))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(SignInNeeded) as caught:
            await session.ask("Show my orders")
        assert caught.value.scope == scope
        assert len(signed(both)) == 1


@pytest.mark.requirement("8.11-08")
async def test_an_accepted_message_is_never_posted_again_for_a_challenge() -> None:
    """A success that carries one, or codes that look like errors, is a success."""

    async def challenged(exchange: Exchange, onward: Onward) -> Response:
        answer = await onward()
        body = json.dumps({**json.loads(answer.body), "error": "session_ended"}).encode()
        more = answer.headers.with_(("www-authenticate", 'Bearer error="insufficient_scope", scope="orders:read"'))
        return Response(answer.status, Headers(pair for pair in more if pair[0] != "content-length"), body)

    async with pair() as both:
        Script(both).always(START, challenged).always("/messages", challenged)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await conversation.say("More")
        posts = [one.place for one in signed(both) if one.request.method == "POST"]
        assert len(posts) == 2
        assert session.sid == claims(signed(both)[0])["sid"]


async def test_every_kind_of_recovery_in_one_request() -> None:
    """Each helps once, whatever comes first; the message is the same in every try, its JWT never."""
    async with pair() as both:
        both.agent_clock.ahead = 7200
        Script(both).then(START, None, refusal("session_ended"), lose_request, told(429, retry_after="2"))
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        assert await replies(conversation) == ["You said: Hi"]
        posts = [one for one in signed(both) if one.place.endswith(START)]
        assert len(posts) == 5
        assert len(set(bodies(both))) == 1
        assert len({claims(one)["jti"] for one in posts}) == 5
        assert [jose(one)["typ"] for one in posts] == ["poppy-session+jwt"] * 5


async def test_an_api_is_recovered_for_as_well() -> None:
    """The client that libraries get does the same: a new Session, a pause, the clock."""
    from papaver.company.offer import Mcp

    mcp = "https://mcp.example.com/mcp"
    async with pair(echoing(apis=[Mcp(mcp, "Products")])) as both:
        answers = [refusal("session_ended"), told(429, retry_after="4"), told(200, {"ok": True})]

        async def api(exchange: Exchange) -> Response:
            if not answers:
                raise Lost
            return answers.pop(0)

        both.wire.sites["mcp.example.com"] = api
        session = (await both.agent.discover("example.com")).session("dana")
        answer = await session.http.post(mcp, json={"q": "coats"})
        assert answer.json() == {"ok": True}
        sent = both.wire.sent("agent", "mcp.example.com")
        assert {one.request.body for one in sent} == {b'{"q":"coats"}'}
        assert [claims(one)["sid"] == session.sid for one in sent] == [False, True, True]
        assert both.agent_clock.slept == [4]

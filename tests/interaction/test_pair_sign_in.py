"""Sign-in between both parties: the real client and guards, a real embedded issuer, and a User with a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from papaver.adapters.httpx2.personal_agent import HttpSession
from papaver.company import Company
from papaver.company.authserver import EmbeddedIssuer
from papaver.company.scopes import Scope
from papaver.company.turn import Turn
from papaver.oauth.errors import AccessDenied
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, SignedIn
from papaver.personal_agent.sign_in_checks import SignInUnknown
from papaver.protocol.conversation.model import AuthorizationNeeded, MessageAdded
from papaver.protocol.errors import SignInNeeded
from papaver.stores.memory import MemoryStore
from papaver.testing.pair import Pair, pair
from tests.house.user_browser import User

pytestmark = pytest.mark.anyio

ISSUER = "https://auth.example.com"
SCOPES = (
    Scope("orders:read", "See your orders", "none", True),
    Scope("orders:write", "Change and cancel orders", "irreversible", True),
)


@dataclass
class Shop:
    """Both parties, the issuer, a Session of Dana's, and Dana."""

    both: Pair
    issuer: EmbeddedIssuer
    session: HttpSession
    dana: User

    async def sign_in(self, *scopes: str, session: HttpSession | None = None) -> SignedIn:
        """Dana signs in from beginning to end."""
        begun = await (session or self.session).sign_in(*scopes)
        assert isinstance(begun, DirectSignIn)
        return await begun.complete(await self.dana.approve(begun.url))

    def tokens_sent(self) -> list[str | None]:
        """The `Authorization` of each request to the conversation endpoint."""
        sent = self.both.wire.sent("agent", "api.example.com")
        return [one.request.headers.first("authorization") for one in sent if "/.well-known/" not in one.place]


def orders(**options: Any) -> Company:
    """A Company whose agent needs `orders:read` when it is asked for an order."""
    company = Company(
        domain="example.com",
        name="Example",
        base_url="https://api.example.com/poppy",
        store=MemoryStore(),
        sign_in=EmbeddedIssuer(ISSUER, sign_in_page="https://www.example.com/sign-in"),
        scopes=SCOPES,
        **options,
    )

    @company.conversation
    async def answer(turn: Turn) -> str:
        if "order" in turn.text:
            return f"Shipped, {turn.require('orders:read')}."
        return f"You said: {turn.text}"

    return company


@asynccontextmanager
async def shop(*companies: Company, **options: Any) -> AsyncGenerator[Shop]:
    """Dana's agent at a Company with an issuer."""
    async with pair(*(companies or (orders(),)), **options) as both:
        issuer: Any = both.company.sign_in
        session = (await both.agent.discover("example.com")).session(user="dana")
        yield Shop(both, issuer, session, User(both, issuer))


@pytest.mark.requirement("8.11-03", "8.11-08")
async def test_an_order_is_answered_in_the_same_conversation_after_a_sign_in() -> None:
    """The event names the scope, the User signs in, the parked turn goes on; the message was sent once."""
    async with shop() as world:
        conversation = await world.session.ask("Where is my order?")
        said: list[str | None] = []
        async for event in conversation.events():
            if isinstance(event, AuthorizationNeeded):
                assert not await conversation.authorize(event)
                signed_in = await world.sign_in(*event.scope.split())
                assert signed_in.scopes == ("orders:read",)
                assert await conversation.authorize(event)
            elif isinstance(event, MessageAdded):
                said.append(event.message.text)
        assert said == ["Where is my order?", "Shipped, acct_dana."]
        posts = [one for one in world.both.wire.sent("agent", "api.example.com") if one.request.method == "POST"]
        assert len(posts) == 1
        assert world.tokens_sent()[-1] is not None


@pytest.mark.requirement("5.5-10", "8.11-09")
async def test_signed_out_again_the_conversation_stays_open_and_says_what_it_needs() -> None:
    """A read without the account is a challenge; the User signs in again and goes on, in the same conversation."""
    async with shop() as world:
        await world.sign_in("orders:read")
        conversation = await world.session.ask("Where is my order?")
        assert [one async for one in conversation.events()]
        assert await world.session.sign_out()
        assert await world.session.scopes() == ()
        with pytest.raises(SignInNeeded) as caught:
            await conversation.say("And now?")
        assert caught.value.only_if_asked
        [account] = await world.both.agent.accounts()
        assert (account.state, account.scopes, account.unrevoked) == ("signed_out", (), 0)
        await world.sign_in("orders:read")
        await conversation.say("And now?")
        assert [one.message.text async for one in conversation.events() if isinstance(one, MessageAdded)][-1] == (
            "You said: And now?"
        )


@pytest.mark.requirement("4.3-06", "4.3-09")
async def test_a_device_sign_in_shows_who_asks_and_waits() -> None:
    """The link, the code, the Company's name and domain; then the User decides on another device."""
    async with shop() as world:
        begun = await world.session.sign_in("orders:read", device=True)
        assert isinstance(begun, DeviceSignIn)
        assert (begun.company_name, begun.domain) == ("Example", "example.com")
        assert begun.verification_uri.startswith(ISSUER)
        assert begun.verification_uri_complete is not None
        assert begun.user_code in begun.verification_uri_complete
        waiting = asyncio.create_task(begun.wait())
        await world.dana.type_code(begun.verification_uri, begun.user_code, ["orders:read"])
        assert (await waiting).scopes == ("orders:read",)
        assert await world.session.scopes() == ("orders:read",)


async def test_a_web_callback_is_completed_by_another_process_once() -> None:
    """All that it needs is in the vault."""
    async with shop() as world:
        begun = await world.session.sign_in("orders:read")
        assert isinstance(begun, DirectSignIn)
        callback = await world.dana.approve(begun.url)
        agent = await world.both.restart()
        with pytest.raises(SignInUnknown):
            await agent.complete(callback, user="eve")
        signed_in = await agent.complete(callback, user="dana")
        assert (signed_in.user, signed_in.account, signed_in.domain) == ("dana", "default", "example.com")
        with pytest.raises(SignInUnknown):
            await agent.complete(callback)
        session = (await agent.discover("example.com")).session(user="dana")
        await session.ask("Hello")
        assert world.tokens_sent()[-1] is not None


async def test_a_denial_changes_nothing() -> None:
    """And is told as one."""
    async with shop() as world:
        await world.sign_in("orders:read")
        begun = await world.session.sign_in("orders:write")
        assert isinstance(begun, DirectSignIn)
        with pytest.raises(AccessDenied):
            await begun.complete(await world.dana.decline(begun.url))
        assert await world.session.scopes() == ("orders:read",)
        await world.session.ask("Hello")
        assert world.tokens_sent()[-1] is not None


async def test_b47_twenty_requests_at_the_end_of_a_token_are_one_refresh() -> None:
    """Over the real client, the real issuer and a vault: one family, no sign-out."""
    async with shop() as world:
        await world.sign_in("orders:read")
        conversation = await world.session.ask("Hello")
        assert [one async for one in conversation.events()]
        world.both.clock.advance(3600)
        sessions = [(await world.both.agent.discover("example.com")).session(user="dana") for _ in range(20)]
        async with asyncio.TaskGroup() as tasks:
            for session in sessions:
                tasks.create_task(session.ask("Hello"))
        refreshes = [one for one in world.both.wire.sent("agent", "auth.example.com") if one.place.endswith("/token")]
        assert len(refreshes) == 2
        assert all(world.tokens_sent())
        [account] = await world.both.agent.accounts()
        assert account.state == "signed_in"


async def test_disconnected_at_the_company_the_next_request_is_signed_out(caplog: pytest.LogCaptureFixture) -> None:
    """`invalid_token`, then `invalid_grant`: told, and the request goes on without a token."""
    async with shop() as world:
        await world.sign_in("orders:read")
        await world.session.ask("Hello")
        assert await world.issuer.disconnect(world.dana.account) == 1
        await world.session.ask("Hello")
        assert [one is None for one in world.tokens_sent()] == [False, False, True]
        [account] = await world.both.agent.accounts()
        assert account.state == "ended"
        assert "no longer signed in" in caplog.text


@pytest.mark.requirement("3.2-52", "3.2-55", "3.2-57")
async def test_an_endpoint_that_wants_an_account_gets_no_first_request_without_one() -> None:
    """The hint arranges the sign-in; the very first POST carries a token, and the Session header as any."""
    async with shop(orders(access="signed_in")) as world:
        with pytest.raises(SignInNeeded) as caught:
            await world.session.ask("Hello")
        assert not caught.value.only_if_asked
        assert world.both.wire.sent("agent", "api.example.com") == []
        await world.sign_in("orders:read")
        await world.session.ask("Hello")
        assert all(world.tokens_sent())
        sent = world.both.wire.sent("agent", "api.example.com")
        assert all("poppy-session" in one.request.headers for one in sent if one.request.method == "POST")
        assert await world.both.agent.pending() == ()


async def test_an_anonymous_session_has_no_account_and_its_challenge_asks_nobody() -> None:
    """Neither does it learn of the one that is signed in."""
    async with shop() as world:
        await world.sign_in("orders:read")
        async with (await world.both.agent.discover("example.com")).session(user="dana", anonymous=True) as nobody:
            await nobody.ask("Hello")
            assert world.tokens_sent() == [None]
            assert await nobody.scopes() == ()


@pytest.mark.requirement("8.11-07")
async def test_event_and_challenge_are_one_need() -> None:
    """A waiting POST brings both: the event is handed out once, and nobody raises."""
    async with shop() as world:
        conversation = await world.session.ask("Where is my order?", wait=5)
        needs = 0
        async for event in conversation.events():
            if isinstance(event, AuthorizationNeeded):
                needs += 1
                need = await conversation.need_of(event)
                assert need is not None
                assert (need.scope, need.only_if_asked) == ("orders:read", False)
                break
        assert needs == 1


async def test_a_librarys_client_is_told_when_the_user_is_needed() -> None:
    """SignInNeeded out of `session.http`; after a sign-out the Company's answer is the caller's."""
    async with shop() as world:
        await world.sign_in("orders:read")
        conversation = await world.session.ask("Where is my order?")
        url = f"https://api.example.com/poppy/conversations/{conversation.id}/events"
        assert (await world.session.http.get(url)).status_code == 200
        assert await world.session.sign_out()
        assert (await world.session.http.get(url)).status_code == 401
        other = (await world.both.agent.discover("example.com")).session(user="dana", account="business")
        with pytest.raises(SignInNeeded) as caught:
            await other.http.get(url)
        assert other.account == "business"
        assert not caught.value.only_if_asked


async def test_who_signs_in_later_goes_on_reading_then() -> None:
    """Reading ends at the event that nobody meets; begun again after the sign-in, it brings the answer."""
    async with shop() as world:
        conversation = await world.session.ask("Where is my order?")
        assert any([isinstance(event, AuthorizationNeeded) async for event in conversation.events()])
        await world.sign_in("orders:read")
        again = await world.session.resume(conversation.id)
        said = [event.message.text async for event in again.events() if isinstance(event, MessageAdded)]
        assert said == ["Shipped, acct_dana."]


async def test_a_turn_that_went_on_by_a_message_is_not_waited_for_again() -> None:
    """The User signs in and then says more: once the Company is idle after that, reading holds no further request."""
    async with shop() as world:
        world.session.streams = False
        conversation = await world.session.ask("Where is my order?")
        assert any([isinstance(event, AuthorizationNeeded) async for event in conversation.events()])
        await world.sign_in("orders:read")
        again = await world.session.resume(conversation.id)
        before = len(world.both.wire.sent("agent", "api.example.com"))
        await again.say("And the other order?")
        said = [event.message.text async for event in again.events() if isinstance(event, MessageAdded)]
        assert said[-1] == "Shipped, acct_dana."
        sent = world.both.wire.sent("agent", "api.example.com")[before:]
        reads = [one.response for one in sent if one.place.endswith("/events")]
        assert [one for one in reads if one is None or not json.loads(one.body)["events"]] == []

"""A Session with a Company, as an application uses it: ask, resume, and what is left in the outbox."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from papaver.personal_agent.accounts import is_in, within
from papaver.personal_agent.content import compose
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.described import DescribedApi
from papaver.personal_agent.driver import Ports, Sender, drive
from papaver.personal_agent.flows.access import account_of
from papaver.personal_agent.flows.converse import Delivered, deliver, deliver_pending, write
from papaver.personal_agent.flows.describe import describe
from papaver.personal_agent.flows.effects import Flow, load
from papaver.personal_agent.flows.sign_in import BegunDirect, begin, complete, poll
from papaver.personal_agent.flows.sign_out import sign_out
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.outbox import START, Target
from papaver.personal_agent.records import CONVERSATION, ConversationRow, read_row, row_key
from papaver.personal_agent.services import Service
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, SignedIn
from papaver.personal_agent.sign_in_checks import state_of
from papaver.personal_agent.streams import EventStream
from papaver.protocol.conversation.content import check_id
from papaver.protocol.conversation.model import Message, Responder, Status
from papaver.protocol.destinations import Destination
from papaver.protocol.dialect import Wanted
from papaver.protocol.terms import AgentId, ConversationId, SessionId, UserId
from papaver.values.errors import PapaverError
from papaver.values.secret import Secret

__all__ = ["Session"]

logger = logging.getLogger("papaver.personal_agent")

T = TypeVar("T")
SENT_MOST: Final = 200
"""Messages that are remembered as sent."""


class Session:
    """One User's activity at one Company. Nothing is sent before the first request, which opens it (section 5).

    When the Company ends the Session, the next request opens another with a new `sid`; conversations go on (5.5).
    A Session that the User wants closed is simply not used again: `aclose` frees what it holds on this side.
    """

    def __init__(self, live: LiveSession, ports: Ports, sender: Sender) -> None:
        self.live = live
        self._ports = ports
        self._sender = sender
        self._unsent = True
        self.streams = True
        """Whether events are read as a stream where the Company offers one (8.6); of conversations made from now on."""
        self.listening: set[EventStream] = set()
        self.sent_before: list[tuple[str, str]] = []
        """(message ID, conversation ID) of what was left in the outbox and is accepted by now."""
        self._sent: deque[Message] = deque(maxlen=SENT_MOST)

    @property
    def sid(self) -> SessionId | None:
        """The Session ID in use; None before the first request."""
        return None if self.live.current is None else self.live.current.sid

    @property
    def user_id(self) -> UserId | None:
        """The User ID at this Company; None before the first request."""
        return None if self.live.current is None else self.live.current.user_id

    @property
    def agent_id(self) -> AgentId | None:
        """The Agent ID at this Company; None before the first request, and without an agent's name."""
        return None if self.live.current is None else self.live.current.agent_id

    @property
    def anonymous(self) -> bool:
        """Whether the User has a User ID for this Session alone (5.1)."""
        return self.live.whose.anonymous

    async def ask(
        self,
        text: str | None = None,
        *,
        by_user: bool = False,
        data: Mapping[str, object] | None = None,
        context: Mapping[str, object] | None = None,
        extensions: Mapping[str, object] | None = None,
        locale: str | None = None,
        time_zone: str | None = None,
        user_available: bool | None = None,
        wait: int | None = None,
    ) -> Conversation:
        """Start a conversation; when this returns, the Company has accepted the message.

        `data`            structured details, a JSON object          `context`  facts about the User's situation (8.4)
        `locale`          such as `en-US`                            `time_zone`  such as `America/Los_Angeles`
        `user_available`  whether the User can answer now            `by_user`  the text is the User's own words (8.8)
        `wait`            seconds that the Company may hold its answer until it has replied (8.3)

        Raises InvalidRequest, NotOffered, Refused, SignInNeeded, RateLimited, Misbehaved; FetchFailed when no answer
        could be had: then the message stays in the outbox, and is sent again under the same id.
        """
        message = compose(
            message_id(self.live.setup.ids),
            text,
            by_user=by_user,
            data=data,
            context=context,
            extensions=extensions,
            locale=locale,
            time_zone=time_zone,
            user_available=user_available,
        )
        return await self.start(message, START, Wanted(wait=wait))

    async def ask_as_user(self, text: str, *, wait: int | None = None) -> Conversation:
        """Start a conversation with the User's own words: no summary, no translation (8.8). Raises as `ask`."""
        return await self.ask(text, by_user=True, wait=wait)

    async def resume(self, conversation_id: str) -> Conversation:
        """A conversation of this User at this Company, from where its events were handled last.

        One that the vault does not know is read from its beginning. Nothing is sent. Raises InvalidRequest for a text
        that can be no Conversation ID.
        """
        check_id(conversation_id)
        return Conversation(self, await self.run(self._row(ConversationId(conversation_id))))

    async def send_pending(self) -> tuple[Conversation, ...]:
        """Send what was written and not known to be accepted, with the same ids; the conversations that it is in.

        It happens by itself before the next message. Raises as `ask`.
        """
        busy = frozenset(self.live.setup.in_flight)
        delivered = await self.run(deliver_pending(self.live, busy))
        self.sent_before += [(one.message_id, one.row.conversation_id) for one in delivered]
        self._sent.extend(one.message for one in delivered if one.message is not None)
        self._unsent = False
        return tuple(Conversation(self, one.row, one.page) for one in delivered)

    def has_said(self, message: Message) -> bool:
        """Whether this Session sent it, with these words; of the last 200. What events say the User said is not proof.

        Of a message that an earlier Session sent, too, there is only the Company's word.
        """
        return any(
            (one.id, one.author.type, one.text, one.data)
            == (message.id, message.author.type, message.text, message.data)
            for one in self._sent
        )

    # ── the account ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def account(self) -> str:
        """Our name for the account that the Session is bound to (5.4)."""
        return self.live.whose.account

    async def scopes(self) -> tuple[str, ...]:
        """What the User approved for the account, as far as this Session may use it; empty when signed out."""
        return await self.run(self._scopes())

    async def sign_in(
        self, *scopes: str, redirect_uri: str | None = None, device: bool | None = None
    ) -> DirectSignIn | DeviceSignIn:
        """Begin a sign-in; the User ends it, themselves, at the Company (5.4). What is held stays until it succeeds.

        `scopes`        what the task needs, at least one; what is held already is asked for as well (4.7)
        `redirect_uri`  where the browser comes back to, one of the identity's `redirect_uris`; a loopback one with the
                        port that listens (4.2)
        `device`        True for Device Sign-In, False for Direct; None for Direct where the Company offers it, and
                        Device where nothing else is there. Device Sign-In is easier to abuse (RFC 10027): take it for
                        Users whose browser cannot come back.

        Raises SignInUnavailable when the Company offers no such sign-in, ConfigurationError in an anonymous Session and
        without a redirect URI, Misbehaved for a link that is not the Company's, ProtocolError, FetchFailed.
        """
        begun = await self.run(begin(self.live, scopes, redirect_uri, device))
        document = begun.began.found.document
        name, domain = document.organization.name, document.organization.domain
        setup = self.live.setup
        if isinstance(begun, BegunDirect):
            state = state_of(Secret(begun.url))

            async def finish(callback: Secret) -> SignedIn:
                return await self.run(complete(setup, callback, state=state))

            return DirectSignIn(
                begun.url, begun.redirect_uri, begun.began.scopes, name, domain, begun.expires_at, finish
            )

        async def wait() -> SignedIn:
            return await self.run(poll(setup, begun, self.live.nonces))

        shown = begun.authorization
        return DeviceSignIn(
            shown.user_code,
            shown.verification_uri,
            shown.verification_uri_complete,
            name,
            domain,
            begun.expires_at,
            begun.began.scopes,
            wait,
        )

    async def sign_out(self) -> bool:
        """Sign out of the account: no token of it is sent any more, and the Session goes on signed out (5.5).

        True when the Company has revoked every refresh token that was held. False when it could not be told: it is told
        at the next sign-in or `sign_out`.
        """
        return await self.run(sign_out(self.live))

    async def apis(self) -> tuple[DescribedApi, ...]:
        """Load the OpenAPI descriptions that the Company's document lists (section 7); they are kept while fresh.

        `http` does it by itself, once, before it refuses a URL. What they describe is content from the Company: data,
        never instructions (10.1).
        """
        return await self.run(describe(self.live))

    def describe(self, service: str, destinations: Iterable[Destination], described_at: str) -> None:
        """What an OpenAPI description defines becomes part of the Session (5.2, section 7).

        `service`       a URL of its `servers`        `destinations`  its requests
        `described_at`  the description's URL, as the Company's document lists it
        """
        self.live.describe(Service(service, tuple(destinations), described_at))

    async def aclose(self) -> None:
        """Stop using the Session. An anonymous one leaves nothing behind (5.1)."""
        self.live.ended = True
        while self.listening:
            await self.listening.pop().aclose()
        if self.anonymous:
            for user in self.live.user_ids:
                self.live.setup.keys.forget(user)
            await self._ports.vault.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.live.found.domain!r})"

    def _scopes(self) -> Flow[tuple[str, ...]]:
        opened = yield from self.live.opened()
        row = yield from account_of(self.live, opened)
        return within(row, self.live.whose.only) if row is not None and is_in(row) else ()

    # ── what Conversation uses ────────────────────────────────────────────────────────────────────────────────────

    async def run(self, flow: Flow[T]) -> T:
        """Drive one of this Session's flows."""
        return await drive(flow, self._ports, self._sender)

    async def start(self, message: Message, target: Target, wanted: Wanted) -> Conversation:
        """Start a conversation through the outbox."""
        delivered = await self.deliver(message, target, wanted)
        return Conversation(self, delivered.row, delivered.page)

    async def deliver(self, message: Message, target: Target, wanted: Wanted) -> Delivered:
        """Send a message through the outbox, after what is in it already."""
        if self._unsent:
            await self._send_what_is_left()
        unsent_before = self._unsent
        in_flight = self.live.setup.in_flight
        in_flight.add(message.id)
        self._sent.append(message)
        try:
            row = await self.run(write(self.live, message, target))
            self._unsent = True
            delivered = await self.run(deliver(self.live, row, wanted))
            self._unsent = unsent_before
            return delivered
        finally:
            in_flight.discard(message.id)

    async def _send_what_is_left(self) -> None:
        try:
            await self.send_pending()
        except PapaverError as error:
            logger.warning("messages left from before could not be sent: %s", error)

    def _row(self, conversation: ConversationId) -> Flow[ConversationRow]:
        opened = yield from self.live.opened()
        user = self.live.whose.user
        stored = yield from load(CONVERSATION, row_key(opened.company_id, user, conversation))
        if stored is not None:
            return read_row(ConversationRow, stored)
        return ConversationRow(
            company=opened.company_id,
            domain=opened.found.domain,
            user=user,
            user_id=opened.user_id,
            conversation_id=conversation,
            started_at=self.live.setup.clock.now(),
            status=Status.WORKING.value,
            responder=Responder.AGENT.value,
        )

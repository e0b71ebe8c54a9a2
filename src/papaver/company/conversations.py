"""A conversation request, from its command to its answer: read, apply, wait, write a page (8.2-8.12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial

from papaver.company.holding import Hold, Holding
from papaver.company.offer import Offer
from papaver.company.sessions import OpenedSession, Sessions
from papaver.company.settings import CompanyLimits
from papaver.company.streaming import STREAMED_BYTES, Streaming
from papaver.ports.company import ConversationLog, Slice
from papaver.ports.deltas import Deltas
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.content import MAX_TEXT_BYTES
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Message, UserRequested
from papaver.protocol.conversation.operations import (
    Answered,
    Caller,
    Close,
    HandOff,
    Read,
    RequestCommand,
    Say,
    Start,
)
from papaver.protocol.conversation.ownership import check_owner, moves
from papaver.protocol.conversation.pages import EventIds, need, page, read_cursor, should_hold
from papaver.protocol.conversation.state import Access, Asker
from papaver.protocol.dialect import Accepted, Dialect, Place, Route, RouteKind, StartBody, Wanted
from papaver.protocol.errors import (
    AccountNeeded,
    ConversationNotFound,
    InsufficientScope,
    InvalidCursor,
    PayloadTooLarge,
    SessionEnded,
)
from papaver.protocol.session import AccountAccess, VerifiedSession
from papaver.protocol.terms import ConversationId, MessageId
from papaver.values.rules import rule
from papaver.web.messages import Request, Response, Stream

__all__ = ["Conversations", "Said", "check_signed_in", "check_text"]

Said = StartBody | Message | None
"""What a body said: a start, a message, or nothing (a read, a handoff, a close)."""


@rule("limits.text")
def check_text(message: Message | None, limit: int) -> None:
    """A message text has at most as many octets as this Company takes. Raises PayloadTooLarge."""
    text = None if message is None else message.text
    if text is not None and len(text) * 4 > limit and len(text.encode()) > limit:
        raise PayloadTooLarge(f"a message text has at most {limit} octets here", rule="limits.text")


@rule("conversation.signed-in-only")
def check_signed_in(access: AccountAccess | None, scope: str) -> None:
    """3.1: who says `access: signed_in` starts nothing signed out; `scope` is what to sign in with (readings 33).

    Raises AccountNeeded.
    """
    if access is None:
        raise AccountNeeded(scope, rule="conversation.signed-in-only")


class Conversations:
    """The five requests of 8.2 for one Company."""

    def __init__(
        self,
        offer: Offer,
        log: ConversationLog,
        sessions: Sessions,
        events: EventIds,
        clock: Clock,
        ids: Ids,
        limits: CompanyLimits,
        holding: Holding,
        deltas: Deltas,
    ) -> None:
        self._log, self._sessions, self._events = log, sessions, events
        self._streaming = Streaming(log, deltas, sessions, clock, limits, holding)
        self._clock, self._ids, self._limits, self._holding = clock, ids, limits, holding
        self._endpoint, self._signed_in_only = offer.endpoint, offer.access == "signed_in"
        self._scope = " ".join(offer.conversation_scopes)
        self._first_scope = self._scope or " ".join(scope.name for scope in offer.scopes)

    def read(self, dialect: Dialect, route: Route, request: Request) -> Said:
        """What the request's body says; raises InvalidRequest or PayloadTooLarge."""
        codec = dialect.conversations
        match route.kind:
            case RouteKind.START:
                body = codec.read_start(request)
                self._check_text(body.message)
                return body
            case RouteKind.SAY:
                message = codec.read_say(request)
                self._check_text(message)
                return message
            case RouteKind.HAND_OFF | RouteKind.CLOSE:
                codec.read_nothing(request)
                return None
            case RouteKind.READ:
                return None

    def _check_text(self, message: Message | None) -> None:
        """Only what this Company takes less of: the protocol's own bound was checked when the message was read."""
        if self._limits.text_bytes < MAX_TEXT_BYTES:
            check_text(message, self._limits.text_bytes)

    async def answer(
        self,
        dialect: Dialect,
        opened: OpenedSession,
        route: Route,
        said: Said,
        wanted: Wanted,
        gone: Callable[[], Awaitable[None]],
    ) -> Response | Stream:
        """Apply what was said and answer it. Raises a PoppyError; then nothing was recorded."""
        session = opened.verified
        caller = self._caller(opened, route)
        cursor = wanted.cursor if wanted.wait is not None else None
        context_bytes = self._limits.context_bytes
        command: RequestCommand
        match said:
            case StartBody(message=message):
                await self._check_may_start(opened)
                fresh = ConversationId("cnv_" + self._ids.token())
                invited = await self._invited(said)
                command = Start(
                    caller, fresh, message, said.parent, said.user_requested, cursor, context_bytes, invited
                )
            case Message():
                command = Say(caller, _named(route), said, cursor, context_bytes)
            case None if route.kind is RouteKind.HAND_OFF:
                command = HandOff(caller, _named(route))
            case None if route.kind is RouteKind.CLOSE:
                command = Close(caller, _named(route))
            case None:
                return await self._read(dialect, opened, caller, _named(route), wanted, gone)
        answered = await self._apply(command, opened)
        codec = dialect.conversations
        if isinstance(command, HandOff | Close):
            return codec.write_state(answered.status_code, answered.status, answered.responder)
        if wanted.wait is None:
            accepted = Accepted(answered.conversation_id, answered.status, answered.responder)
            return codec.write_accepted(answered.status_code, accepted)
        found = await self._wait(opened, caller, answered.conversation_id, wanted, gone, command)
        return self._written(dialect, answered.status_code, found, wanted, session)

    def _caller(self, opened: OpenedSession, route: Route) -> Caller:
        session, access = opened.verified, opened.verified.access
        return Caller(
            session.client_id,
            session.user_id,
            session.account_id,
            opened.row,
            None if route.kind is RouteKind.READ else opened.replay,
            None if access is None else Access(tuple(sorted(access.scopes)), access.expires_at, access.ath),
            Asker(session.agent_id, session.version, session.extensions),
            self._scope,
        )

    async def _check_may_start(self, opened: OpenedSession) -> None:
        if not self._signed_in_only:
            return
        try:
            check_signed_in(opened.verified.access, self._first_scope)
        except AccountNeeded:
            await self._sessions.check_open(opened)
            raise

    async def _invited(self, said: StartBody) -> bool:
        """Whether the event that is accepted is a `user_requested` of the parent (8.10). Events never change."""
        if said.parent is None or said.user_requested is None:
            return False
        try:
            seq = self._events.read(said.parent, said.user_requested)
        except InvalidCursor:
            return False
        found = await self._log.read(said.parent, seq - 1, 1)
        events = () if found is None else found.events
        return any(isinstance(event, UserRequested) and event.id == said.user_requested for event in events)

    async def _apply(self, command: RequestCommand, opened: OpenedSession) -> Answered:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        try:
            return await self._log.apply(
                operations.keys(command), lambda loaded: decide(command, loaded, now, self._events)
            )
        except SessionEnded:
            self._sessions.forget(opened.row)
            raise

    async def _read(
        self,
        dialect: Dialect,
        opened: OpenedSession,
        caller: Caller,
        conversation: ConversationId,
        wanted: Wanted,
        gone: Callable[[], Awaitable[None]],
    ) -> Response | Stream:
        found = await self._slice(opened, caller, conversation, wanted)
        moved = moves(found.head, caller, self._clock.now())
        if moved:
            with self._place(opened, caller, found, wanted):
                await self._apply(Read(caller, conversation), opened)
                found = await self._slice(opened, caller, conversation, wanted)
        if wanted.stream and self._streaming.offers(found):
            read = partial(self._slice, opened, caller, conversation, max_bytes=STREAMED_BYTES)
            return self._streaming.open(dialect, opened, conversation, wanted, read, gone, self._need(dialect, found))
        if wanted.wait and should_hold(found):
            found = await self._wait(opened, caller, conversation, wanted, gone, moved=moved)
        return self._written(dialect, 200, found, wanted, opened.verified)

    def _place(
        self, opened: OpenedSession, caller: Caller, found: Slice, wanted: Wanted
    ) -> AbstractContextManager[None]:
        """The place of a read that will be held: one that is refused for want of it changes nothing (readings 2)."""
        streams = wanted.stream and self._streaming.offers(found)
        if not streams and not (self._seconds(wanted, opened.verified.access) and should_hold(found)):
            return nullcontext()
        return self._holding.reserved((caller.client_id, caller.user_id))

    def _written(
        self, dialect: Dialect, status_code: int, found: Slice, wanted: Wanted, session: VerifiedSession
    ) -> Response:
        """The page. One that tells of a need that still stands has the matching challenge as well (8.11)."""
        response = dialect.conversations.write_page(status_code, page(found, wanted), session.extensions)
        fields = self._need(dialect, found)
        return Response(response.status, response.headers.with_(*fields), response.body) if fields else response

    def _need(self, dialect: Dialect, found: Slice) -> list[tuple[str, str]]:
        """The challenge of a need that still stands and that these events tell of; mostly none."""
        scope = need(found)
        if not scope:
            return []
        error = InsufficientScope(scope, "the User's account is needed")
        challenge = dialect.errors.write(error, Place.ENDPOINT, self._sessions.challenged(self._endpoint))
        return [("WWW-Authenticate", value) for value in challenge.headers.all("WWW-Authenticate")]

    async def _slice(
        self,
        opened: OpenedSession,
        caller: Caller,
        conversation: ConversationId,
        wanted: Wanted,
        *,
        max_bytes: int | None = None,
    ) -> Slice:
        """One page, with Session, owner and cursor checked against the same snapshot (readings 3)."""
        session = (caller.client_id, opened.row.sid)
        after = 0 if wanted.cursor is None else self._hinted(conversation, wanted)
        limits = self._limits
        most = limits.page_bytes if max_bytes is None else max_bytes
        found = await self._log.read(conversation, after, limits.page, max_bytes=most, session=session)
        if found is not None and found.session is not None:
            self._sessions.check_row(opened, found.session)
        check_owner(None if found is None else found.head, caller)
        if found is None:
            raise ConversationNotFound(detail="there is none")
        read_cursor(self._events, found.head, wanted.cursor)
        return found

    def _hinted(self, conversation: ConversationId, wanted: Wanted) -> int:
        """The cursor's place in the log, before it is known whose the conversation is; checked by `_slice` after."""
        assert wanted.cursor is not None
        try:
            return self._events.read(conversation, wanted.cursor)
        except InvalidCursor:
            return 0

    async def _wait(
        self,
        opened: OpenedSession,
        caller: Caller,
        conversation: ConversationId,
        wanted: Wanted,
        gone: Callable[[], Awaitable[None]],
        command: Start | Say | None = None,
        *,
        moved: bool = False,
    ) -> Slice:
        """Hold until there is something to return, the wait is over, the caller left, or the Company stops.

        What is returned was read after that: a Session that ended meanwhile is told so, and a token that is none any
        more (readings 3). No request is held beyond its token's end. `command`: what was posted; None for a read,
        which may have `moved` the conversation.
        """
        own, posted = None if command is None else _own(command), command is not None
        access = opened.verified.access
        seconds = self._seconds(wanted, access)
        until = self._clock.monotonic() + seconds
        with self._log.watch(conversation) as watch:
            found = await self._slice(opened, caller, conversation, wanted)
            if not (seconds and should_hold(found, own, posted=posted) and self._may_hold(caller, posted or moved)):
                return found
            with Hold(self._holding, (caller.client_id, caller.user_id), watch, gone) as hold:
                while (
                    not hold.over
                    and should_hold(found, own, posted=posted)
                    and (left := until - self._clock.monotonic()) > 0
                ):
                    woken = await watch.wait(left)
                    found = await self._slice(opened, caller, conversation, wanted)
                    if not woken:
                        break
        if access is not None:
            await self._sessions.recheck(opened)
        return found

    def _seconds(self, wanted: Wanted, access: AccountAccess | None) -> float:
        """How long to hold at most."""
        seconds = min(wanted.wait or 0, self._limits.wait_cap)
        if access is None or access.expires_at is None:
            return seconds
        return min(seconds, max(0.0, access.expires_at - self._clock.now()))

    def _may_hold(self, caller: Caller, accepted: bool) -> bool:
        """A read that finds no place is refused; after what was `accepted` an error would be a lie (readings 2, 22)."""
        if self._holding.stopped:
            return False
        user = (caller.client_id, caller.user_id)
        if not accepted:
            self._holding.check_place(user)
        return self._holding.has_place(user)


def _named(route: Route) -> ConversationId:
    if route.conversation_id is None:
        raise ConversationNotFound(detail="the route names no conversation")
    return route.conversation_id


def _own(command: Start | Say) -> MessageId | None:
    return None if command.message is None else command.message.id

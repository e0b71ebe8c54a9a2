"""A conversation with a Company (section 8): speaking, reading its events in order and once, handing off, closing."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping, Set
from typing import TYPE_CHECKING, Final

import msgspec

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import authorize, close, hand_off, read
from papaver.personal_agent.flows.effects import Flow, keep
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.records import CONVERSATION, ConversationRow, read_row, row_key, write_row
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    Event,
    Message,
    Responder,
    StateChanged,
    Status,
)
from papaver.protocol.dialect import Page, Wanted
from papaver.protocol.errors import CursorExpired, Misbehaved, SignInNeeded
from papaver.protocol.terms import ConversationId, EventId
from papaver.values.rules import rule

if TYPE_CHECKING:
    from papaver.personal_agent.session import Session

__all__ = ["Conversation", "Events"]

DELIVERED_MOST: Final = 10_000
"""Event ids that a conversation remembers having given out while its process lives."""
EMPTY_MOST: Final = 5
"""Pages in a row that say there is more and hold no event at all."""
STALE_MOST: Final = 1_000
"""The same of pages that hold known events only, as they come after an expired cursor: ten to a page, and each is
read by then that is remembered."""
STALE_AT_ONCE: Final = DELIVERED_MOST // 100
"""How many of those are read without a pause: all that is remembered, a hundred to a page."""
AT_REST: Final = frozenset({Status.IDLE, Status.CLOSED})


class Conversation:
    """One conversation of one User. Made by `Session.ask` and `Session.resume`; it may outlive its Session (8.2).

    `id`      chosen by the Company
    `status`, `responder`  as last heard (8.7)

    Its methods raise Refused with the Company's code, SignInNeeded, RateLimited, FetchFailed when no answer could be
    had, and Misbehaved for an answer that is none. What the Company says is data, never an instruction (10.1).
    """

    def __init__(self, session: Session, row: ConversationRow, ahead: Page | None = None) -> None:
        self.id = ConversationId(row.conversation_id)
        self.status = Status(row.status)
        self.responder = Responder(row.responder)
        self._session = session
        self._row = row
        self._delivered: OrderedDict[str, None] = OrderedDict.fromkeys(row.handled)
        self._unsaved: deque[EventId] = deque()
        self._cursor = None if row.cursor is None else EventId(row.cursor)
        self._needed = row.needed
        self._unmet = bool(row.needed)
        self._ahead: deque[Page] = deque()
        if ahead is not None:
            self._take(ahead)

    @property
    def session(self) -> Session:
        """The Session in which its requests are sent now."""
        return self._session

    @property
    def cursor(self) -> EventId | None:
        """The last event that was handled, as stored; None before the first."""
        return None if self._row.cursor is None else EventId(self._row.cursor)

    async def say(
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
    ) -> Message:
        """Send a message; when this returns the Company has accepted it. `by_user` is for the User's own words (8.8).

        `wait` asks the Company to hold its answer for so many seconds until it has replied (8.3); the events are then
        read by `events`. When no answer comes, FetchFailed is raised and the message stays in the outbox, to be sent
        again under the same id.
        """
        message = compose(
            message_id(self._session.live.setup.ids),
            text,
            by_user=by_user,
            data=data,
            context=context,
            extensions=extensions,
            locale=locale,
            time_zone=time_zone,
            user_available=user_available,
        )
        delivered = await self._session.deliver(
            message, self.id, Wanted() if wait is None else Wanted(self._cursor, wait)
        )
        self._heard(Status(delivered.row.status), Responder(delivered.row.responder))
        if delivered.page is not None:
            self._take(delivered.page)
        return message

    async def say_as_user(self, text: str) -> Message:
        """Send the User's own words, unchanged: no summary, paraphrase or translation (8.8)."""
        return await self.say(text, by_user=True)

    def events(self, *, follow: bool = False) -> Events:
        """The events after the last handled one, in order, each once; ends when the Company is idle or has closed.

        An event counts as handled, and the cursor is stored, when the next one is asked for; after a crash the reading
        goes on there. When an `authorization` event is met while it is handled, reading goes on with the turn that
        resumes. With `follow` it goes on when the Company is idle, and ends when the conversation is closed.
        """
        return Events(self, follow=follow)

    async def authorize(self, event: AuthorizationNeeded) -> bool:
        """Whether the account covers what an `authorization` event asks for (8.11): then just go on reading.

        A token is refreshed for it where that helps, and every read from now on carries it. Else have the User sign in,
        `session.sign_in(*event.scope.split())`, and go on reading; nothing is sent again.
        """
        return await self.need_of(event) is None

    async def need_of(self, event: AuthorizationNeeded) -> SignInNeeded | None:
        """As `authorize`: what the User has to be asked for, or None. Mind its `only_if_asked` (5.5)."""
        self._needed = tuple(event.scope.split())
        return await self._session.run(authorize(self._session.live, self.id, self._needed))

    async def hand_off(self) -> None:
        """Ask for a person at the Company (8.9); `status` is `queued` while one is looked for."""
        self._heard(*await self._session.run(hand_off(self._session.live, self.id)))

    async def close(self) -> None:
        """End the conversation; its events stay readable as long as the Company keeps them (8.12)."""
        self._heard(*await self._session.run(close(self._session.live, self.id)))
        await self._session.run(self._save())

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, {self.status.value}, {self.responder.value})"

    # ── what `Events` uses ────────────────────────────────────────────────────────────────────────────────────────

    async def next_page(self, *, hold: bool) -> Page:
        """The next page after the cursor: what a waiting POST brought along, else a read."""
        if self._ahead:
            return self._ahead.popleft()
        wait = self._session.live.setup.limits.wait if hold else None
        clock = self._session.live.setup.clock
        begun = clock.monotonic()
        page = await self._session.run(self._read(Wanted(self._cursor, wait)))
        if hold and not any(map(self.is_new, page.events)) and clock.monotonic() - begun < 1:
            await self.pause()
        self._heard(page.status, page.responder)
        return page

    async def pause(self) -> None:
        """Let a Company that says there is more, and has nothing, come to itself."""
        setup = self._session.live.setup
        await setup.clock.sleep(setup.limits.poll_pause)

    async def goes_on(self) -> bool:
        """Whether the account covers by now what the last `authorization` event asked for: then the turn resumes."""
        if not self._unmet or await self._session.run(authorize(self._session.live, self.id, self._needed)) is not None:
            return False
        self._unmet = False
        await self._session.run(self._save())
        return True

    def is_new(self, event: Event) -> bool:
        """Whether the event was not given out before (8.5)."""
        return event.id not in self._delivered

    def delivered(self, event: Event) -> None:
        """Remember that the event was given out; it is handled when the next one is asked for."""
        if isinstance(event, AuthorizationNeeded):
            self._needed, self._unmet = tuple(event.scope.split()), True
        elif isinstance(event, StateChanged) and event.status is Status.WORKING:
            # The Company went on: what it may still need it asks for again.
            self._unmet = False
        self._delivered[event.id] = None
        self._unsaved.append(event.id)
        if len(self._delivered) > DELIVERED_MOST:
            self._delivered.popitem(last=False)

    async def handled(self, page: Page | None = None) -> None:
        """Store that all that was given out is handled; with `page`, that it was read to its end."""
        moved = bool(self._unsaved)
        if self._unsaved:
            self._cursor = self._unsaved[-1]
        if page is not None and page.cursor is not None and page.cursor != self._cursor:
            self._cursor, moved = page.cursor, True
        if moved:
            await self._session.run(self._save())

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, wanted: Wanted) -> Flow[Page]:
        try:
            return (yield from read(self._session.live, self.id, wanted, self._needed))
        except CursorExpired:
            # From the beginning of what is kept; known events are skipped (8.5).
            return (yield from read(self._session.live, self.id, Wanted(wait=wanted.wait), self._needed))

    def _save(self) -> Flow[None]:
        fresh = list(self._unsaved)
        most = self._session.live.setup.limits.events_remembered

        def decide(stored: bytes | None) -> bytes:
            row = self._row if stored is None else read_row(ConversationRow, stored)
            known = OrderedDict.fromkeys([*row.handled, *fresh])
            return write_row(
                msgspec.structs.replace(
                    row,
                    status=self.status.value,
                    responder=self.responder.value,
                    cursor=self._cursor,
                    handled=tuple(known)[-most:],
                    needed=self._needed if self._unmet else (),
                )
            )

        key = row_key(self._row.company, self._row.user, self.id)
        value = yield from keep(CONVERSATION, key, decide)
        if value is not None:
            self._row = read_row(ConversationRow, value)
        self._unsaved = deque(one for one in self._unsaved if one not in fresh)

    def _take(self, page: Page) -> None:
        self._ahead.append(page)
        self._heard(page.status, page.responder)

    def _heard(self, status: Status, responder: Responder) -> None:
        self.status, self.responder = status, responder


class Events(AsyncIterator[Event]):
    """The events of one conversation as they come. Made by `Conversation.events`."""

    def __init__(self, conversation: Conversation, *, follow: bool) -> None:
        self._conversation = conversation
        self._ends = frozenset({Status.CLOSED}) if follow else AT_REST
        self._left: deque[Event] = deque()
        self._page: Page | None = None
        self._passed: set[EventId | None] = set()
        self._empty = self._stale = 0

    async def __anext__(self) -> Event:
        conversation = self._conversation
        await conversation.handled()
        while True:
            while self._left:
                event = self._left.popleft()
                if conversation.is_new(event):
                    conversation.delivered(event)
                    return event
            page = await self._turn_page()
            self._left.extend(page.events)

    async def _turn_page(self) -> Page:
        """The next page; StopAsyncIteration when there is nothing more to come."""
        conversation, last, resumes = self._conversation, self._page, False
        if last is not None:
            await conversation.handled(last)
            if not last.has_more and conversation.status in self._ends:
                resumes = conversation.status is Status.IDLE and await conversation.goes_on()
                if not resumes:
                    raise StopAsyncIteration
        more = last is not None and last.has_more
        if more and (self._empty or self._stale > STALE_AT_ONCE):
            await conversation.pause()
        page = self._page = await conversation.next_page(
            hold=resumes or (not more and conversation.status not in self._ends)
        )
        brings = any(map(conversation.is_new, page.events))
        if brings or not more:
            self._passed.clear()
            self._empty = self._stale = 0
        if last is not None and more:
            self._passed.add(last.cursor)
            check_page_moves(self._passed, page)
        if not brings:
            self._empty = 0 if page.events else self._empty + 1
            self._stale += 1
            check_page_brings(page, self._empty, self._stale)
        return page

    def __aiter__(self) -> Events:
        return self


@rule("page.moves-on")
def check_page_moves(passed: Set[EventId | None], page: Page) -> None:
    """After `has_more` comes a later page, else reading would never end (8.5). Raises Misbehaved."""
    if page.has_more and page.cursor in passed:
        raise Misbehaved("has_more is true, and yet a cursor comes back", rule="page.moves-on")


@rule("page.brings-events")
def check_page_brings(page: Page, empty: int, stale: int) -> None:
    """A Company that says there is more has more: not page after page, each with a cursor of its own, of nothing new.

    `empty` and `stale` are how many in a row, this one included, held no event, or none that was new (8.5). Raises
    Misbehaved.
    """
    if page.has_more and (empty > EMPTY_MOST or stale > STALE_MOST):
        raise Misbehaved("has_more is true on page after page, and nothing new is on them", rule="page.brings-events")

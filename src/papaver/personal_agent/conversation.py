"""A conversation with a Company (section 8): speaking, reading its events in order and once, handing off, closing."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from papaver.personal_agent.content import compose
from papaver.personal_agent.direct import AskUser, accept, open_direct
from papaver.personal_agent.events import DELIVERED_MOST, Events, LiveEvents
from papaver.personal_agent.flows.converse import authorize, close, hand_off, listen, read
from papaver.personal_agent.flows.effects import Flow, StreamedResponse, keep
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.outbox import Target
from papaver.personal_agent.records import CONVERSATION, ConversationRow, read_row, row_key, write_row
from papaver.personal_agent.streams import EventStream, Pieces
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    Event,
    Message,
    Responder,
    StateChanged,
    Status,
    TextDelta,
    UserRequested,
)
from papaver.protocol.dialect import Page, Wanted
from papaver.protocol.errors import CursorExpired, Misbehaved, SignInNeeded
from papaver.protocol.terms import ConversationId, EventId

if TYPE_CHECKING:
    from papaver.personal_agent.session import Session

__all__ = ["Conversation"]

FRUITLESS_MOST: Final = 3
"""Streams in a row that end without a new event; after that the events are read in pages."""


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
        self._streams = session.streams
        self._stream: EventStream | None = None
        self._ended: EventStream | None = None
        self._fruitless = 0
        self._pieces, self._shown = Pieces(), deque[TextDelta]()
        self._gap = self._behind = False
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
        await self.send(message, wait=wait)
        return message

    async def send(self, message: Message, *, wait: int | None = None) -> None:
        """Send a message that is composed already; again under the same id it is taken once (8.3). Raises as `say`."""
        delivered = await self._session.deliver(
            message, Target(self.id), Wanted() if wait is None else Wanted(self._cursor, wait)
        )
        self._heard(Status(delivered.row.status), Responder(delivered.row.responder))
        if delivered.page is not None:
            self._take(delivered.page)

    async def say_as_user(self, text: str) -> Message:
        """Send the User's own words, unchanged: no summary, paraphrase or translation (8.8)."""
        return await self.say(text, by_user=True)

    async def update_context(self, **facts: object) -> Message:
        """Say only how the User's situation has changed: `locale`, `time_zone`, `user_available`, others (8.4).

        None takes a fact back. The Company needs not answer it.
        """
        return await self.say(context=facts)

    def live(self, *, follow: bool = False) -> LiveEvents:
        """As `events`, with each piece of a message that the Company Agent is writing, as a TextDelta (8.6).

        Show `so_far` until the MessageAdded of that `message_id` comes; with an empty one it is taken back.
        """
        return LiveEvents(self, follow=follow)

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

    async def open_direct(self, words: str, *, wait: int | None = None) -> Conversation:
        """The User wants to talk with the Company themselves: a Direct Conversation under this one (8.10).

        `words` are the User's own, unchanged. What is said in it, `say_as_user`, and what the Company answers is for
        the User. Raises DirectConversationOpen, which names the one that is open already, and as `say`.
        """
        return await open_direct(self._session, self.id, words, wait)

    async def answer_request(
        self, event: UserRequested, ask_user: AskUser, *, wait: int | None = None
    ) -> Conversation | None:
        """The Company asks for the User: `ask_user` asks them, and their answer decides (8.10).

        Agreed: the Direct Conversation, in which their words are once, whatever was lost on the way. Declined: None,
        and the Company is told here. Raises as `say`.
        """
        return await accept(self, event, ask_user, wait)

    @property
    def parent(self) -> ConversationId | None:
        """The earlier conversation, when this is a Direct Conversation (8.10)."""
        return None if self._row.parent is None else ConversationId(self._row.parent)

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
        """The next page after the cursor: what a waiting POST brought along, what a stream brings, else a read."""
        if self._ahead:
            return self._ahead.popleft()
        wait = self._session.live.setup.limits.wait if hold else None
        clock = self._session.live.setup.clock
        begun = clock.monotonic()
        page = await self._streamed() if hold and self._streams else None
        if page is not None and self._streams:
            self._behind = True
            return page
        if page is None:
            page = await self._session.run(self._read(Wanted(self._cursor, wait)))
        if hold and not any(map(self.is_new, page.events)) and clock.monotonic() - begun < 1:
            await self.pause()
        self._heard(page.status, page.responder)
        return page

    def is_behind(self) -> bool:
        """Once after a stream: whether more may be there already than it has brought, such as a last word after `idle`.

        The next page says so.
        """
        behind, self._behind = self._behind and self.status is not Status.CLOSED, False
        return behind

    def take_pieces(self) -> tuple[TextDelta, ...]:
        """Pieces of messages that came with the last page, and those that are taken back."""
        taken = tuple(self._shown)
        self._shown.clear()
        return taken

    async def stop_listening(self) -> None:
        """Close the stream, if one is open; the next held read opens another."""
        stream, self._stream = self._stream, None
        self._shown.extend(self._pieces.drop())
        if stream is not None:
            self._session.listening.discard(stream)
            await stream.aclose()

    @property
    def history_gap(self) -> bool:
        """Whether the Company had dropped events that were not read yet, since the conversation was made here (8.5)."""
        return self._gap

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

    async def _streamed(self) -> Page | None:
        """What a stream brings next, as a page of one event or none; None where pages have to do (8.6).

        A stream may end at any time: the next one goes on after the last handled event, and nothing is sent again.
        """
        while True:
            stream = self._stream
            if stream is None:
                if self._ended is not None:
                    await self._before_next(self._ended)
                opened = await self._session.run(self._listen())
                if isinstance(opened, Page):
                    self._streams = False  # it answers in pages
                    return opened
                codec = self._session.live.setup.dialects[self._session.live.found.version].conversations
                stream = self._stream = EventStream(opened, codec)
                self._session.listening.add(stream)
            found = await self._next_of(stream)
            if isinstance(found, TextDelta):
                piece = self._pieces.add(found)
                if piece is not None:
                    self._shown.append(piece)
                    return self._page()
            elif found is not None:
                self._pieces.complete(found)
                stream.fruitful = stream.fruitful or self.is_new(found)
                if isinstance(found, StateChanged):
                    self._heard(found.status, found.responder)
                return self._page(found)
            else:
                await self.stop_listening()
                self._ended = stream
                self._fruitless = 0 if stream.fruitful else self._fruitless + 1
                if self._fruitless >= FRUITLESS_MOST:
                    self._streams = False
                if self._shown or self.status is Status.CLOSED:
                    return self._page()
                if not self._streams:
                    return None

    async def _next_of(self, stream: EventStream) -> Event | TextDelta | None:
        """A stream of which something cannot be read is not read on. Raises Misbehaved."""
        try:
            return await stream.next()
        except Misbehaved:
            await self.stop_listening()
            raise

    async def _before_next(self, stream: EventStream) -> None:
        """As long as the Company asks for, within our own bounds: it has no word in how often we ask at least."""
        setup = self._session.live.setup
        limits = setup.limits
        await setup.clock.sleep(max(limits.poll_pause, min(stream.retry or 0, limits.backoff_most)))

    def _page(self, *events: Event) -> Page:
        cursor = events[-1].id if events else self._cursor
        return Page(self.id, events, cursor, has_more=False, status=self.status, responder=self.responder)

    def _listen(self) -> Flow[Page | StreamedResponse]:
        """After a stream that was open before, the place is said in Last-Event-ID (8.6)."""
        live, wait = self._session.live, self._session.live.setup.limits.wait
        last = None if self._ended is None else self._cursor
        wanted = Wanted(self._cursor if last is None else None, wait, stream=True, last_event_id=last)
        try:
            return (yield from listen(live, self.id, wanted, self._needed))
        except CursorExpired:
            self._gap = True
            return (yield from listen(live, self.id, Wanted(wait=wait, stream=True), self._needed))

    def _read(self, wanted: Wanted) -> Flow[Page]:
        try:
            return (yield from read(self._session.live, self.id, wanted, self._needed))
        except CursorExpired:
            # From the beginning of what is kept; known events are skipped (8.5).
            self._gap = True
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

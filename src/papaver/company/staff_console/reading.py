"""What the console shows of a conversation now: read from the log and made into a view."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from papaver.company.holding import Hold, Holding
from papaver.company.offer import Offer
from papaver.company.queueing import listed
from papaver.company.staff_console.shown import Shown, facts_of, name_of, panel_of
from papaver.company.staff_console.visits import Visitor
from papaver.ports.company import ConversationLog
from papaver.ports.staff_pages import ConversationView, QueueView
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation.change import Slice
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import ConversationNotFound
from papaver.protocol.terms import ConversationId

__all__ = ["LONGEST", "Reading"]

PAGE: Final = 100
"""Events on one page."""
PARENT_PAGE: Final = 30
"""Events of the conversation before a Direct Conversation, beside it."""
LONGEST: Final = 20.0
"""Seconds that a question for news is held."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts that reading needs. `root` is the console's public path."""

    offer: Offer
    root: str
    log: ConversationLog
    holding: Holding
    clock: Clock
    ids: Ids

    async def queue(self, visitor: Visitor, notice: str | None = None) -> QueueView:
        shown, now = self._shown(visitor), self._now()
        found = await listed(self.log)
        rows = [shown.row(head, now) for head in found.heads]
        return QueueView(
            company=self.offer.name,
            root=self.root,
            person=name_of(visitor.person),
            waiting=tuple([row for row in rows if row.holder is None]),
            taken=tuple([row for row in rows if row.holder is not None]),
            notice=notice,
            more=found.more,
        )

    async def page(self, visitor: Visitor, conversation: ConversationId, before: int | None = None) -> ConversationView:
        """Its newest events, or those before number `before`. Raises ConversationNotFound."""
        head = (await self._read(conversation, 0, 0)).head
        end = head.last_seq + 1 if before is None else min(before, head.last_seq + 1)
        events = await self.log.read_back(conversation, end, PAGE)
        view, shown = self._view(visitor, head), self._shown(visitor)
        first = end - len(events)
        parent = None if head.parent is None else await self.log.read(head.parent, 0, 0)
        if parent is not None:
            last = await self.log.read_back(parent.head.id, parent.head.last_seq + 1, PARENT_PAGE)
            view = replace(view, parent=shown.link(parent.head.id), parent_events=shown.events(last))
        return replace(
            view,
            events=shown.events(events),
            earlier=f"{view.link}?before={first}" if first > head.first_seq and events else None,
            older=before is not None,
        )

    async def news(
        self, visitor: Visitor, conversation: ConversationId, after: int, *, wait: bool
    ) -> ConversationView | None:
        """What came after event number `after`, as soon as it is there; None when nothing came for a while.

        Raises ConversationNotFound, RateLimited.
        """
        with self.log.watch(conversation) as watch:
            found = await self._read(conversation, after, PAGE)
            if wait and not found.events and found.head.status is not Status.CLOSED:
                windows = ("staff", visitor.person.id or "")
                self.holding.check_place(windows)
                with Hold(self.holding, windows, watch, visitor.incoming.gone) as hold:
                    # A wake-up is a hint: of another process's change it may come late, when that was read already.
                    while not (found.events or hold.over) and await watch.wait(LONGEST):
                        found = await self._read(conversation, after, PAGE)
        if wait and not found.events:
            return None
        view = self._view(visitor, found.head)
        seq = max(after, found.head.first_seq - 1) + len(found.events)
        return replace(view, events=self._shown(visitor).events(found.events), seq=min(seq, found.head.last_seq))

    async def _read(self, conversation: ConversationId, after: int, limit: int) -> Slice:
        found = await self.log.read(conversation, after, limit)
        if found is None:
            raise ConversationNotFound(detail="there is none")
        return found

    def _view(self, visitor: Visitor, head: Head) -> ConversationView:
        """All of it but the events."""
        shown = self._shown(visitor)
        return ConversationView(
            company=self.offer.name,
            root=self.root,
            person=name_of(visitor.person),
            link=shown.link(head.id),
            conversation=head.id,
            agent=shown.agent(head),
            client_id=head.client_id,
            account=head.account_id,
            csrf=visitor.csrf,
            key=self.ids.token(),
            panel=panel_of(head, visitor.person),
            standing=shown.standing(head),
            waited=shown.waited(head, self._now()),
            events=(),
            seq=head.last_seq,
            facts=facts_of(head.context),
            scopes=shown.scopes([scope.name for scope in self.offer.scopes]),
            asks_user=head.parent is None and head.open_direct is None,
            parent=None if head.parent is None else shown.link(head.parent),
            direct=None if head.open_direct is None else shown.link(head.open_direct),
        )

    def _shown(self, visitor: Visitor) -> Shown:
        return Shown(self.offer, self.root, visitor.person)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)

"""Where a handoff goes: the Company's own hook, the queue of people, or nobody (8.9)."""

from __future__ import annotations

import asyncio
import logging

from papaver.company.hooks import QUEUED, Handoff, HandoffAnswer, Hooks, Nobody
from papaver.company.outbox import said_between
from papaver.company.people import AGENT
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Wording
from papaver.company.turn import check_author
from papaver.ports.company import ConversationLog, LeasedTurn
from papaver.ports.system import Ids
from papaver.protocol.conversation.model import Author, Message, Role
from papaver.protocol.conversation.operations import Joined, Queued, TurnCommand, Unavailable
from papaver.protocol.conversation.people_decide import check_person
from papaver.protocol.terms import MessageId

__all__ = ["Desk"]

log = logging.getLogger("papaver.company.hooks")


class Desk:
    """`Turns` asks it, under the turn's lease, what becomes of a handoff that is pending."""

    def __init__(
        self,
        store_log: ConversationLog,
        hooks: Hooks,
        ids: Ids,
        limits: CompanyLimits,
        wording: Wording,
        *,
        staffed: bool,
    ) -> None:
        self._log, self._hooks, self._ids, self._limits, self._wording = store_log, hooks, ids, limits, wording
        self._staffed = staffed

    async def __call__(self, leased: LeasedTurn) -> TurnCommand:
        answer = await self._answer(leased)
        if isinstance(answer, Nobody):
            text = answer.reason or self._wording.of(leased.head.context).nobody
            message = Message(MessageId("msg_" + self._ids.token()), AGENT, Role.COMPANY, text=text)
            return Unavailable(leased.lease, message)
        return Joined(leased.lease, answer) if isinstance(answer, Author) else Queued(leased.lease)

    async def _answer(self, leased: LeasedTurn) -> HandoffAnswer:
        """What the hook says. One that fails, or takes as long as a lease lasts, has found nobody."""
        if self._hooks.on_handoff is None:
            return QUEUED if self._staffed else Nobody()
        head = leased.head
        waiting = await said_between(self._log, head.id, head.answered_seq + 1, head.last_seq)
        asked = Handoff(head.id, head.client_id, head.user_id, head.account_id, head.parent, waiting)
        try:
            async with asyncio.timeout(self._limits.lease_renewed):
                answer = await self._hooks.on_handoff(asked)
            if isinstance(answer, Author):
                check_author(answer)
                check_person(answer)
            elif not isinstance(answer, Nobody) and answer != QUEUED:
                raise TypeError(f"the hook returned {answer!r:.80}; expected 'queued', a Person, or Nobody(reason)")
            return answer
        except Exception as error:
            log.error("the hook for handoffs failed; nobody is available", exc_info=error)
            return Nobody()

"""Small changes of a conversation, written by hand: the contract does not depend on what `decide` makes of one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from papaver.ports.company import CompanyStore, CompanyTables, ConversationLog, LeasedTurn, Share
from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey, SessionRow
from papaver.protocol.conversation.model import (
    Author,
    AuthorType,
    Event,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
)
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.terms import (
    AgentId,
    ClientId,
    CompanyId,
    ConversationId,
    EventId,
    MessageId,
    SessionId,
    TurnId,
    UserId,
)
from papaver.values.errors import PapaverError

__all__ = [
    "CLIENT",
    "COMPANY",
    "NOW",
    "OTHER_COMPANY",
    "SID",
    "USER",
    "StoreMaker",
    "answer",
    "at",
    "begin",
    "code_of",
    "lease",
    "message",
    "opened",
    "receipt_key",
    "reply",
    "say",
    "session",
    "speak",
    "tables",
    "texts",
]

StoreMaker = Callable[[], CompanyStore]
"""Makes a store, not yet opened, over always the same data."""

COMPANY: Final = CompanyId("https://shop.example")
OTHER_COMPANY: Final = CompanyId("https://bank.example")
CLIENT: Final = ClientId("https://agent.example/agent.json")
USER: Final = UserId("usr_dana")
SID: Final = SessionId("sid_1")
NOW: Final = 1_795_000_000.0
"""Seconds since the epoch; every sample is near it."""


@asynccontextmanager
async def opened(make: StoreMaker) -> AsyncGenerator[CompanyStore]:
    store = make()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def tables(make: StoreMaker, company: CompanyId = COMPANY) -> AsyncGenerator[CompanyTables]:
    async with opened(make) as store:
        yield await store.tables(company)


def at(seconds: float = 0) -> datetime:
    """So many seconds after NOW."""
    return datetime.fromtimestamp(NOW, UTC) + timedelta(seconds=seconds)


def session(*, key: str = "ses_1", sid: SessionId = SID, seen: float = 0, agent: str | None = None) -> SessionRow:
    return SessionRow(key, CLIENT, sid, USER, None if agent is None else AgentId(agent), NOW + seen)


def receipt_key(message: str) -> tuple[ClientId, UserId, MessageId]:
    return CLIENT, USER, MessageId(message)


def message(head: Head, text: str, role: Role, when: datetime) -> Event:
    """The next event of this conversation."""
    seq = head.last_seq + 1
    author = Author(AuthorType.AGENT, name="Outfitter" if role is Role.COMPANY else None)
    own = Message(MessageId(f"msg_{head.id}_{seq}"), author, role, text)
    return MessageAdded(EventId(f"evt_{head.id}_{seq}"), when, own)


def say(
    conversation: str,
    text: str = "hello",
    *,
    when: float = 0,
    receipt: bool = False,
    whose: tuple[ClientId, UserId] = (CLIENT, USER),
) -> Callable[[Loaded], Change[int]]:
    """A message of the User's side, to a new conversation or a stored one; the result is its sequence number."""

    def decide(loaded: Loaded) -> Change[int]:
        own = ConversationId(conversation)
        head = loaded.head or Head(own, *whose, at(when), at(when))
        event = message(head, text, Role.USER, at(when))
        seq = head.last_seq + 1
        head = replace(head, changed_at=at(when), last_seq=seq, asked_seq=seq, status=Status.WORKING)
        kept = Receipt("ab" * 32, own, 202, Status.WORKING, Responder.AGENT) if receipt else None
        return Change(seq, (head,), ((own, seq, event),), kept)

    return decide


async def speak(log: ConversationLog, conversation: str, text: str = "hello", *, when: float = 0) -> int:
    return await log.apply(Keys(ConversationId(conversation)), say(conversation, text, when=when))


async def begin(log: ConversationLog, conversation: str, message: str, *, jti: str | None = None) -> int:
    """The first message of a conversation, with its receipt."""
    replay = None if jti is None else ReplayKey(CLIENT, jti, NOW + 60)
    keys = Keys(receipt=receipt_key(message), replay=replay)
    return await log.apply(keys, say(conversation, receipt=True))


def reply(turn: LeasedTurn, text: str = "hi", *, when: float = 1) -> Callable[[Loaded], Change[int]]:
    """The end of a turn: a message and, when nothing is left to answer, the state; the result is `last_seq`."""

    def decide(loaded: Loaded) -> Change[int]:
        assert loaded.head is not None
        head = replace(loaded.head, changed_at=at(when), answered_seq=turn.until_seq, failures=0)
        events = [(head.id, head.last_seq + 1, message(head, text, Role.COMPANY, at(when)))]
        if head.asked_seq <= turn.until_seq:
            seq = head.last_seq + 2
            state = StateChanged(EventId(f"evt_{head.id}_{seq}"), at(when), Status.IDLE, Responder.AGENT)
            events.append((head.id, seq, state))
            head = replace(head, status=Status.IDLE)
        head = replace(head, last_seq=head.last_seq + len(events))
        return Change(head.last_seq, (head,), tuple(events), ended=True)

    return decide


async def answer(log: ConversationLog, turn: LeasedTurn, text: str = "hi", *, when: float = 1) -> int:
    keys = Keys(turn.lease.conversation_id, lease=turn.lease)
    return await log.apply(keys, reply(turn, text, when=when))


async def lease(
    log: ConversationLog,
    turn_id: str = "trn_1",
    *,
    holder: str = "runner",
    when: float = 0,
    lasts: float = 30,
    share: Share | None = None,
) -> LeasedTurn | None:
    """A lease from `when` seconds after NOW."""
    return await log.lease(holder, TurnId(turn_id), now=NOW + when, until=NOW + when + lasts, share=share)


async def code_of(action: Awaitable[object]) -> str:
    """The code of the error that it ends in; empty when it ends well."""
    try:
        await action
    except PapaverError as error:
        return error.code
    return ""


def texts(events: Sequence[Event]) -> list[str | None]:
    return [event.message.text if isinstance(event, MessageAdded) else type(event).__name__ for event in events]

"""A conversation store in a few lines, for the tests of the pure core: it loads, decides and writes as one must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import overload

from papaver.protocol.conversation.change import Keys, Loaded, Note, SessionRow
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    Context,
    Event,
    Message,
    MessageAdded,
    Role,
    StateChanged,
)
from papaver.protocol.conversation.operations import (
    Answered,
    Caller,
    Command,
    CompanyCommand,
    RequestCommand,
    Say,
    Settled,
    Start,
    keys,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Access, Head, Lease, Receipt
from papaver.protocol.terms import AccountId, ClientId, ConversationId, EventId, MessageId, TurnId, UserId

__all__ = ["DANA", "NOW", "World", "lease", "said", "signed_in"]

NOW = datetime(2026, 10, 8, 19, 3, tzinfo=UTC)
DANA = Caller(ClientId("https://agent.example/agent.json"), UserId("dana"))


def signed_in(account: str, *scopes: str, until: float | None = None, caller: Caller = DANA) -> Caller:
    """A caller whose token allows these scopes until then, Unix seconds."""
    return Caller(caller.client_id, caller.user_id, AccountId(account), access=Access(scopes, until))


def said(
    message_id: str,
    text: str | None = "Where is my order?",
    *,
    role: Role = Role.USER,
    data: Mapping[str, object] | None = None,
    context: Context | None = None,
    extensions: Mapping[str, object] | None = None,
    extra: Mapping[str, object] | None = None,
) -> Message:
    """A message by an agent."""
    author = Author(AuthorType.AGENT)
    return Message(MessageId(message_id), author, role, text, data, context, extensions, extra or {})


def lease(conversation: ConversationId, token: int = 1) -> Lease:
    return Lease(conversation, TurnId("turn_1"), token, "runner", 0.0)


@dataclass
class World:
    """Heads, events, receipts. `now` moves on by a second with each change."""

    now: datetime = NOW
    ids: EventIds = field(default_factory=lambda: EventIds(b"a secret of the Company"))
    heads: dict[ConversationId, Head] = field(default_factory=dict[ConversationId, Head])
    log: dict[ConversationId, list[Event]] = field(default_factory=dict[ConversationId, list[Event]])
    receipts: dict[tuple[ClientId, UserId, MessageId], Receipt] = field(
        default_factory=dict[tuple[ClientId, UserId, MessageId], Receipt]
    )
    acceptances: dict[tuple[ConversationId, EventId], Receipt] = field(
        default_factory=dict[tuple[ConversationId, EventId], Receipt]
    )
    notes: list[Note] = field(default_factory=list[Note])
    session: SessionRow | None = None
    replayed: bool = False
    lease_lost: bool = False
    ended: int = 0

    def load(self, wanted: Keys) -> Loaded:
        receipt = None if wanted.receipt is None else self.receipts.get(wanted.receipt)
        conversation = wanted.conversation or (receipt.conversation_id if receipt else None)
        acceptance = None if wanted.acceptance is None else self.acceptances.get(wanted.acceptance)
        head = self._head(conversation)
        relatives = head if wanted.relatives else None
        return Loaded(
            head=head,
            parent=self._head(wanted.parent or (relatives.parent if relatives else None)),
            direct=self._head(relatives.open_direct if relatives else None),
            receipt=receipt,
            acceptance=acceptance,
            accepted=self._head(acceptance.conversation_id if acceptance else None),
            replayed=self.replayed,
            session=self.session,
            lease_lost=self.lease_lost and wanted.lease is not None,
        )

    def _head(self, conversation: ConversationId | None) -> Head | None:
        return None if conversation is None else self.heads.get(conversation)

    @overload
    def do(self, command: RequestCommand) -> Answered: ...
    @overload
    def do(self, command: CompanyCommand) -> Settled: ...
    def do(self, command: Command) -> Answered | Settled:
        """Decide and write, all or nothing; events must go on without gaps."""
        wanted = keys(command)
        change = decide(command, self.load(wanted), self.now, self.ids)
        self.now += timedelta(seconds=1)
        for conversation, seq, event in change.events:
            events = self.log.setdefault(conversation, [])
            assert seq == len(events) + 1, "the log has a gap"
            assert self.ids.read(conversation, event.id) == seq
            events.append(event)
        for head in change.heads:
            self.heads[head.id] = head
            assert head.last_seq == len(self.log[head.id]), "the head and the log differ"
        if change.receipt is not None:
            assert wanted.receipt is not None
            self.receipts[wanted.receipt] = change.receipt
        if change.acceptance is not None:
            assert wanted.acceptance is not None
            self.acceptances[wanted.acceptance] = change.acceptance
        self.notes.extend(change.notes)
        self.ended += change.ended
        return change.result

    def start(self, message: Message | None = None, caller: Caller = DANA, name: str = "cnv_1") -> ConversationId:
        return self.do(Start(caller, ConversationId(name), message or said("msg_1"))).conversation_id

    def say(self, conversation: ConversationId, message: Message, caller: Caller = DANA) -> Answered:
        return self.do(Say(caller, conversation, message))

    def story(self, conversation: ConversationId) -> list[str]:
        """The log in short: `user: text`, `company: text`, `status/responder`, or the event's class."""
        return [_short(event) for event in self.log[conversation]]


def _short(event: Event) -> str:
    match event:
        case MessageAdded(message=message):
            return f"{message.role}: {message.text or ''}"
        case StateChanged():
            return f"{event.status}/{event.responder}"
        case AuthorizationNeeded():
            return f"needs {event.scope}"
        case _:
            return type(event).__name__

"""The commands that change a conversation, one per thing that either side can do (8.2-8.12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from papaver.protocol.conversation.change import Keys, ReplayKey, SessionRow
from papaver.protocol.conversation.content import MAX_CONTEXT_BYTES
from papaver.protocol.conversation.model import Message, Responder, Status
from papaver.protocol.conversation.state import Access, Asker, Lease
from papaver.protocol.terms import AccountId, ClientId, ConversationId, EventId, UserId
from papaver.values.errors import PapaverError

__all__ = [
    "Answer",
    "Answered",
    "Caller",
    "Close",
    "Command",
    "Expire",
    "Fail",
    "HandOff",
    "LeaseLost",
    "Park",
    "Read",
    "RequestCommand",
    "Say",
    "Settled",
    "Start",
    "TurnCommand",
    "Unavailable",
    "keys",
]


class LeaseLost(PapaverError):
    """A turn's outcome came too late: another runner holds the turn. Nothing was written; the outcome is dropped."""

    code = "lease_lost"
    description = "the turn is held by another runner"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from, as verified.

    `account_id`  the account of its access token; None when it carries none
    `session`     its Session as it was opened, so that an end that comes in between is noticed
    `replay`      its Session JWT, when replays are refused (readings 49)
    `access`      what its access token allows; None without one
    `asker`       what a turn is told of it
    `minimum`     the scopes that conversations need here at least; what a challenge names then (readings 32)
    """

    client_id: ClientId
    user_id: UserId
    account_id: AccountId | None = None
    session: SessionRow | None = None
    replay: ReplayKey | None = None
    access: Access | None = None
    asker: Asker | None = None
    minimum: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """A new conversation (8.3). `conversation_id` is fresh. `cursor` only when the request has `wait` (readings 22).

    `context_bytes`: what the merged context may have.
    """

    caller: Caller
    conversation_id: ConversationId
    message: Message | None
    parent: ConversationId | None = None
    user_requested: EventId | None = None
    cursor: EventId | None = None
    context_bytes: int = MAX_CONTEXT_BYTES


@dataclass(frozen=True, slots=True)
class Say:
    """Another message (8.3). `cursor` only when the request has `wait` (readings 22). `context_bytes` as in Start."""

    caller: Caller
    conversation_id: ConversationId
    message: Message
    cursor: EventId | None = None
    context_bytes: int = MAX_CONTEXT_BYTES


@dataclass(frozen=True, slots=True)
class Read:
    """A read that changes whose account the conversation uses, or has a parked turn run again (8.2, 8.11; readings 2).

    Needed only when `moves` says so.
    """

    caller: Caller
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class HandOff:
    """A person is asked for (8.9)."""

    caller: Caller
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Close:
    """The User's side closes (8.12)."""

    caller: Caller
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a turn.

    `messages`        what the Company Agent says, with fresh ids
    `until_seq`       the newest event that the turn has answered
    `handoff`         it asks for a person (8.9)
    `user_requested`  it asks to talk with the User: the reason (8.10)
    """

    lease: Lease
    until_seq: int
    messages: tuple[Message, ...] = ()
    handoff: bool = False
    user_requested: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The handler raised, hung or was begun too often: `message` says so, and the turn is over."""

    lease: Lease
    until_seq: int
    message: Message


@dataclass(frozen=True, slots=True)
class Park:
    """The turn needs the User's account: `scopes` are all that the call needs, at least one (8.11).

    `access`  what the turn was run with; None when that is not known any more
    """

    lease: Lease
    until_seq: int
    scopes: tuple[str, ...]
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nobody comes for the handoff that is pending; `message` says why (8.9)."""

    lease: Lease
    message: Message


@dataclass(frozen=True, slots=True)
class Expire:
    """The Company closes a conversation that nothing has changed since `idle_since` (8.12)."""

    conversation_id: ConversationId
    idle_since: datetime


RequestCommand = Start | Say | Read | HandOff | Close
TurnCommand = Answer | Fail | Park | Unavailable | Expire
Command = RequestCommand | TurnCommand


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request is answered with.

    `status_code`  201, 202 or 200
    `last_seq`     the newest event after the change
    `repeated`     it was a retry: nothing was added, and `status` and `responder` are the first answer's (8.3)
    """

    status_code: int
    conversation_id: ConversationId
    status: Status
    responder: Responder
    last_seq: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """How the conversation stands after the Company's side did something.

    `recorded` is False when nothing was written but the turn's end, as in a conversation closed meanwhile.
    """

    conversation_id: ConversationId
    status: Status
    responder: Responder
    last_seq: int
    recorded: bool = True


def keys(command: Command) -> Keys:
    """What has to be loaded to decide it."""
    match command:
        case Start(caller=caller, message=message):
            return _request_keys(caller, None, message)
        case Say(caller=caller, message=message):
            return _request_keys(caller, command.conversation_id, message)
        case Read(caller=caller) | HandOff(caller=caller) | Close(caller=caller):
            return _request_keys(caller, command.conversation_id, None)
        case Answer(lease=lease) | Fail(lease=lease) | Park(lease=lease) | Unavailable(lease=lease):
            return Keys(conversation=lease.conversation_id, lease=lease)
        case _:
            return Keys(conversation=command.conversation_id)


def _request_keys(caller: Caller, conversation: ConversationId | None, message: Message | None) -> Keys:
    session = caller.session
    return Keys(
        conversation=conversation,
        receipt=None if message is None else (caller.client_id, caller.user_id, message.id),
        replay=caller.replay,
        session=None if session is None else (session.client_id, session.sid),
    )

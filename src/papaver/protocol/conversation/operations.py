"""The commands that change a conversation, one per thing that either side can do (8.2-8.12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from papaver.protocol.conversation.change import Keys, ReplayKey, SessionRow
from papaver.protocol.conversation.content import MAX_CONTEXT_BYTES
from papaver.protocol.conversation.model import Author, Message, Responder, Status
from papaver.protocol.conversation.state import Access, Asker, Lease
from papaver.protocol.terms import AccountId, ClientId, ConversationId, EventId, MessageId, UserId
from papaver.values.errors import PapaverError

__all__ = [
    "Answer",
    "Answered",
    "AskForScopes",
    "AskForUser",
    "Caller",
    "Close",
    "Command",
    "CompanyCommand",
    "Decline",
    "End",
    "Expire",
    "Fail",
    "HandOff",
    "Join",
    "Joined",
    "Leave",
    "LeaseLost",
    "Park",
    "PeopleCommand",
    "Post",
    "Prune",
    "Queued",
    "Read",
    "Refer",
    "RequestCommand",
    "Say",
    "Settled",
    "Start",
    "Supersede",
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
    """A new conversation (8.3), a Direct Conversation when it names a `parent` (8.10). `conversation_id` is fresh.

    `user_requested`  the event that it accepts; `invited`: it is a `user_requested` event of the parent
    `cursor`          only when the request has `wait` (readings 22)
    `context_bytes`   what the merged context may have
    """

    caller: Caller
    conversation_id: ConversationId
    message: Message | None
    parent: ConversationId | None = None
    user_requested: EventId | None = None
    cursor: EventId | None = None
    context_bytes: int = MAX_CONTEXT_BYTES
    invited: bool = False


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
    `close`           it closes the conversation (8.12)
    `done`            tells what the turn has done, and is said in place of the rest when the turn is superseded
    """

    lease: Lease
    until_seq: int
    messages: tuple[Message, ...] = ()
    handoff: bool = False
    user_requested: str | None = None
    close: bool = False
    done: Message | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The handler raised, hung or was begun too often: `message` says so, and the turn is over. `done` as in Answer."""

    lease: Lease
    until_seq: int
    message: Message
    done: Message | None = None


@dataclass(frozen=True, slots=True)
class Park:
    """The turn needs the User's account: `scopes` are all that the call needs, at least one (8.11).

    `access`   what the turn was run with; None when that is not known any more
    `message`  asks for it in words, where the User reads them (8.10); None elsewhere
    `done`     tells what the turn has done before that, and is said whatever comes of it; None when there is nothing
    """

    lease: Lease
    until_seq: int
    scopes: tuple[str, ...]
    access: Access | None = None
    message: Message | None = None
    done: Message | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nobody comes for the handoff that is pending; `message` says why (8.9)."""

    lease: Lease
    message: Message


@dataclass(frozen=True, slots=True)
class Queued:
    """Somebody will come for the handoff that is pending (8.9)."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Joined:
    """A person takes the handoff that is pending at once (8.9)."""

    lease: Lease
    person: Author


@dataclass(frozen=True, slots=True)
class Supersede:
    """The turn is over without a word: a person joined while it ran, or the conversation was closed.

    `done` tells what it has done before that: nobody would know otherwise, and the next turn would do it again.
    """

    lease: Lease
    done: Message | None = None


@dataclass(frozen=True, slots=True)
class Expire:
    """The Company closes a conversation that nothing has changed since `idle_since` (8.12)."""

    conversation_id: ConversationId
    idle_since: datetime


@dataclass(frozen=True, slots=True)
class Join:
    """A person takes the conversation over (8.7, 8.9). `person` has an id, by which it is known again."""

    conversation_id: ConversationId
    person: Author


@dataclass(frozen=True, slots=True)
class Leave:
    """The person hands back to the Company Agent. `person_id`: whose leaving it is; None for whoever has it."""

    conversation_id: ConversationId
    person_id: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """The Company says something of its own accord.

    `person_id`  it is said by the person who handles it, and answers what was said before; refused when that is not so
    `key`        said once however often it is posted: the receipt's key, client, User and message id
    """

    conversation_id: ConversationId
    message: Message
    person_id: str | None = None
    key: tuple[ClientId, UserId, MessageId] | None = None


@dataclass(frozen=True, slots=True)
class Refer:
    """The Company's side asks for a person (8.9)."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Decline:
    """Nobody comes for a conversation that is queued; `message` says why (8.9)."""

    conversation_id: ConversationId
    message: Message


@dataclass(frozen=True, slots=True)
class AskForUser:
    """The Company asks to talk with the User (8.10)."""

    conversation_id: ConversationId
    reason: str


@dataclass(frozen=True, slots=True)
class AskForScopes:
    """The Company needs the User's account with these scopes (8.11)."""

    conversation_id: ConversationId
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The Company closes the conversation (8.12)."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Prune:
    """Events before `first_seq` are kept no longer; `kept_from` is the time of that event (8.5)."""

    conversation_id: ConversationId
    first_seq: int
    kept_from: datetime


RequestCommand = Start | Say | Read | HandOff | Close
TurnCommand = Answer | Fail | Park | Unavailable | Queued | Joined | Supersede
PeopleCommand = Expire | Join | Leave | Post | Refer | Decline | AskForUser | AskForScopes | End | Prune
CompanyCommand = TurnCommand | PeopleCommand
Command = RequestCommand | CompanyCommand


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
    `event_id` is that of a `user_requested` event that was just added.
    """

    conversation_id: ConversationId
    status: Status
    responder: Responder
    last_seq: int
    recorded: bool = True
    event_id: EventId | None = None


def keys(command: Command) -> Keys:
    """What has to be loaded to decide it."""
    match command:
        case Start(caller=caller, message=message):
            return _request_keys(caller, None, message, command.parent, command.user_requested)
        case Say(caller=caller, message=message):
            return _request_keys(caller, command.conversation_id, message)
        case Close(caller=caller):
            return replace(_request_keys(caller, command.conversation_id, None), relatives=True)
        case Read(caller=caller) | HandOff(caller=caller):
            return _request_keys(caller, command.conversation_id, None)
        case Answer(lease=lease):
            return Keys(conversation=lease.conversation_id, lease=lease, relatives=command.close)
        case Fail() | Park() | Unavailable() | Queued() | Joined() | Supersede():
            return Keys(conversation=command.lease.conversation_id, lease=command.lease)
        case Post():
            return Keys(conversation=command.conversation_id, receipt=command.key)
        case _:
            return Keys(conversation=command.conversation_id, relatives=isinstance(command, End | Expire))


def _request_keys(
    caller: Caller,
    conversation: ConversationId | None,
    message: Message | None,
    parent: ConversationId | None = None,
    accepts: EventId | None = None,
) -> Keys:
    session = caller.session
    return Keys(
        conversation=conversation,
        parent=parent,
        receipt=None if message is None else (caller.client_id, caller.user_id, message.id),
        replay=caller.replay,
        session=None if session is None else (session.client_id, session.sid),
        acceptance=None if parent is None or accepts is None else (parent, accepts),
    )

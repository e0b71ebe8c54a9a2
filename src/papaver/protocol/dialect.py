"""What may differ between protocol versions, and nothing else. A version is looked up at the door, then handed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from papaver.protocol.company import CompanyDocument
from papaver.protocol.conversation.model import Event, Message, Responder, Status, TextDelta
from papaver.protocol.session import SessionProfile
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Request, Response
from papaver.web.sse import ServerEvent

__all__ = [
    "BEARER_ONLY",
    "Accepted",
    "Challenged",
    "ConversationCodec",
    "Dialect",
    "DocumentCodec",
    "ErrorTable",
    "NoRoute",
    "Page",
    "Place",
    "Received",
    "Route",
    "RouteKind",
    "StartBody",
    "Version",
    "Wanted",
]


class Version(NamedTuple):
    """A protocol version. An enumerated name, compared by `negotiation.compatible` and nothing else."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class DocumentCodec(Protocol):
    """`poppy.json` of one version ⇄ CompanyDocument (3.1)."""

    def read(self, document: object) -> CompanyDocument:
        """A decoded JSON document; unknown members ignored. Raises DiscoveryFailed with the rule that is broken."""
        ...

    def write(self, document: CompanyDocument) -> dict[str, object]: ...


class RouteKind(Enum):
    START = auto()
    SAY = auto()
    READ = auto()
    HAND_OFF = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Route:
    """One of the five requests of 8.2. `conversation_id` is None for a start."""

    kind: RouteKind
    conversation_id: ConversationId | None = None


@dataclass(frozen=True, slots=True)
class NoRoute:
    """Nothing here: 405 with these methods in `Allow`, or 404 when there are none."""

    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read or a POST asks for (8.3, 8.5, 8.6).

    `wait`           in seconds as asked for, not yet capped; None when absent
    `stream`         a read would rather have a stream of events than a page
    `last_event_id`  what a stream goes on after, in place of `cursor`; the Personal Agent's side sets it
    """

    cursor: EventId | None = None
    wait: int | None = None
    stream: bool = False
    last_event_id: EventId | None = None


@dataclass(frozen=True, slots=True)
class StartBody:
    """The body of a start (8.3, 8.10)."""

    message: Message | None
    parent: ConversationId | None = None
    user_requested: EventId | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a read answers (8.5). `cursor` is None only where no event exists and none was given."""

    conversation_id: ConversationId
    events: tuple[Event, ...]
    cursor: EventId | None
    has_more: bool
    status: Status
    responder: Responder


@dataclass(frozen=True, slots=True)
class Accepted:
    """A POST's answer without `wait` (8.3)."""

    conversation_id: ConversationId
    status: Status
    responder: Responder


class ConversationCodec(Protocol):
    """The requests of 8.2 and their answers, both directions."""

    # the Company's side
    def route(self, method: str, path: str) -> Route | NoRoute:
        """`path` is what follows the endpoint, percent-encoded as received: `` or `/{id}/events`.

        An id with characters or a length that 8.2 forbids raises InvalidRequest (readings 29).
        """
        ...

    def read_query(self, query: str) -> Wanted:
        """What a POST asks for: nothing without `wait` (readings 22). Raises InvalidRequest or InvalidCursor."""
        ...

    def read_wanted(self, query: str, headers: Headers) -> Wanted:
        """What a read asks for: Last-Event-ID stands in `cursor`, in place of the one in the query (8.6)."""
        ...

    def read_start(self, request: Request) -> StartBody:
        """Body and content type; raises InvalidRequest."""
        ...

    def read_say(self, request: Request) -> Message: ...

    def read_nothing(self, request: Request) -> None:
        """The empty object of handoff and close (readings 37)."""
        ...

    def write_accepted(self, status_code: int, accepted: Accepted) -> Response: ...

    def write_state(self, status_code: int, status: Status, responder: Responder) -> Response:
        """The answer of handoff (202) and close (200)."""
        ...

    def write_page(self, status_code: int, page: Page, reader_extensions: Mapping[str, str]) -> Response:
        """For one reader: extension content of others is left out (readings 9)."""
        ...

    def write_stream_event(self, event: Event, reader_extensions: Mapping[str, str]) -> bytes:
        """An event of a stream, for one reader, ready to send (8.6; readings 9)."""
        ...

    def write_delta(self, message_id: MessageId, text: str) -> bytes:
        """A piece of a message that is still written, ready to send; empty for what cannot be sent."""
        ...

    # the Personal Agent's side
    def write_start(
        self,
        endpoint: str,
        message: Message | None,
        wanted: Wanted,
        parent: ConversationId | None = None,
        user_requested: EventId | None = None,
    ) -> Request:
        """Without a message only with both ids: the Company speaks first (8.10)."""
        ...

    def write_say(self, endpoint: str, conversation: ConversationId, message: Message, wanted: Wanted) -> Request: ...

    def write_read(self, endpoint: str, conversation: ConversationId, wanted: Wanted) -> Request: ...

    def write_hand_off(self, endpoint: str, conversation: ConversationId) -> Request: ...

    def write_close(self, endpoint: str, conversation: ConversationId) -> Request: ...

    def read_accepted(self, response: Response) -> Accepted | Page:
        """A 201 or 202: with `wait` a Page. Unknown statuses and responders are mapped, unknown events skipped."""
        ...

    def read_page(self, response: Response) -> Page: ...

    def read_stream_event(self, event: ServerEvent) -> Event | TextDelta | None:
        """One event of a stream (8.6); None for a kind that is not known. Raises Misbehaved."""
        ...

    def read_state(self, response: Response) -> tuple[Status, Responder]: ...


class Place(Enum):
    """Where an error is answered: some codes differ in place (3.3, 7)."""

    ENDPOINT = auto()
    API = auto()


@dataclass(frozen=True, slots=True)
class Received:
    """An error as read from a response: its code (`` for a challenge without one) and its attributes."""

    code: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Challenged:
    """What the challenges of a place say besides the error: one for each scheme that it accepts (7).

    `algs`  of DPoP proofs (RFC 9449 7.1)      `resource_metadata`  its URL, where a service has its own (RFC 9728 5.1)
    """

    schemes: tuple[str, ...] = ("Bearer",)
    algs: tuple[str, ...] = ()
    resource_metadata: str | None = None


BEARER_ONLY: Final = Challenged()


class ErrorTable(Protocol):
    """Error class ⇄ code, status, and body or `WWW-Authenticate` (7, 8.13)."""

    def write(self, error: PapaverError, place: Place, challenged: Challenged = BEARER_ONLY) -> Response: ...

    def read(self, response: Response) -> Received | None:
        """None for a response that is no error of the protocol."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol version, whole."""

    version: Version
    documents: DocumentCodec
    session: SessionProfile
    conversations: ConversationCodec
    errors: ErrorTable

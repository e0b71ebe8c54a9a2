"""What a flow may ask of the world. A flow is a generator: it yields one of these and is sent what came of it.

Flows hold no socket, no file and no lock, so each can be driven by hand, stopped between any two steps and looked at.
The functions below give each effect the type of its result; a flow uses them with `yield from`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from papaver.ports.system import FetchPolicy
from papaver.protocol.destinations import Destinations
from papaver.protocol.session_signer import SessionSigner
from papaver.protocol.terms import AgentId, SessionId
from papaver.values.secret import Secret
from papaver.web.messages import Request, Response

__all__ = [
    "Effect",
    "Exclusive",
    "Fetch",
    "Flow",
    "Keep",
    "Load",
    "LoadAll",
    "Post",
    "Send",
    "SessionFields",
    "Sign",
    "StreamedResponse",
    "Wait",
    "exclusive",
    "fetch",
    "keep",
    "load",
    "load_all",
    "post",
    "send",
    "sign",
    "wait",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """A request to a Session destination → its Response, of any status. Raises FetchFailed in the flow.

    One that accepts an event stream may be answered with a StreamedResponse.

    `fields` join the request for this one hop and no other: the Session header `header` with its `jwt`, and beside it
    `declared`, the versions. `destinations` are what the hop is judged by.
    """

    request: Request
    fields: SessionFields
    destinations: Destinations


@dataclass(frozen=True, slots=True)
class SessionFields:
    """The header fields of one signed request (3.4, 4.5, 5.2). They show everything but the secrets.

    `authorization` is the whole field, `Bearer …` or `DPoP …`, and `proof` the DPoP proof; None where there is none.
    """

    header: str
    jwt: Secret
    declared: tuple[tuple[str, str], ...]
    authorization: Secret | None = None
    proof: Secret | None = None


@dataclass(frozen=True, slots=True)
class StreamedResponse(Response):
    """A response that goes on (8.6): `chunks` are its octets as they come. Close it in the end, read or not."""

    chunks: AsyncGenerator[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """A document, without any credential → its Response. Raises FetchFailed in the flow."""

    request: Request
    policy: FetchPolicy


@dataclass(frozen=True, slots=True)
class Post:
    """A request to an OAuth endpoint → its Response, of any status. A redirect is an answer, and never followed.

    Its body holds secrets. Raises FetchFailed in the flow.
    """

    request: Request
    seconds: float
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds to let pass → None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Load:
    """A row of the vault → its bytes, or None."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class LoadAll:
    """Every row of one kind → (key, bytes) pairs, oldest first."""

    kind: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Change a row of the vault, durable before the flow goes on → its new bytes, or None when deleted."""

    kind: str
    key: str
    decide: Callable[[bytes | None], bytes | None]


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Run a flow while nobody else, in this process or another, runs one under the same name → its result."""

    name: str
    flow: Generator[Effect, object, object]


@dataclass(frozen=True, slots=True)
class Sign:
    """A Session JWT for one request → Secret. `offset` is what the Company's clock is ahead of ours, in seconds.

    `access_token` is the one that the request carries, for `ath`.
    """

    signer: SessionSigner
    sid: SessionId
    method: str
    url: str
    agent_id: AgentId | None
    offset: float
    access_token: Secret | None = None


Effect: TypeAlias = Send | Fetch | Post | Wait | Load | LoadAll | Keep | Exclusive | Sign
Flow: TypeAlias = Generator[Effect, object, T]


def send(request: Request, fields: SessionFields, destinations: Destinations) -> Flow[Response]:
    return cast("Response", (yield Send(request, fields, destinations)))


def fetch(request: Request, policy: FetchPolicy) -> Flow[Response]:
    return cast("Response", (yield Fetch(request, policy)))


def post(request: Request, seconds: float, max_bytes: int) -> Flow[Response]:
    return cast("Response", (yield Post(request, seconds, max_bytes)))


def wait(seconds: float) -> Flow[None]:
    yield Wait(seconds)


def load(kind: str, key: str) -> Flow[bytes | None]:
    return cast("bytes | None", (yield Load(kind, key)))


def load_all(kind: str) -> Flow[tuple[tuple[str, bytes], ...]]:
    return cast("tuple[tuple[str, bytes], ...]", (yield LoadAll(kind)))


def keep(kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> Flow[bytes | None]:
    return cast("bytes | None", (yield Keep(kind, key, decide)))


def exclusive(name: str, flow: Flow[T]) -> Flow[T]:
    return cast("T", (yield Exclusive(name, flow)))


def sign(effect: Sign) -> Flow[Secret]:
    return cast("Secret", (yield effect))

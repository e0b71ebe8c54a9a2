"""The JSON of conversations in draft 0.4, as pydantic sees it: what a message, a request and an answer consist of (8).

Types are strict and unknown members are no fault: messages keep them, everything else drops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from papaver.values.errors import PapaverError

__all__ = [
    "WireAccepted",
    "WireAuthor",
    "WireAuthorizationEvent",
    "WireCompanyAuthor",
    "WireCompanyMessage",
    "WireDelta",
    "WireDirectEvent",
    "WireError",
    "WireEvent",
    "WireMessage",
    "WireMessageEvent",
    "WirePage",
    "WireSay",
    "WireStart",
    "WireState",
    "WireStateEvent",
    "WireUserRequestedEvent",
    "shape",
]

M = TypeVar("M", bound=BaseModel)
Members = dict[str, Any]


class WireError(PapaverError):
    """A document that does not have the shape of its model. `description` names the member, never its value."""

    code = "wrong_shape"


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


class _Open(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True, hide_input_in_errors=True)


class WireAuthor(_Open):
    """The author of a message of the User's side. `id`, `name` and `image` are not looked at (8.4; readings 36)."""

    type: Literal["agent", "human"]


class WireMessage(_Open):
    """A message as the User's side sends it (8.4). A null member is an absent one (readings 34)."""

    id: str
    author: WireAuthor
    text: str | None = None
    data: Members | None = None
    context: Members | None = None
    extensions: dict[str, Members | None] | None = None


class WireStart(_Wire):
    message: WireMessage | None = None
    parent_conversation_id: str | None = None
    user_requested_event_id: str | None = None


class WireSay(_Wire):
    message: WireMessage


class WireCompanyAuthor(_Open):
    """The author in an event: of either side (8.4)."""

    type: Literal["agent", "human"]
    id: str | None = None
    name: str | None = None
    image: str | None = None


class WireCompanyMessage(_Open):
    """A message in an event: of either side, with the role that the Company set (8.5)."""

    id: str
    role: Literal["user", "company"]
    author: WireCompanyAuthor
    text: str | None = None
    data: Members | None = None
    context: Members | None = None
    extensions: Members | None = None


class WireState(_Wire):
    status: str
    responder: str


class WireDelta(_Wire):
    """A piece of a message in a stream (8.6)."""

    message_id: str
    text: str


class WireAccepted(WireState):
    conversation_id: str


class WirePage(WireAccepted):
    """An answer to a read. `cursor` may be missing or null where no event exists yet (readings 19)."""

    events: list[Members]
    has_more: bool
    cursor: str | None = None


class WireEvent(_Wire):
    id: str
    type: str
    created_at: str


class WireMessageEvent(WireEvent):
    message: WireCompanyMessage


class WireStateEvent(WireEvent):
    status: str
    responder: str


class WireAuthorizationEvent(WireEvent):
    error: str
    scope: str


class WireUserRequestedEvent(WireEvent):
    reason: str


class WireDirectEvent(WireEvent):
    conversation_id: str


def shape(model: type[M], document: Mapping[str, object]) -> M:
    """The document as its model. Raises WireError."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"]) or "the body"
        raise WireError(f"{where}: {first['msg']}"[:300]) from None

"""What a turn says while it runs: the reply's text piece by piece, components, and what is to follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from papaver.ports.deltas import Delta, Deltas
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ConversationId, MessageId
from papaver.values.rules import rule

__all__ = ["Component", "Writing", "check_fallback", "check_length", "check_reason"]


@dataclass(frozen=True, slots=True)
class Component:
    """Something that a Personal Agent may show in a form of its own; `fallback_text` says the same in words."""

    name: str
    props: Mapping[str, object]
    fallback_text: str


@rule("turn.text-size")
def check_length(octets: int, limit: int) -> None:
    """What a turn writes is bounded as every message is. Raises ConfigurationError."""
    if octets > limit:
        raise ConfigurationError(
            f"this turn has written {octets} octets of text; a message has at most {limit}", rule="turn.text-size"
        )


@rule("turn.fallback-needed")
def check_fallback(name: str, fallback_text: str) -> None:
    """A message makes sense without its `data` (8.4): a component says in words what it shows.

    Raises ConfigurationError.
    """
    if not name or not fallback_text.strip():
        raise ConfigurationError(
            f"the component {name!r} has to have a name, and a fallback_text that says the same in words",
            rule="turn.fallback-needed",
        )


@rule("turn.reason-needed")
def check_reason(reason: str) -> None:
    """Who asks for the User says why, in words that can be shown (8.10). Raises ConfigurationError."""
    if not reason.strip():
        raise ConfigurationError(
            "the User is asked for with a reason to show them, such as 'We need your signature.'",
            rule="turn.reason-needed",
        )


@dataclass(slots=True)
class Writing:
    """The reply of one turn, as it grows. `message_id` is the reply's, whatever becomes of the pieces (8.6)."""

    conversation_id: ConversationId
    message_id: MessageId
    deltas: Deltas
    most: int
    pieces: list[str] = field(default_factory=list[str])
    components: list[Component] = field(default_factory=list[Component])
    handoff: bool = False
    user_requested: str | None = None
    close: bool = False
    over: bool = False
    size: int = 0
    length: int = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def write(self, piece: str) -> None:
        """Add it, and send it on to whoever reads the stream. Nothing is sent once the turn is over."""
        if not piece or self.over:
            return
        self.size += len(piece.encode("utf-8", "surrogatepass"))
        check_length(self.size, self.most)
        self.pieces.append(piece)
        self.deltas.publish(self.conversation_id, Delta(self.message_id, piece, self.length))
        self.length += len(piece)

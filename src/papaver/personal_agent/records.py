"""The rows of the vault in our own form: small JSON objects that no protocol version can change (architecture 3.7).

Members may be added with a default; none may change its name or meaning. The vault encrypts every value and hides
every key, so the mapping of Users to their IDs stays confidential (5.1).
"""

from __future__ import annotations

from typing import Final, Never, TypeVar

import msgspec

from papaver.protocol.errors import ConfigurationError

__all__ = [
    "COMPANY",
    "CONVERSATION",
    "DELEGATED_KEY",
    "OUTBOX",
    "CompanyRow",
    "ConversationRow",
    "DelegatedKeyRow",
    "DocumentRow",
    "IdRow",
    "OutboxRow",
    "read_row",
    "row_key",
    "write_row",
]

COMPANY: Final = "company"
CONVERSATION: Final = "conversation"
DELEGATED_KEY: Final = "delegated-key"
OUTBOX: Final = "outbox"


class IdRow(msgspec.Struct, frozen=True):
    """A User ID or an Agent ID at one Company. `name` is local: which User, or which agent of which User."""

    name: str
    company: str
    id: str


class DelegatedKeyRow(msgspec.Struct, frozen=True):
    """A delegated key and its delegation, which it does not show. Times in Unix seconds; `signed_by` is a `kid`."""

    company: str
    user_id: str
    kid: str
    iat: int
    exp: int
    jwk: dict[str, str]
    delegation: str
    signed_by: str
    client_id: str

    def __repr__(self) -> str:
        return f"DelegatedKeyRow(kid={self.kid!r}, exp={self.exp})"

    def __reduce__(self) -> Never:
        raise TypeError("a delegated key is never pickled")


class DocumentRow(msgspec.Struct, frozen=True):
    """A document as fetched. `url` was asked for, `answered` is the last one; `until` in Unix seconds."""

    url: str
    answered: str
    body: str
    until: float


class CompanyRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last successful discovery of one domain found (3.2)."""

    domain: str
    name: str
    identifier: str
    version: str
    discovered_at: float
    issuer: str | None = None
    documents: tuple[DocumentRow, ...] = ()


class ConversationRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One conversation, and how far its events were handled (8.5).

    `user`     the local name          `user_id`, `company`  whose it is; `domain` is where it was started
    `cursor`   after the last handled event; None before the first
    `handled`  the newest handled event ids, oldest first
    """

    company: str
    domain: str
    user: str
    user_id: str
    conversation_id: str
    started_at: float
    status: str
    responder: str
    cursor: str | None = None
    handled: tuple[str, ...] = ()


class OutboxRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that was written and not yet known to be accepted (8.3). Without `conversation_id` it starts one."""

    company: str
    domain: str
    user: str
    message_id: str
    written_at: float
    author: str
    conversation_id: str | None = None
    text: str | None = None
    data: dict[str, object] | None = None
    context: dict[str, object] | None = None
    extensions: dict[str, object] | None = None

    def __repr__(self) -> str:
        return f"OutboxRow(message_id={self.message_id!r}, conversation_id={self.conversation_id!r})"


R = TypeVar("R", bound=msgspec.Struct)


def row_key(*parts: str) -> str:
    """A row's key from its parts, none of which can be mistaken for another's."""
    return msgspec.json.encode(parts).decode()


def write_row(row: msgspec.Struct) -> bytes:
    """A row as the vault keeps it."""
    return msgspec.json.encode(row)


def read_row(kind: type[R], value: bytes) -> R:
    """A row as it was written. Raises ConfigurationError for anything else; its octets are in no error."""
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError:
        raise ConfigurationError(
            f"the vault holds a {kind.__name__} that cannot be read; was it written by a newer papaver?",
            rule="vault.readable",
        ) from None

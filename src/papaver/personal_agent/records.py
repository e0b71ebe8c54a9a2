"""The rows of the vault in our own form: small JSON objects that no protocol version can change (architecture 3.7).

Members may be added with a default; none may change its name or meaning. The vault encrypts every value and hides
every key, so the mapping of Users to their IDs stays confidential (5.1).
"""

from __future__ import annotations

from typing import Final, Never, TypeVar

import msgspec

from papaver.protocol.errors import ConfigurationError

__all__ = [
    "ACCOUNT",
    "COMPANY",
    "CONVERSATION",
    "DELEGATED_KEY",
    "DESCRIPTION",
    "OUTBOX",
    "SERVICE",
    "SIGN_IN",
    "AccountRow",
    "CompanyRow",
    "ConversationRow",
    "DelegatedKeyRow",
    "DocumentRow",
    "HeldTokenRow",
    "IdRow",
    "OutboxRow",
    "ServiceRow",
    "SignInRow",
    "read_row",
    "row_key",
    "write_row",
]

ACCOUNT: Final = "account"
COMPANY: Final = "company"
CONVERSATION: Final = "conversation"
DELEGATED_KEY: Final = "delegated-key"
DESCRIPTION: Final = "description"
OUTBOX: Final = "outbox"
SERVICE: Final = "service"
SIGN_IN: Final = "sign-in"


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
    `needed`   the scopes of an `authorization` event that the account did not cover yet (8.11)
    `parent`   the earlier conversation, when this is a Direct Conversation (8.10)
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
    needed: tuple[str, ...] = ()
    parent: str | None = None


class OutboxRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that was written and not yet known to be accepted (8.3). Without `conversation_id` it starts one.

    `parent`, `user_requested`  it opens a Direct Conversation; with both, it may have no content at all (8.10)
    """

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
    parent: str | None = None
    user_requested: str | None = None

    def __repr__(self) -> str:
        return f"OutboxRow(message_id={self.message_id!r}, conversation_id={self.conversation_id!r})"


class _Hidden(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row with secrets in it: it shows nothing of itself and is never pickled."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(**********)"

    def __reduce__(self) -> Never:
        raise TypeError(f"a {type(self).__name__} is never pickled")


class HeldTokenRow(_Hidden, frozen=True, omit_defaults=True):
    """An access token (4.5). `resource` is the service that it was issued for, None for the default one.

    `expires_at` in Unix seconds, None when the Company does not say.
    """

    token: str
    token_type: str
    scopes: tuple[str, ...]
    resource: str | None = None
    expires_at: float | None = None


class AccountRow(_Hidden, frozen=True, omit_defaults=True):
    """A User's account at a Company, under our local name for it; its User may have several (5.4).

    `state`          `signed_in`, or why not: `signed_out` here, `ended` by the Company (5.5), `refused` (4.1)
    `chain`          another one for each sign-in that was not a step-up: perhaps another account of the Company
    `scopes`         what the refresh token has           `declined`  what the User did not approve when asked last
    `token_host`, `revocation_host`  where tokens went at sign-in; another one is looked at again first
    `dpop_jwk`       the account's own DPoP key, private  `tokens`    the access tokens in use
    `unrevoked`      refresh tokens that are used no more, and which the Company still has to revoke (4.6, 4.7)
    """

    company: str
    domain: str
    user: str
    account: str
    state: str
    chain: str
    signed_in_at: float
    token_host: str
    revocation_host: str
    scopes: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    refresh_token: str | None = None
    dpop_jwk: dict[str, str] | None = None
    tokens: tuple[HeldTokenRow, ...] = ()
    unrevoked: tuple[str, ...] = ()


class SignInRow(_Hidden, frozen=True, omit_defaults=True):
    """A Direct Sign-In on its way, found by its `state`, taken once (4.2). `company` is the issuer it began with."""

    company: str
    domain: str
    user: str
    account: str
    scopes: tuple[str, ...]
    redirect_uri: str
    verifier: str
    state: str
    begun_at: float
    dpop_jwk: dict[str, str] | None = None


class ServiceRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a service's own metadata said (RFC 9728): a resource that its tokens have to be issued for, or None."""

    url: str
    until: float
    resource: str | None = None


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

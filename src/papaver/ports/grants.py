"""What the embedded issuer asks of its store: grants, their tokens and one-time tickets, changed through one door.

No token, code or device code is ever stored: rows are found by `digest`, its SHA-256, as `ath` writes it. Every method
belongs to one Company, as in `papaver.ports.company`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from papaver.protocol.terms import AccountId, ClientId
from papaver.values.base64url import encode

__all__ = [
    "AccessFound",
    "AccessRow",
    "GrantChange",
    "GrantKeys",
    "GrantLoaded",
    "GrantRow",
    "GrantStore",
    "RefreshRow",
    "Spent",
    "TicketKey",
    "TicketRow",
    "digest",
]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


def digest(value: str) -> str:
    """Under which a token, code or ticket is stored: base64url of its SHA-256. Of an access token it is the `ath`."""
    return encode(hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest())


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One sign-in: what a User approved for one client, and the family of its refresh tokens. Times in Unix seconds.

    `scopes`      as approved, in the order in which they were asked for
    `expires_at`  counted from the sign-in; using a refresh token does not move it (4.4)
    `current`     digest of the newest refresh token
    `previous`    digest of the one before it, and `rotated_at` when it was replaced; None before the first refresh
    `revoked_at`  by the client, the User or the Company; None while it stands
    """

    id: str
    client_id: ClientId
    client_name: str
    account_id: AccountId
    scopes: tuple[str, ...]
    kind: Literal["direct", "device"]
    signed_in_at: float
    expires_at: float
    current: str
    previous: str | None = None
    rotated_at: float | None = None
    revoked_at: float | None = None

    def stands(self, now: float) -> bool:
        """Neither revoked nor expired (readings 26)."""
        return self.revoked_at is None and now < self.expires_at

    def rotated(self, successor: str, now: float) -> GrantRow:
        """The grant once its newest refresh token is replaced by the one with this digest."""
        return GrantRow(
            self.id,
            self.client_id,
            self.client_name,
            self.account_id,
            self.scopes,
            self.kind,
            self.signed_in_at,
            self.expires_at,
            successor,
            self.current,
            now,
            self.revoked_at,
        )


@dataclass(frozen=True, slots=True)
class RefreshRow:
    """A refresh token that was issued, used or not: which family a digest belongs to."""

    digest: str
    grant_id: str


@dataclass(frozen=True, slots=True)
class AccessRow:
    """An access token. `resource` None: good at every service but those with tokens of their own (4.5).

    `jkt`  thumbprint of the DPoP key that it is bound to; None for a Bearer token
    """

    digest: str
    grant_id: str
    client_id: ClientId
    account_id: AccountId
    scopes: tuple[str, ...]
    expires_at: float
    resource: str | None = None
    jkt: str | None = None


TicketKey = tuple[str, str]
"""(kind, digest)."""


@dataclass(frozen=True, slots=True)
class TicketRow:
    """Something short-lived: an authorization request, a code, a device code, a page's session. `value` is our JSON."""

    kind: str
    digest: str
    value: bytes
    expires_at: float

    @property
    def key(self) -> TicketKey:
        return self.kind, self.digest


@dataclass(frozen=True, slots=True)
class Spent:
    """A one-time id of a client, such as an assertion's or a proof's `jti`, and until when it has to be remembered."""

    client_id: ClientId
    kind: Literal["assertion", "dpop"]
    jti: str
    until: float


@dataclass(frozen=True, slots=True)
class GrantKeys:
    """What has to be loaded to decide a change.

    `refresh`  digest of a refresh token: its grant is loaded        `grant`  a grant by its id
    `account`  whether it is disabled                                `spent`  ids that this change uses up
    """

    tickets: tuple[TicketKey, ...] = ()
    refresh: str | None = None
    grant: str | None = None
    account: AccountId | None = None
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantLoaded:
    """What was found. `disabled`: of the account named, else of the grant's. `spent`: those that were used before."""

    tickets: Mapping[TicketKey, TicketRow] = field(default_factory=dict[TicketKey, TicketRow])
    grant: GrantRow | None = None
    disabled: bool = False
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantChange(Generic[R_co]):
    """What to write at once, and the result of `apply`. `keys.spent` are recorded with every change.

    A change may be written although the request fails (a reused token revokes its family): then `result` is the error,
    and the caller raises it.
    """

    result: R_co
    put_tickets: tuple[TicketRow, ...] = ()
    drop_tickets: tuple[TicketKey, ...] = ()
    grants: tuple[GrantRow, ...] = ()
    refresh: tuple[RefreshRow, ...] = ()
    access: tuple[AccessRow, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessFound:
    """An access token's row with the state of its grant and account, read at once."""

    row: AccessRow
    grant: GrantRow
    disabled: bool


class GrantStore(Protocol):
    """Grants, tokens, tickets and disabled accounts of one Company."""

    async def apply(self, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        """Load what `keys` names, run the pure `decide`, write its change: one transaction, durable on return.

        What `decide` raises is raised here, and nothing is written. `decide` may run on another thread and must not
        block. Two changes of one ticket or grant never interleave; expired tickets may still be loaded.
        """
        ...

    async def access(self, digest: str) -> AccessFound | None:
        """An access token by its digest, whatever process committed a change of it before this call."""
        ...

    async def ticket(self, key: TicketKey) -> TicketRow | None:
        """A ticket as it is; None when there is none."""
        ...

    async def grants(self, account_id: AccountId, client_id: ClientId | None = None) -> tuple[GrantRow, ...]:
        """The grants of an account that were not revoked, newest first; of one client when named."""
        ...

    async def revoke(self, at: float, *, account_id: AccountId | None, client_id: ClientId | None) -> int:
        """Revoke every standing grant of an account, of a client, or of a client at an account; how many."""
        ...

    async def disable(self, account_id: AccountId, disabled: bool) -> None:
        """A disabled account gets no token, and none of its tokens is good, until it is enabled again."""
        ...

    async def sweep(self, now: float, *, forget_before: float) -> int:
        """Delete expired tickets, tokens and ids, and grants that ended before `forget_before`; how many rows."""
        ...

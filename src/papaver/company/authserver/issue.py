"""The tokens of one response: what is made before a decision, and the rows that it becomes."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from papaver.oauth.tokens import TokenResponse
from papaver.ports.grants import AccessRow, GrantRow, digest
from papaver.values.base64url import encode
from papaver.values.secret import Secret, SecretBytes

__all__ = ["ACCESS", "REFRESH", "Issue", "Tokens", "access_row", "derive", "successor", "token_response"]

ACCESS = "pat_"
REFRESH = "prt_"
"""How tokens begin, so that a scanner for leaked secrets knows them."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token values with the digests under which they are stored."""

    access: Secret = field(repr=False)
    refresh: Secret = field(repr=False)
    access_digest: str
    refresh_digest: str

    @classmethod
    def of(cls, access: Secret, refresh: Secret) -> Tokens:
        return cls(access, refresh, digest(access.reveal()), digest(refresh.reveal()))


@dataclass(frozen=True, slots=True)
class Issue:
    """What a decision needs to issue tokens.

    `resource`  the one service they are for; None for the default token (4.5)
    `jkt`       the DPoP key to bind to; None for Bearer (RFC 9449 5)
    `lifetime`  of the access token, in seconds
    """

    now: float
    tokens: Tokens
    lifetime: float
    resource: str | None = None
    jkt: str | None = None


def derive(secret: bytes, purpose: str) -> SecretBytes:
    """A key for one purpose from the store's secret."""
    return SecretBytes(hmac.digest(secret, b"papaver issuer " + purpose.encode(), hashlib.sha256))


def successor(key: SecretBytes, presented: str) -> Secret:
    """The refresh token that replaces `presented`: the same each time, and never stored (ADR 21)."""
    return Secret(REFRESH + encode(hmac.digest(key.reveal(), presented.encode("utf-8", "surrogatepass"), "sha256")))


def access_row(issue: Issue, grant: GrantRow, scopes: tuple[str, ...]) -> AccessRow:
    """The access token's row. It never outlives its grant (readings 26)."""
    return AccessRow(
        digest=issue.tokens.access_digest,
        grant_id=grant.id,
        client_id=grant.client_id,
        account_id=grant.account_id,
        scopes=scopes,
        expires_at=min(issue.now + issue.lifetime, grant.expires_at),
        resource=issue.resource,
        jkt=issue.jkt,
    )


def token_response(issue: Issue, row: AccessRow) -> TokenResponse:
    """What the client gets. `scope` is always said (4.7)."""
    return TokenResponse(
        access_token=issue.tokens.access,
        token_type="Bearer" if row.jkt is None else "DPoP",
        expires_in=int(row.expires_at - issue.now),
        refresh_token=issue.tokens.refresh,
        scope=row.scopes,
    )

"""The Session header on a Company's side (5.2, 5.3): from a header nobody believes to a Session, one type per step.

    Headers ─ read ─► SessionJwt        parsed
            ─ verify ─► ProvenSession   delegation, signature and claims hold
            ─ bind ─► BoundSession      the access token agrees, or there is none
            ─ open_session ─► VerifiedSession   new, or the stored one of the same User ID and Agent ID

Only this module makes the last three. `SessionProfile` is what a protocol version supplies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import UnsetType

from papaver.jose import jws
from papaver.jose.claims import ClaimsError
from papaver.jose.keys import Alg, KeySet
from papaver.protocol.delegation import (
    Delegation,
    DelegationCache,
    DelegationProfile,
    check_iss,
    check_not_expired,
    verify_delegation,
)
from papaver.protocol.errors import InvalidSession, SessionEnded
from papaver.protocol.mismatch import mismatch
from papaver.protocol.session_checks import (
    check_alg,
    check_carries_delegation,
    check_header_once,
    check_header_size,
    check_kid,
    check_signature,
    check_typ,
)
from papaver.protocol.session_jwt import CLAIMS, Expected, SessionClaims, SessionJwt, expect
from papaver.protocol.terms import AccountId, AgentId, ClientId, SessionId, UserId
from papaver.values.base64url import encode
from papaver.values.rules import rule
from papaver.web.messages import Headers

__all__ = [
    "AccountAccess",
    "BoundSession",
    "Check",
    "DelegationCache",
    "Expected",
    "ProvenSession",
    "SessionClaims",
    "SessionJwt",
    "SessionProfile",
    "StoredSession",
    "VerifiedSession",
    "ath",
    "bind",
    "check_ath",
    "check_header_once",
    "check_not_ended",
    "expect",
    "open_session",
]


@dataclass(frozen=True, slots=True)
class ProvenSession:
    """A Session JWT whose delegation, signature and claims hold. Not yet compared with token and store."""

    claims: SessionClaims
    delegation: Delegation

    @property
    def client_id(self) -> ClientId:
        return ClientId(self.claims.iss)

    @property
    def sid(self) -> SessionId:
        return SessionId(self.claims.sid)

    @property
    def user_id(self) -> UserId:
        return UserId(self.claims.sub)

    @property
    def agent_id(self) -> AgentId | None:
        return None if isinstance(self.claims.agent_id, UnsetType) else AgentId(self.claims.agent_id)

    @property
    def ath(self) -> str | None:
        return None if isinstance(self.claims.ath, UnsetType) else self.claims.ath

    @property
    def jti(self) -> str:
        return self.claims.jti

    @property
    def iat(self) -> int:
        return self.claims.iat


@dataclass(frozen=True, slots=True)
class AccountAccess:
    """What a verified access token says. `ath` is its hash as `ath()` makes it; the token itself goes no further.

    `expires_at`  Unix seconds; None where the issuer does not say
    `audience`    as issued      `jkt`  of the DPoP key that it is bound to
    """

    ath: str
    client_id: str
    account_id: AccountId
    scopes: frozenset[str]
    expires_at: float | None = None
    audience: tuple[str, ...] = ()
    jkt: str | None = None


@dataclass(frozen=True, slots=True)
class BoundSession:
    """A proven Session JWT and an access token that belongs to it, or none."""

    proven: ProvenSession
    access: AccountAccess | None


class StoredSession(Protocol):
    """What a store remembers of a Session (5.3 step 4). `ended_at` is None while it lives."""

    @property
    def user_id(self) -> UserId: ...
    @property
    def agent_id(self) -> AgentId | None: ...
    @property
    def ended_at(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class VerifiedSession:
    """A Session that may be relied on: each check of 5.3 passed for this request.

    `account_id`, `scopes`  of the request's access token; None and empty when signed out
    `access`                the access token's whole story; None when signed out
    `version`               the protocol version of the request          `extensions`  declared name → version
    `jti`, `iat`            of the Session JWT, for replay rejection
    """

    client_id: ClientId
    sid: SessionId
    user_id: UserId
    agent_id: AgentId | None
    account_id: AccountId | None
    scopes: frozenset[str]
    version: str
    extensions: Mapping[str, str]
    jti: str
    iat: int
    access: AccountAccess | None = None


# ── what a version supplies ───────────────────────────────────────────────────────────────────────────────────────

Check = Callable[[SessionClaims, Expected], None]


@dataclass(frozen=True, slots=True)
class SessionProfile:
    """The Session header of one protocol version.

    `header`             the field's name                    `typ`, `alg`  of the Session JWT
    `delegation_member`  where its header carries the delegation
    `delegation`         what is said about delegations      `checks`  of the claims, in the version's order
    `max_bytes`          of the field's value
    """

    header: str
    typ: str
    delegation_member: str
    delegation: DelegationProfile
    checks: tuple[Check, ...]
    alg: Alg = "ES256"
    max_bytes: int = 8192

    def read(self, headers: Headers) -> SessionJwt:
        """The request's Session JWT, not believed. Raises InvalidSession (readings 5: missing or there twice)."""
        values = headers.all(self.header)
        check_header_once(values)
        return self.read_value(values[0])

    def read_value(self, value: str) -> SessionJwt:
        """As `read`, for the one field value."""
        check_header_size(value, self.max_bytes)
        try:
            compact = jws.read_compact(value.encode("ascii"))
            return SessionJwt(CLAIMS.read(compact.payload), compact)
        except UnicodeEncodeError:
            raise InvalidSession("the Session JWT is malformed", rule="jws.compact-form", detail="not ASCII") from None
        except (jws.JwsError, ClaimsError) as error:
            raise _malformed(error) from None

    def verify(
        self, jwt: SessionJwt, keys: KeySet, expected: Expected, cache: DelegationCache | None = None
    ) -> ProvenSession:
        """Believe a Session JWT (5.3, step 2): delegation, signature, `typ`, then each check of the version.

        `keys` is the key set of the client that `jwt.iss` names. A header whose delegation is in `cache` was checked
        before, octet for octet; what can change since then is checked each time. Raises InvalidSession.
        """
        claims, segment = jwt.claims, jwt.compact.header_segment
        known = None if cache is None else cache.find(segment, keys)
        if known is not None:
            check_iss(known.client_id, claims.iss)
            check_not_expired(known.exp, expected.now)
            check_signature(jwt, known.key)
            delegation = known
        else:
            delegation = self._verify_header(jwt, keys, expected.now)
        for check in self.checks:
            check(claims, expected)
        if known is None and cache is not None:
            cache.insert(segment, delegation, keys)
        return ProvenSession(claims, delegation)

    def _verify_header(self, jwt: SessionJwt, keys: KeySet, now: float) -> Delegation:
        try:
            header = jws.read_header(jwt.compact.header_segment)
        except jws.JwsError as error:
            raise _malformed(error) from None
        check_alg(header, self.alg)
        check_carries_delegation(header, self.delegation_member)
        delegation = verify_delegation(str(header[self.delegation_member]), self.delegation, jwt.iss, keys, now)
        check_signature(jwt, delegation.key)
        check_kid(header, delegation.key)
        check_typ(header, self.typ)
        return delegation


def _malformed(error: jws.JwsError | ClaimsError) -> InvalidSession:
    return InvalidSession(f"the Session JWT is malformed: {error.description}", rule=error.rule, detail=error.detail)


# ── token and store ───────────────────────────────────────────────────────────────────────────────────────────────


def ath(access_token: str) -> str:
    """The hash that ties a Session JWT to an access token: base64url of its SHA-256 (5.2; RFC 9449 4.2)."""
    return encode(hashlib.sha256(access_token.encode("utf-8", "surrogatepass")).digest())


@rule("session.ath-absent-without-token")
def check_ath_absent(proven: ProvenSession) -> None:
    """Without an access token there is no `ath` (5.3, step 3)."""
    if proven.ath is not None:
        raise mismatch(
            "session.ath-absent-without-token",
            "the Session JWT has an ath, but the request has no access token",
            expected=None,
            got=proven.ath,
        )


@rule("session.ath-matches-token")
def check_ath_matches(proven: ProvenSession, token_ath: str) -> None:
    """`ath` is the hash of this request's access token (5.3, step 3)."""
    if proven.ath != token_ath:
        raise mismatch(
            "session.ath-matches-token",
            "the Session JWT's ath is not the access token's hash",
            expected=token_ath,
            got=proven.ath,
        )


@rule("session.token-client-is-iss")
def check_token_client(proven: ProvenSession, client_id: str) -> None:
    """The access token was issued to the client that signed the Session JWT (5.3, step 3)."""
    if client_id != proven.client_id:
        raise mismatch(
            "session.token-client-is-iss",
            "the access token was issued to another client",
            expected=proven.client_id,
            got=client_id,
        )


def check_ath(proven: ProvenSession, access_token: str | None) -> None:
    """Both directions of `ath`, before the token itself is looked at. Raises InvalidSession (readings 6)."""
    if access_token is None:
        check_ath_absent(proven)
    else:
        check_ath_matches(proven, ath(access_token))


def bind(proven: ProvenSession, access: AccountAccess | None) -> BoundSession:
    """Join a proven Session JWT and the request's verified access token (5.3, step 3). Raises InvalidSession."""
    if access is None:
        check_ath_absent(proven)
    else:
        check_ath_matches(proven, access.ath)
        check_token_client(proven, access.client_id)
    return BoundSession(proven, access)


@rule("session.same-user-and-agent")
def check_same_user_and_agent(proven: ProvenSession, stored: StoredSession) -> None:
    """A known `sid` stays with the User ID and Agent ID that it began with (5.3, step 4)."""
    expected, got = (stored.user_id, stored.agent_id), (proven.user_id, proven.agent_id)
    if expected != got:
        raise mismatch(
            "session.same-user-and-agent",
            "the Session belongs to another User ID or Agent ID",
            expected=expected,
            got=got,
        )


@rule("session.not-ended")
def check_not_ended(stored: StoredSession) -> None:
    """An ended Session that is remembered does not start again (5.3, step 4; 5.5)."""
    if stored.ended_at is not None:
        raise SessionEnded(rule="session.not-ended", detail=f"ended at {stored.ended_at:.0f}")


def open_session(
    bound: BoundSession, stored: StoredSession | None, *, version: str, extensions: Mapping[str, str]
) -> VerifiedSession:
    """Continue the stored Session of this `client_id` and `sid`, or begin one (5.3, step 4; readings 5).

    Raises InvalidSession for another owner, then SessionEnded.
    """
    proven, access = bound.proven, bound.access
    if stored is not None:
        check_same_user_and_agent(proven, stored)
        check_not_ended(stored)
    return VerifiedSession(
        client_id=proven.client_id,
        sid=proven.sid,
        user_id=proven.user_id,
        agent_id=proven.agent_id,
        account_id=None if access is None else access.account_id,
        scopes=frozenset() if access is None else access.scopes,
        version=version,
        extensions=extensions,
        jti=proven.jti,
        iat=proven.iat,
        access=access,
    )

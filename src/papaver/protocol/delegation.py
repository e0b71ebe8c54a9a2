"""Delegations (5.2): a key in `jwks_uri` vouches for a delegated key. Issued, verified, then remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from papaver.jose import jws
from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.keys import PRIVATE_MEMBERS, Alg, BadSignature, KeyRefused, KeySet, PrivateKey, PublicKey
from papaver.protocol.errors import InvalidSession
from papaver.protocol.mismatch import mismatch
from papaver.protocol.terms import ClientId
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.strict_json import dumps

__all__ = [
    "CHECKS",
    "Delegation",
    "DelegationCache",
    "DelegationClaims",
    "DelegationExpired",
    "DelegationProfile",
    "ReceivedDelegation",
    "issue_delegation",
    "read_delegation",
    "verify_delegation",
]

LIFETIME: Final = 86_400
"""`exp` is at most this many seconds after `iat` (5.2)."""
LEEWAY: Final = 5
"""A delegation still counts this many seconds after `exp` (readings 17)."""


class DelegationExpired(PapaverError):
    """Our own delegated key must not sign any more (5.2); the remedy is a new key with a new delegation."""

    code = "delegation_expired"
    description = "the delegation of this key has expired; issue a new delegated key"


class Confirmation(msgspec.Struct, frozen=True):
    """RFC 7800 3.2."""

    jwk: dict[str, object]


class DelegationClaims(msgspec.Struct, frozen=True):
    """A delegation's payload. `iat` and `exp` in Unix seconds; 0 and `` stand for absent ones."""

    cnf: Confirmation
    iss: str = ""
    iat: int = 0
    exp: int = 0
    jti: str = ""


class ReceivedDelegation(NamedTuple):
    """A delegation taken apart, not believed."""

    compact: jws.CompactJws
    header: dict[str, object]
    claims: DelegationClaims


class Expected(NamedTuple):
    """What a delegation is checked against: the Session JWT's `iss`, that client's keys, and `now` in Unix seconds."""

    profile: DelegationProfile
    client_id: str
    keys: KeySet
    now: float


Check = Callable[[ReceivedDelegation, Expected], None]


@dataclass(frozen=True, slots=True)
class Delegation:
    """A verified delegation. `key` signs Session JWTs, `signer` is the `jwks_uri` key that vouches for it."""

    client_id: ClientId
    key: PublicKey
    signer: PublicKey
    iat: int
    exp: int
    jti: str


@rule("delegation.alg")
def check_alg(delegation: ReceivedDelegation, expected: Expected) -> None:
    """ES256 or PS384 (5.2)."""
    alg = delegation.header.get("alg")
    if alg not in expected.profile.algs:
        raise mismatch(
            "delegation.alg", "the delegation's alg is not one of 5.2", expected=expected.profile.algs, got=alg
        )


@rule("delegation.signed-by-jwks-key")
def check_signature(delegation: ReceivedDelegation, expected: Expected) -> None:
    """The key of the client's key set that `kid` names made the signature (5.2, step 1)."""
    kid, alg = delegation.header.get("kid"), delegation.header.get("alg")
    key = expected.keys.find(kid) if isinstance(kid, str) else None
    if key is None:
        raise mismatch(
            "delegation.signed-by-jwks-key",
            "the delegation's kid names no usable key in the client's jwks_uri",
            expected=sorted(expected.keys.keys),
            got=kid,
        )
    if key.alg != alg:
        raise mismatch(
            "delegation.signed-by-jwks-key",
            "the delegation's alg is not that of the key it names",
            expected=key.alg,
            got=alg,
        )
    try:
        key.verify(delegation.compact.signature, delegation.compact.signing_input)
    except BadSignature as error:
        raise InvalidSession(
            "the delegation's signature does not verify",
            rule="delegation.signed-by-jwks-key",
            detail=f"kid {kid!r:.200} {error.detail}",
        ) from None


@rule("delegation.typ")
def check_typ(delegation: ReceivedDelegation, expected: Expected) -> None:
    """Exactly the typ of a delegation, so that it is no other JWT (5.2; readings 16)."""
    typ, wanted = delegation.header.get("typ"), expected.profile.typ
    if typ != wanted:
        raise mismatch("delegation.typ", f"the delegation's typ is not {wanted}", expected=wanted, got=typ)


@rule("delegation.iss-is-session-iss")
def check_iss(client_id: str, session_iss: str) -> None:
    """A client vouches for its own keys only (5.2, step 2). Repeated on every use of a remembered delegation."""
    if client_id != session_iss:
        raise mismatch(
            "delegation.iss-is-session-iss",
            "the delegation's iss is not the Session JWT's",
            expected=session_iss,
            got=client_id,
        )


@rule("delegation.not-expired")
def check_not_expired(exp: int, now: float) -> None:
    """Not after `exp`, but for five seconds (5.2, step 2; readings 17). Repeated on every use, too."""
    if now >= exp + LEEWAY:
        raise mismatch(
            "delegation.not-expired", "the delegation has expired", expected=f"exp after {now - LEEWAY:.0f}", got=exp
        )


@rule("delegation.lifetime")
def check_lifetime(delegation: ReceivedDelegation, expected: Expected) -> None:
    """At most 24 hours from `iat` to `exp` (5.2, step 2)."""
    claims, limit = delegation.claims, expected.profile.lifetime
    if claims.exp - claims.iat > limit:
        raise mismatch(
            "delegation.lifetime",
            "the delegation is made for more than 24 hours",
            expected=f"at most {limit} s",
            got=f"{claims.exp} - {claims.iat} s",
        )


@rule("delegation.exp-after-iat")
def check_times_in_order(delegation: ReceivedDelegation, expected: Expected) -> None:
    """Both times are there and in order (5.2; readings 17)."""
    claims = delegation.claims
    if not 0 < claims.iat < claims.exp:
        raise mismatch(
            "delegation.exp-after-iat",
            "the delegation needs an iat and a later exp",
            expected="0 < iat < exp",
            got=f"iat {claims.iat}, exp {claims.exp}",
        )


@rule("delegation.iat-not-future")
def check_iat_not_future(delegation: ReceivedDelegation, expected: Expected) -> None:
    """A delegation dated ahead would outlive its 24 hours (readings 17)."""
    if delegation.claims.iat > expected.now + expected.profile.skew:
        raise mismatch(
            "delegation.iat-not-future",
            "the delegation's iat is in the future",
            expected=f"at most {expected.now + expected.profile.skew:.0f}",
            got=delegation.claims.iat,
        )


@rule("delegation.jti")
def check_jti(delegation: ReceivedDelegation, expected: Expected) -> None:
    """Its id is there and bounded (5.2; readings 47)."""
    if not 1 <= len(delegation.claims.jti) <= 256:
        raise mismatch(
            "delegation.jti",
            "the delegation needs a jti of 1 to 256 characters",
            expected="1 to 256",
            got=len(delegation.claims.jti),
        )


@rule("delegation.no-private-members")
def check_no_private_members(delegation: ReceivedDelegation, expected: Expected) -> None:
    """A leaked private key fails loudly (5.2; readings 48). The value itself is in no error."""
    held = PRIVATE_MEMBERS.intersection(delegation.claims.cnf.jwk)
    if held:
        raise mismatch(
            "delegation.no-private-members",
            "the delegation's cnf.jwk has private members",
            expected=[],
            got=sorted(held),
        )


def check_iss_claim(delegation: ReceivedDelegation, expected: Expected) -> None:
    check_iss(delegation.claims.iss, expected.client_id)


def check_exp_claim(delegation: ReceivedDelegation, expected: Expected) -> None:
    check_not_expired(delegation.claims.exp, expected.now)


CHECKS: Final[tuple[Check, ...]] = (
    check_alg,
    check_signature,
    check_typ,
    check_iss_claim,
    check_exp_claim,
    check_lifetime,
    check_times_in_order,
    check_iat_not_future,
    check_jti,
    check_no_private_members,
)
"""In the order of 5.2; the delegated key is not looked at before all of them passed."""


@dataclass(frozen=True, slots=True)
class DelegationProfile:
    """What a version says about delegations. Times in seconds.

    `lifetime`  from `iat` to `exp` at most          `skew`  how far ahead `iat` may be
    """

    typ: str
    algs: tuple[Alg, ...] = ("ES256", "PS384")
    lifetime: int = LIFETIME
    skew: int = 60
    checks: tuple[Check, ...] = CHECKS


_CLAIMS: Final = ClaimsReader(DelegationClaims)


def read_delegation(token: str) -> ReceivedDelegation:
    """A compact delegation taken apart. Raises InvalidSession with the rule of the layer that refused it."""
    try:
        compact = jws.read_compact(token.encode("ascii"))
        return ReceivedDelegation(compact, jws.read_header(compact.header_segment), _CLAIMS.read(compact.payload))
    except UnicodeEncodeError:
        raise InvalidSession("the delegation is malformed", rule="delegation.form", detail="not ASCII") from None
    except (jws.JwsError, ClaimsError) as error:
        raise InvalidSession(
            f"the delegation is malformed: {error.description}", rule=error.rule, detail=error.detail
        ) from None


def verify_delegation(token: str, profile: DelegationProfile, client_id: str, keys: KeySet, now: float) -> Delegation:
    """Believe a delegation: `client_id` is the Session JWT's `iss`, `keys` that client's key set (5.2, steps 1 and 2).

    Raises InvalidSession.
    """
    received = read_delegation(token)
    expected = Expected(profile, client_id, keys, now)
    for check in profile.checks:
        check(received, expected)
    claims = received.claims
    try:
        key = PublicKey.read({name: value for name, value in claims.cnf.jwk.items() if name not in PRIVATE_MEMBERS})
    except KeyRefused as error:
        raise InvalidSession(
            f"the delegated key in cnf.jwk is refused: {error.description}", rule="delegation.key", detail=error.detail
        ) from None
    if key.alg != "ES256":
        raise mismatch("delegation.key", "the delegated key in cnf.jwk is not for ES256", expected="ES256", got=key.alg)
    signer = keys.keys[str(received.header["kid"])]
    return Delegation(ClientId(claims.iss), key, signer, claims.iat, claims.exp, claims.jti)


def issue_delegation(
    signer: PrivateKey,
    profile: DelegationProfile,
    *,
    client_id: str,
    delegated: PublicKey,
    iat: int,
    exp: int,
    jti: str,
) -> str:
    """A compact delegation for `delegated`, signed by a key of our `jwks_uri`.

    It names nothing but the client, the key and its times (5.2); `jti` must be unique and unguessable. ValueError for
    times that no Company would accept.
    """
    if not 0 < exp - iat <= profile.lifetime:
        raise ValueError(f"a delegation lasts at most {profile.lifetime} s, got {exp - iat}")
    if delegated.alg != "ES256":
        raise ValueError("a delegated key signs ES256")
    claims = {"iss": client_id, "cnf": {"jwk": delegated.jwk()}, "iat": iat, "exp": exp, "jti": jti}
    return jws.sign(dumps(claims), signer, typ=profile.typ, alg=signer.alg, kid=signer.kid)


@dataclass(slots=True)
class _Entry:
    delegation: Delegation
    generation: object


@dataclass(slots=True)
class DelegationCache:
    """Delegations already verified, by the encoded header of the Session JWT that carried them (5.2, 10.7).

    That header is the same in every Session JWT of one delegated key, and holds the delegation, `typ`, `alg` and
    `kid`; so one look-up by its octets stands for all checks of it. An entry holds on to the `jwks_uri` key that signed
    the delegation: once the client's key set lacks that key, the entry is void (readings 14). Bounded in all and per
    client, because a client can make as many delegations as it likes; the oldest go first.
    """

    total: int = 10_000
    per_client: int = 1_000
    _entries: dict[bytes, _Entry] = field(default_factory=dict[bytes, _Entry])
    _clients: dict[str, dict[bytes, None]] = field(default_factory=dict[str, dict[bytes, None]])

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, header_segment: bytes, keys: KeySet) -> Delegation | None:
        """The delegation verified for this header, if the key that signed it is still in `keys`."""
        entry = self._entries.get(header_segment)
        if entry is None:
            return None
        if entry.generation is not keys.generation:
            signer = entry.delegation.signer
            if keys.find(signer.kid) != signer:
                self._drop(header_segment, entry.delegation.client_id)
                return None
            entry.generation = keys.generation
        return entry.delegation

    def insert(self, header_segment: bytes, delegation: Delegation, keys: KeySet) -> None:
        """Remember a header whose every check passed, the Session JWT's signature included."""
        client = delegation.client_id
        mine = self._clients.setdefault(client, {})
        if header_segment not in self._entries:
            if len(mine) >= self.per_client:
                self._drop(next(iter(mine)), client)
            elif len(self._entries) >= self.total:
                # Full: whoever holds more than an equal share gives way first, so that one client starves no other.
                if len(mine) * len(self._clients) > self.total:
                    self._drop(next(iter(mine)), client)
                else:
                    oldest, entry = next(iter(self._entries.items()))
                    self._drop(oldest, entry.delegation.client_id)
            mine = self._clients.setdefault(client, {})
        self._entries[header_segment] = _Entry(delegation, keys.generation)
        mine[header_segment] = None

    def _drop(self, header_segment: bytes, client_id: str) -> None:
        del self._entries[header_segment]
        mine = self._clients[client_id]
        del mine[header_segment]
        if not mine:
            del self._clients[client_id]

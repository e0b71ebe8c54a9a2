"""The checks of a Session JWT (5.2, 5.3 step 2), one function per clause: of the field, its header, its claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from papaver.jose.keys import BadSignature, PublicKey
from papaver.protocol.errors import InvalidSession
from papaver.protocol.mismatch import mismatch
from papaver.protocol.session_jwt import Expected, SessionClaims, SessionJwt
from papaver.values.rules import rule
from papaver.web.urls import UrlError, htu

__all__ = [
    "check_alg",
    "check_aud",
    "check_carries_delegation",
    "check_claims_present",
    "check_header_once",
    "check_header_size",
    "check_htm",
    "check_htu",
    "check_iat",
    "check_ids_bounded",
    "check_kid",
    "check_sid",
    "check_signature",
    "check_typ",
]

_REQUIRED: Final = ("iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti")
_MAX_ID: Final = 256
_SID: Final = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII).fullmatch


@rule("session.header-once")
def check_header_once(values: tuple[str, ...]) -> None:
    """A Session header has to be there (5.3), and once, or two readers could take two Sessions from it."""
    if len(values) != 1:
        raise InvalidSession(
            "the Session header is missing" if not values else "the Session header is there more than once",
            rule="session.header-once",
            detail=f"expected 1 field, got {len(values)}",
        )


@rule("session.header-size")
def check_header_size(value: str, limit: int) -> None:
    """Bounded before anything is parsed."""
    if len(value) > limit:
        raise mismatch(
            "session.header-size", "the Session header is too long", expected=f"at most {limit}", got=len(value)
        )


@rule("session.alg")
def check_alg(header: Mapping[str, object], alg: str) -> None:
    """One algorithm, so that everyone understands everyone (5.2)."""
    if header.get("alg") != alg:
        raise mismatch("session.alg", f"the Session JWT's alg is not {alg}", expected=alg, got=header.get("alg"))


@rule("session.carries-delegation")
def check_carries_delegation(header: Mapping[str, object], member: str) -> None:
    """No Session JWT without a delegation, not even one that a `jwks_uri` key signed (5.2)."""
    if not isinstance(header.get(member), str):
        raise mismatch(
            "session.carries-delegation",
            f"the Session JWT's header has no {member}",
            expected="a string",
            got=header.get(member),
        )


@rule("session.signed-by-delegated-key")
def check_signature(jwt: SessionJwt, key: PublicKey) -> None:
    """The key in `cnf.jwk` made the signature (5.2, step 3)."""
    try:
        key.verify(jwt.compact.signature, jwt.compact.signing_input)
    except BadSignature as error:
        raise InvalidSession(
            "the Session JWT's signature does not verify with the delegated key",
            rule="session.signed-by-delegated-key",
            detail=f"key {key.thumbprint} {error.detail}",
        ) from None


@rule("session.kid-is-thumbprint")
def check_kid(header: Mapping[str, object], key: PublicKey) -> None:
    """`kid` is the delegated key's RFC 7638 thumbprint (5.2, step 3)."""
    if header.get("kid") != key.thumbprint:
        raise mismatch(
            "session.kid-is-thumbprint",
            "the Session JWT's kid is not the delegated key's thumbprint",
            expected=key.thumbprint,
            got=header.get("kid"),
        )


@rule("session.typ")
def check_typ(header: Mapping[str, object], typ: str) -> None:
    """Exactly the typ of a Session JWT, so that it is no other JWT (5.2)."""
    if header.get("typ") != typ:
        raise mismatch("session.typ", f"the Session JWT's typ is not {typ}", expected=typ, got=header.get("typ"))


@rule("session.claims-present")
def check_claims_present(claims: SessionClaims, expected: Expected) -> None:
    """Every claim but `agent_id` and `ath` is there and not empty (5.2)."""
    if not (
        claims.iss
        and claims.aud
        and claims.sid
        and claims.sub
        and claims.htm
        and claims.htu
        and claims.iat
        and claims.jti
    ):
        missing = [name for name in _REQUIRED if not getattr(claims, name)]
        raise InvalidSession(
            f"the Session JWT lacks {', '.join(missing)}",
            rule="session.claims-present",
            detail=f"expected all of {_REQUIRED}, without {missing}",
        )


@rule("session.sid-form")
def check_sid(claims: SessionClaims, expected: Expected) -> None:
    """`sid` has the characters and length of a Conversation ID (5.2, 8.2; readings 47)."""
    if _SID(claims.sid) is None:
        raise mismatch(
            "session.sid-form",
            "the Session JWT's sid is not 1 to 256 characters of A-Z a-z 0-9 - _",
            expected="[A-Za-z0-9_-]{1,256}",
            got=claims.sid,
        )


@rule("session.ids-bounded")
def check_ids_bounded(claims: SessionClaims, expected: Expected) -> None:
    """`sub`, `jti` and `agent_id` have at most 256 characters, and a given `agent_id` at least one (readings 47)."""
    agent_id = claims.agent_id
    if (
        len(claims.sub) > _MAX_ID
        or len(claims.jti) > _MAX_ID
        or (isinstance(agent_id, str) and not 0 < len(agent_id) <= _MAX_ID)
    ):
        lengths = len(claims.sub), len(claims.jti), None if not isinstance(agent_id, str) else len(agent_id)
        raise mismatch(
            "session.ids-bounded",
            "the Session JWT's sub, jti or agent_id is not 1 to 256 characters long",
            expected=f"1 to {_MAX_ID}",
            got=lengths,
        )


@rule("session.aud-is-company")
def check_aud(claims: SessionClaims, expected: Expected) -> None:
    """`aud` is the Company's identifier, character for character, one string (5.3, step 2; 10.4)."""
    if claims.aud != expected.company_id:
        raise mismatch(
            "session.aud-is-company",
            "the Session JWT's aud is not this Company's identifier",
            expected=expected.company_id,
            got=claims.aud,
        )


@rule("session.htm-is-method")
def check_htm(claims: SessionClaims, expected: Expected) -> None:
    """`htm` is the request's method; methods have a letter case (5.3, step 2; RFC 9449 4.3)."""
    if claims.htm != expected.method:
        raise mismatch(
            "session.htm-is-method",
            "the Session JWT's htm is not the request's method",
            expected=expected.method,
            got=claims.htm,
        )


@rule("session.htu-is-url")
def check_htu(claims: SessionClaims, expected: Expected) -> None:
    """`htu` is the request's URL without query and fragment, both normalised alike (5.3, step 2; readings 28)."""
    if claims.htu != expected.url and _normal(claims.htu) != expected.url:
        raise mismatch(
            "session.htu-is-url",
            "the Session JWT's htu is not the request's URL",
            expected=expected.url,
            got=claims.htu,
        )


@rule("session.iat-in-window")
def check_iat(claims: SessionClaims, expected: Expected) -> None:
    """Signed just now, by clocks that may differ a little either way (5.3, step 2; readings 18)."""
    now, window = expected.now, expected.iat_window
    if not now - window <= claims.iat <= now + window:
        raise mismatch(
            "session.iat-in-window",
            "the Session JWT's iat is too far from now; sign each request afresh",
            expected=f"{now:.0f} ± {window} s",
            got=claims.iat,
        )


def _normal(url: str) -> str | None:
    try:
        return htu(url)
    except UrlError:
        return None

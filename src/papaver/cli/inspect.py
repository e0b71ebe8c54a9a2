"""`papaver inspect`: what a JWT says, what can be told without asking anybody, and what was not verified."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import click

from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.jose.jws import CompactJws, JwsError, read_compact, read_header
from papaver.jose.keys import PRIVATE_MEMBERS, BadSignature, KeyRefused, PublicKey, thumbprint
from papaver.protocol.session import SessionProfile
from papaver.values.strict_json import JsonError, loads_object
from papaver.versions import DIALECTS

__all__ = ["inspect"]

DPOP = "dpop+jwt"
ASSERTION_TYPES = frozenset({"JWT", "client-authentication+jwt"})
"""A client assertion has one of these or, told by its claims, none (RFC 7523; 4.1)."""
ASSERTION_MOST = 300
"""Seconds that a Company takes an assertion for at most, whatever its `exp` says."""
NEVER = (
    "whether it was seen before: a JWT that was sent once is refused the second time",
    "whether the Company accepts this client, and knows the Session and the User ID as this client's",
)


@dataclass
class Report:
    """What was found out about one JWT."""

    kind: str
    header: Mapping[str, object]
    claims: Mapping[str, object]
    verified: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    not_verified: list[str] = field(default_factory=list[str])
    delegation: Report | None = None


@command("inspect", network=False, example="papaver inspect - < session.jwt")
@click.argument("jwt")
def inspect(run: Run, jwt: str) -> None:
    """Decode a Session JWT, a delegation, a client assertion or a DPoP proof, and say what was not verified.

    Nobody is asked, so no key set is fetched. JWT may be - for stdin, which keeps it out of the shell's history.
    Signatures are never printed, so the output cannot be replayed. --trace hides every JWT: take one from where it is
    received, such as the Poppy-Session header in a handler of your own server, or from a test.
    """
    if jwt == "-" and sys.stdin.isatty():
        run.note("paste the JWT, then Enter and Ctrl-D")
    token = sys.stdin.read() if jwt == "-" else jwt
    if jwt != "-" and os.path.isfile(jwt):
        raise CliError(
            f"{jwt} is a file, and JWT is the token itself",
            code="usage",
            rule="inspect.token",
            next=f"papaver inspect - < {shlex.quote(jwt)}",
        )
    report = _examine(token.strip(), time.time())
    run.line(**_as_json(report))
    if not run.json:
        for line in _as_text(report):
            click.echo(line)


def _examine(token: str, now: float) -> Report:
    try:
        compact = read_compact(token.encode("ascii"))
        header = read_header(compact.header_segment)
        claims = loads_object(compact.payload)
    except (JwsError, JsonError, UnicodeEncodeError) as error:
        raise CliError(
            f"this is no JWT: {getattr(error, 'detail', '') or getattr(error, 'description', 'not ASCII')}",
            code="invalid_jws",
            rule=getattr(error, "rule", ""),
            next="give three parts, separated by dots, as they were sent",
        ) from None
    typ = str(header.get("typ", ""))
    for version, dialect in DIALECTS.items():
        if typ == dialect.session.typ:
            return _session(f"a Session JWT, version {version} (5.2)", dialect.session, compact, header, claims, now)
        if typ == dialect.session.delegation.typ:
            return _delegation(f"a delegation, version {version} (5.2)", dialect.session, header, claims, now)
    if typ == DPOP:
        return _proof(compact, header, claims, now)
    same = "iss" in claims and claims.get("iss") == claims.get("sub")
    if typ in ASSERTION_TYPES or (not typ and same):
        return _assertion(header, claims, same, now)
    kind = f"a JWT of a typ that this protocol does not know: {typ or 'none'}"
    report = Report(kind, _without_private(header), claims)
    report.not_verified.append("the signature: whose it is, nobody can tell from the JWT alone")
    _times(report, now)
    return report


def _proof(compact: CompactJws, header: Mapping[str, object], claims: Mapping[str, object], now: float) -> Report:
    """It brings its own key, which says nothing about whose it is."""
    report = Report("a DPoP proof (RFC 9449)", _without_private(header), claims)
    _own_signature(report, compact, header.get("jwk"), "the key in its header")
    _window(report, claims.get("iat"), now)
    report.not_verified += [
        "htm and htu against a request, and ath against an access token",
        "that a token is bound to this key (cnf.jkt)",
        "the nonce, and whether jti was seen before",
    ]
    return report


def _assertion(header: Mapping[str, object], claims: Mapping[str, object], same: bool, now: float) -> Report:
    """What 4.1 asks of it, as far as it can be seen in the assertion itself."""
    report = Report("a client assertion (RFC 7523, 4.1)", _without_private(header), claims)
    _note(report, same, "iss and sub are one client_id")
    audience = claims.get("aud")
    _note(report, isinstance(audience, str), "aud is one string, not a list")
    _note(report, isinstance(claims.get("jti"), str), "it has a jti, so it is used once")
    issued, ends = claims.get("iat"), claims.get("exp")
    if isinstance(issued, int) and isinstance(ends, int):
        _note(report, 0 < ends - issued <= ASSERTION_MOST, f"made for {ends - issued} s, at most {ASSERTION_MOST}")
    _times(report, now)
    report.not_verified += [
        "the signature: the key set at the client's jwks_uri was not fetched",
        "that aud is the Company's issuer, character for character",
        "whether jti was seen before, and whether the Company accepts this client",
    ]
    return report


def _session(
    kind: str,
    profile: SessionProfile,
    compact: CompactJws,
    header: Mapping[str, object],
    claims: Mapping[str, object],
    now: float,
) -> Report:
    """The delegation that it carries names the key, so its own signature can be verified here; who vouches cannot."""
    shown = {name: value for name, value in header.items() if name != profile.delegation_member}
    report = Report(kind, shown, claims)
    carried = header.get(profile.delegation_member)
    if isinstance(carried, str):
        report.delegation = _examine(carried, now)
        cnf = report.delegation.claims.get("cnf")
        jwk = cast("Mapping[str, object]", cnf).get("jwk") if isinstance(cnf, Mapping) else None
        key = _own_signature(report, compact, jwk, "the key of its delegation")
        if key is not None:
            _note(report, header.get("kid") == thumbprint(key.jwk()), "kid is that key's thumbprint")
        same = report.delegation.claims.get("iss") == claims.get("iss")
        _note(report, same, "iss is the delegation's iss")
    else:
        report.failed.append(f"{profile.delegation_member} is missing, so no key can have signed it")
    _window(report, claims.get("iat"), now)
    report.not_verified += [
        "that a key of the client's jwks_uri signed the delegation: nothing was fetched",
        "aud, htm and htu against a Company and a request; ath against an access token",
        *NEVER,
    ]
    return report


def _delegation(
    kind: str, profile: SessionProfile, header: Mapping[str, object], claims: Mapping[str, object], now: float
) -> Report:
    cnf = claims.get("cnf")
    jwk = cast("Mapping[str, object]", cnf).get("jwk") if isinstance(cnf, Mapping) else None
    has_private = isinstance(jwk, Mapping) and bool(PRIVATE_MEMBERS & cast("Mapping[str, object]", jwk).keys())
    report = Report(kind, header, _hidden(claims))
    _note(report, isinstance(jwk, Mapping) and not has_private, "cnf.jwk is a public key alone")
    issued, ends = claims.get("iat"), claims.get("exp")
    if isinstance(issued, int) and isinstance(ends, int):
        limit = profile.delegation.lifetime
        _note(report, 0 < ends - issued <= limit, f"made for {ends - issued} s, at most {limit}")
    _times(report, now)
    report.not_verified.append("its signature: the key set at the client's jwks_uri was not fetched")
    return report


def _own_signature(report: Report, compact: CompactJws, jwk: object, whose: str) -> PublicKey | None:
    try:
        key = PublicKey.read(jwk)
        key.verify(compact.signature, compact.signing_input)
    except KeyRefused as error:
        report.failed.append(f"{whose} cannot be used: {error.description}")
        return None
    except BadSignature:
        report.failed.append(f"the signature is not by {whose}")
        return None
    report.verified.append(f"the signature is by {whose}")
    return key


def _note(report: Report, good: bool, what: str) -> None:
    (report.verified if good else report.failed).append(what)


def _times(report: Report, now: float) -> None:
    ends = report.claims.get("exp")
    if isinstance(ends, int):
        _note(report, now < ends, f"exp is {_time(ends)}")


def _window(report: Report, iat: object, now: float) -> None:
    if isinstance(iat, int):
        _note(report, abs(now - iat) <= 60, f"iat is {_time(iat)}, {now - iat:.0f} s ago, within 60")


def _hidden(claims: Mapping[str, object]) -> Mapping[str, object]:
    """The claims without the private members of a key that should not be there."""
    cnf = claims.get("cnf")
    jwk = cast("Mapping[str, object]", cnf).get("jwk") if isinstance(cnf, Mapping) else None
    if not isinstance(jwk, Mapping):
        return claims
    members = cast("Mapping[str, object]", jwk)
    public = {name: value if name not in PRIVATE_MEMBERS else "**********" for name, value in members.items()}
    return {**claims, "cnf": {**cast("Mapping[str, object]", cnf), "jwk": public}}


def _without_private(header: Mapping[str, object]) -> Mapping[str, object]:
    """The header without the private members of a key that should not be there."""
    jwk = header.get("jwk")
    if not isinstance(jwk, Mapping):
        return header
    members = cast("Mapping[str, object]", jwk)
    return {
        **header,
        "jwk": {name: value if name not in PRIVATE_MEMBERS else "**********" for name, value in members.items()},
    }


def _as_json(report: Report) -> dict[str, object]:
    told: dict[str, object] = {
        "kind": report.kind,
        "header": report.header,
        "claims": report.claims,
        "verified": report.verified,
        "failed": report.failed,
        "not_verified": report.not_verified,
    }
    return told if report.delegation is None else {**told, "delegation": _as_json(report.delegation)}


def _as_text(report: Report) -> Iterator[str]:
    # ensure_ascii, so that what somebody else wrote into a claim cannot steer the terminal.
    yield report.kind[0].upper() + report.kind[1:]
    yield f"  header  {json.dumps(report.header)}"
    yield f"  claims  {json.dumps(report.claims)}"
    for mark, found in (("verified", report.verified), ("WRONG", report.failed), ("not verified", report.not_verified)):
        for one in found:
            yield f"  {mark:<13} {ascii(one)[1:-1]}"
    if report.delegation is not None:
        yield ""
        yield from _as_text(report.delegation)


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return f"{seconds}, no date"

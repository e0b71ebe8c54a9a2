"""PKCE with S256 (RFC 7636): the challenge of a verifier, and what either of them may be refused for."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

from papaver.oauth.errors import InvalidGrant, InvalidOAuthRequest
from papaver.values.base64url import encode
from papaver.values.rules import rule

__all__ = ["METHOD", "challenge_of", "check_challenge", "check_method", "check_verifier"]

METHOD: Final = "S256"
"""The one method. `plain` shows the verifier to whoever sees the request, so it protects nothing (RFC 9700 2.1.1)."""

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII).fullmatch
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII).fullmatch


def challenge_of(verifier: str) -> str:
    """`code_challenge` of a verifier (RFC 7636 4.2). ValueError for a verifier of another form (4.1)."""
    if _VERIFIER(verifier) is None:
        raise ValueError("a code verifier has 43 to 128 characters of A-Z a-z 0-9 - . _ ~")
    return encode(hashlib.sha256(verifier.encode("ascii")).digest())


@rule("pkce.challenge")
def check_challenge(challenge: str | None, method: str | None) -> None:
    """RFC 7636 4.3, RFC 9700 2.1.1: each authorization request has a challenge, the text of 32 octets."""
    if challenge is None or _CHALLENGE(challenge) is None:
        raise InvalidOAuthRequest(
            "code_challenge is missing" if challenge is None else "code_challenge is not base64url of a SHA-256",
            rule="pkce.challenge",
            detail=f"code_challenge {challenge!r:.80}",
        )
    check_method(method)


@rule("pkce.method-s256")
def check_method(method: str | None) -> None:
    """RFC 7636 4.3: S256, and said so; an absent method would mean plain."""
    if method != METHOD:
        raise InvalidOAuthRequest(
            "code_challenge_method has to be S256", rule="pkce.method-s256", detail=f"found {method!r:.80}"
        )


@rule("pkce.verifier")
def check_verifier(verifier: str | None, challenge: str | None) -> None:
    """RFC 7636 4.6, RFC 9700 4.8.2: the verifier is the one of the challenge, and neither comes without the other."""
    if verifier is None or challenge is None:
        reason = "code_verifier is missing" if verifier is None else "code_verifier came for a code without challenge"
        raise InvalidGrant(reason, rule="pkce.verifier")
    if _VERIFIER(verifier) is None or not hmac.compare_digest(challenge_of(verifier), challenge):
        raise InvalidGrant("code_verifier is not the one of the code_challenge", rule="pkce.verifier")

"""PKCE: S256, and nothing less."""

from __future__ import annotations

import pytest

from papaver.oauth.errors import InvalidGrant, InvalidOAuthRequest
from papaver.oauth.pkce import challenge_of, check_challenge, check_verifier

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.requirement("4.2-01")
def test_the_example_of_the_rfc() -> None:
    """RFC 7636 appendix B."""
    assert challenge_of(VERIFIER) == CHALLENGE
    check_challenge(CHALLENGE, "S256")
    check_verifier(VERIFIER, CHALLENGE)


@pytest.mark.parametrize("verifier", ["", "a" * 42, "a" * 129, "a" * 42 + " ", "a" * 42 + "\u00e4"])
def test_a_verifier_of_another_form_makes_no_challenge(verifier: str) -> None:
    """RFC 7636 4.1."""
    with pytest.raises(ValueError, match="43 to 128"):
        challenge_of(verifier)
    with pytest.raises(InvalidGrant) as refusal:
        check_verifier(verifier, CHALLENGE)
    assert refusal.value.rule == "pkce.verifier"


@pytest.mark.requirement("4.2-01")
@pytest.mark.parametrize("challenge", [None, "a", CHALLENGE + "a", CHALLENGE[:-1] + "="])
def test_b50_a_request_needs_a_challenge(challenge: str | None) -> None:
    """Missing, or no text of 32 octets."""
    with pytest.raises(InvalidOAuthRequest) as refusal:
        check_challenge(challenge, "S256")
    assert refusal.value.rule == "pkce.challenge"


@pytest.mark.requirement("4.2-01")
@pytest.mark.parametrize("method", [None, "plain", "s256"])
def test_b50_plain_is_refused(method: str | None) -> None:
    """Also where it is meant by saying nothing."""
    with pytest.raises(InvalidOAuthRequest) as refusal:
        check_challenge(CHALLENGE, method)
    assert (refusal.value.rule, refusal.value.code) == ("pkce.method-s256", "invalid_request")


@pytest.mark.requirement("4.2-01")
@pytest.mark.parametrize(
    ("verifier", "challenge"),
    [(None, CHALLENGE), (VERIFIER, None), (None, None), (VERIFIER[::-1], CHALLENGE), (CHALLENGE, CHALLENGE)],
)
def test_b50_a_wrong_verifier_is_refused(verifier: str | None, challenge: str | None) -> None:
    """Missing, without a challenge, another one, and the challenge itself."""
    with pytest.raises(InvalidGrant) as refusal:
        check_verifier(verifier, challenge)
    assert (refusal.value.rule, refusal.value.code) == ("pkce.verifier", "invalid_grant")

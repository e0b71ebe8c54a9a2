"""The token and revocation endpoints: requests written and read, answers written and read."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.answers import write_answer
from papaver.oauth.assertions import ASSERTION_TYPE
from papaver.oauth.errors import InvalidGrant, InvalidOAuthResponse, OAuthError
from papaver.oauth.forms import Form, read_form
from papaver.oauth.tokens import (
    DEVICE_CODE,
    CodeGrant,
    DeviceGrant,
    RefreshGrant,
    TokenResponse,
    code_request,
    device_poll_request,
    read_revocation_request,
    read_token_request,
    read_token_response,
    refresh_request,
    revocation_request,
    write_error,
    write_token_response,
)
from papaver.values.secret import Secret
from papaver.web.messages import Request

ENDPOINT = "https://auth.example.com/oauth/token"
WHO: dict[str, Any] = {"client_id": "https://agent.example/agent.json", "assertion": Secret("a.b.c")}
GOOD: dict[str, Any] = {"access_token": "eyJh.e30.Qp4w", "token_type": "Bearer"}


def sent(request: Request) -> Form:
    """What a request says, once it proved to carry the assertion."""
    assert (request.method, request.url) == ("POST", ENDPOINT)
    assert request.headers.first("Content-Type") == "application/x-www-form-urlencoded"
    form = read_form(request.body)
    assert form.one("client_id") == WHO["client_id"]
    assert (form.one("client_assertion_type"), form.one("client_assertion")) == (ASSERTION_TYPE, "a.b.c")
    return form


@pytest.mark.requirement("4.1-06", "4.2-01")
def test_a_code_is_exchanged_with_verifier_and_assertion() -> None:
    """4.2; everything secret stays hidden."""
    request = code_request(
        ENDPOINT, **WHO, code=Secret("c0de"), verifier=Secret("v3rifier"), redirect_uri="https://agent.example/cb"
    )
    grant = read_token_request(sent(request))
    assert grant == CodeGrant(Secret("c0de"), "https://agent.example/cb", Secret("v3rifier"))
    assert "c0de" not in repr(grant) + repr(request)
    assert "v3rifier" not in repr(grant) + repr(request)


@pytest.mark.requirement("4.1-06")
def test_a_refresh_may_ask_for_less_and_for_one_service() -> None:
    """4.4, 4.5."""
    plain = read_token_request(sent(refresh_request(ENDPOINT, **WHO, refresh_token=Secret("r"))))
    assert plain == RefreshGrant(Secret("r"))
    narrow = refresh_request(
        ENDPOINT, **WHO, refresh_token=Secret("r"), scopes=("a", "b"), resource="https://mcp.example.com/mcp"
    )
    assert read_token_request(sent(narrow)) == RefreshGrant(Secret("r"), ("a", "b"), ("https://mcp.example.com/mcp",))


@pytest.mark.requirement("4.1-06")
def test_a_poll_carries_the_device_code() -> None:
    """RFC 8628 3.4."""
    form = sent(device_poll_request(ENDPOINT, **WHO, device_code=Secret("d")))
    assert form.one("grant_type") == DEVICE_CODE
    assert read_token_request(form) == DeviceGrant(Secret("d"))


@pytest.mark.requirement("4.1-06")
def test_a_token_is_revoked_with_a_hint() -> None:
    """4.6; a request without one is read, too."""
    form = sent(revocation_request(ENDPOINT, **WHO, token=Secret("r")))
    assert read_revocation_request(form) == (Secret("r"), "refresh_token")
    assert read_revocation_request(Form([("token", "r")])) == (Secret("r"), None)


@pytest.mark.requirement("papaver-43")
@pytest.mark.parametrize(
    ("form", "rule", "code"),
    [
        ("", "oauth.parameter-given", "invalid_request"),
        ("grant_type=password", "oauth.grant-type", "unsupported_grant_type"),
        ("grant_type=authorization_code&code_verifier=v", "oauth.parameter-given", "invalid_request"),
        ("grant_type=refresh_token", "oauth.parameter-given", "invalid_request"),
        (f"grant_type=refresh_token&refresh_token={'r' * 8193}", "oauth.parameter-given", "invalid_request"),
        ("grant_type=refresh_token&refresh_token=r&scope=a++b", "oauth.scope-form", "invalid_scope"),
        ("grant_type=refresh_token&refresh_token=r&resource=x", "oauth.resource-form", "invalid_target"),
        ("grant_type=refresh_token&grant_type=refresh_token", "oauth.parameter-once", "invalid_request"),
        (f"grant_type={DEVICE_CODE}", "oauth.parameter-given", "invalid_request"),
    ],
)
def test_what_a_token_request_is_refused_for(form: str, rule: str, code: str) -> None:
    """With the code of RFC 6749 5.2."""
    with pytest.raises(OAuthError) as refusal:
        read_token_request(read_form(form))
    assert (refusal.value.rule, refusal.value.code) == (rule, code)


def test_a_code_without_verifier_is_read() -> None:
    """Whether it needs one is judged beside its challenge."""
    assert read_token_request(read_form("grant_type=authorization_code&code=c")) == CodeGrant(Secret("c"), None)


@pytest.mark.parametrize(
    "tokens",
    [
        TokenResponse(Secret("t"), "Bearer", 3600, Secret("r"), ("a", "b")),
        TokenResponse(Secret("t.t-t=="), "DPoP", None, None, ("a",)),
    ],
    ids=["sign-in", "refresh"],
)
def test_tokens_are_written_and_read_back(tokens: TokenResponse) -> None:
    """Nobody keeps the answer, and nothing shows what is in it."""
    answer = write_token_response(tokens)
    assert answer.headers.first("Cache-Control") == "no-store"
    assert read_token_response(answer, requested=("a", "b")) == tokens
    assert "t.t" not in repr(tokens)


@pytest.mark.requirement("4.7-28")
def test_less_may_have_been_granted() -> None:
    """The response's `scope` says what; the one who goes on asks what is lacking."""
    narrow = read_token_response(write_answer({**GOOD, "scope": "a"}), requested=("a", "b"))
    assert narrow.scope == ("a",)
    assert narrow.lacks(("b", "a")) == ("b",)
    assert TokenResponse(Secret("t"), "Bearer").lacks(("a",)) == ("a",)


@pytest.mark.requirement("4.7-28")
def test_without_scope_it_is_what_was_requested() -> None:
    """RFC 6749 5.1; and a response may be written so."""
    answer = write_token_response(TokenResponse(Secret("t"), "Bearer"))
    assert b"scope" not in answer.body
    assert read_token_response(answer, requested=("a", "b")).scope == ("a", "b")


@pytest.mark.parametrize(
    ("given", "kind"), [("bearer", "Bearer"), ("BEARER", "Bearer"), ("dpop", "DPoP"), ("DPoP", "DPoP")]
)
def test_a_token_type_has_no_letter_case(given: str, kind: str) -> None:
    """RFC 6749 5.1; the field of a request gets the usual spelling."""
    assert read_token_response(write_answer({**GOOD, "token_type": given}), requested=()).token_type == kind


@pytest.mark.requirement("papaver-46")
@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"access_token": None}, "oauth.answer-member"),
        ({"access_token": ""}, "oauth.answer-member"),
        ({"access_token": "a b"}, "oauth.answer-member"),
        ({"access_token": "a" * 8193}, "oauth.answer-member"),
        ({"access_token": 5}, "oauth.answer-member"),
        ({"token_type": None}, "oauth.token-type-known"),
        ({"token_type": "mac"}, "oauth.token-type-known"),
        ({"expires_in": "3600"}, "oauth.answer-member"),
        ({"expires_in": True}, "oauth.answer-member"),
        ({"expires_in": 0}, "oauth.answer-member"),
        ({"refresh_token": "\u00e4"}, "oauth.answer-member"),
        ({"scope": ""}, "oauth.answer-member"),
        ({"scope": "a  b"}, "oauth.scope-form"),
        ({"scope": "a c"}, "oauth.granted-within-requested"),
    ],
)
def test_an_answer_that_must_not_be_used_is_refused(changed: dict[str, object], rule: str) -> None:
    """Malformed, of an unfamiliar type, or with more than was requested (4.7)."""
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read_token_response(write_answer({**GOOD, **changed}), requested=("a", "b"))
    assert refusal.value.rule == rule


def test_null_is_absent_and_a_lifetime_is_bounded() -> None:
    """68 years are for ever."""
    tokens = read_token_response(
        write_answer({**GOOD, "refresh_token": None, "scope": None, "expires_in": 10**12}), requested=("a",)
    )
    assert (tokens.refresh_token, tokens.scope, tokens.expires_in) == (None, ("a",), 2**31 - 1)


def test_the_endpoints_own_error_is_raised() -> None:
    """For any status but 200."""
    with pytest.raises(InvalidGrant):
        read_token_response(write_error(InvalidGrant()), requested=("a",))

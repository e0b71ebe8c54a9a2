"""Answers of OAuth endpoints: never stored, bounded, and an error for whatever came."""

from __future__ import annotations

import json
import re

import pytest

from papaver.oauth.answers import read_answer, read_error, seconds_of, text_of, write_answer, write_error
from papaver.oauth.errors import (
    InvalidClient,
    InvalidGrant,
    InvalidOAuthResponse,
    ProtocolError,
    ServerError,
    TryLater,
    UnknownCode,
    UseDpopNonce,
)
from papaver.web.messages import Headers, Response


def test_an_answer_is_kept_by_nobody() -> None:
    """RFC 6749 5.1."""
    answer = write_answer({"a": 1}, headers=[("x", "y")])
    assert (answer.status, answer.body) == (200, b'{"a":1}')
    fields = dict(answer.headers)
    assert (fields["content-type"], fields["cache-control"], fields["x"]) == ("application/json", "no-store", "y")


@pytest.mark.parametrize(
    ("error", "status", "written"),
    [
        (InvalidGrant(), None, 400),
        (InvalidClient(), None, 401),
        (InvalidClient(), 403, 403),
        (UseDpopNonce("n1"), None, 400),
    ],
)
def test_errors_are_written_and_read_back(error: ProtocolError, status: int | None, written: int) -> None:
    """With the RFC's code and status; the private detail stays here."""
    error.detail = "secret reason"
    answer = write_error(error, status, [("x", "y")])
    assert answer.status == written
    assert b"secret" not in answer.body
    back = read_error(answer)
    assert type(back) is type(error)
    assert back.detail == error.description
    if isinstance(back, UseDpopNonce):
        assert (back.nonce, answer.headers.first("DPoP-Nonce")) == ("n1", "n1")


def test_a_description_has_the_characters_that_the_rfc_allows() -> None:
    """RFC 6749 5.2: no quotation marks, nothing outside of ASCII."""
    answer = write_error(InvalidGrant('say "\u00e4\\"'))
    assert json.loads(answer.body)["error_description"] == "say ''''"


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (429, b"", TryLater, "temporarily_unavailable"),
        (503, b"<html>", TryLater, "temporarily_unavailable"),
        (500, b"[]", ServerError, "server_error"),
        (404, b"", UnknownCode, "http_404"),
        (400, b'{"error":7}', UnknownCode, "http_400"),
        (400, b'{"error":"\\u0000"}', UnknownCode, "http_400"),
        (400, b'{"error":"invalid_grant","error_description":7}', InvalidGrant, "invalid_grant"),
        (400, b'{"error":"odd","error_description":"x"}', UnknownCode, "odd"),
        (400, b'{"error":"use_dpop_nonce"}', UnknownCode, "use_dpop_nonce"),
    ],
)
def test_every_answer_has_an_error(status: int, body: bytes, kind: type[ProtocolError], code: str) -> None:
    """Also one that is not OAuth's."""
    error = read_error(Response(status, body=body))
    assert (type(error), error.code) == (kind, code)


def test_a_nonce_that_no_proof_can_say_is_none() -> None:
    """RFC 9449 8.1 gives its characters."""
    answer = Response(400, Headers([("DPoP-Nonce", 'a"b')]), b'{"error":"use_dpop_nonce"}')
    assert type(read_error(answer)) is UnknownCode


@pytest.mark.requirement("papaver-46")
@pytest.mark.parametrize(("body", "rule"), [(b"{", "oauth.answer-json"), (b" " * 65_537, "oauth.answer-size")])
def test_what_is_no_object_is_refused(body: bytes, rule: str) -> None:
    """Or is too large."""
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read_answer(Response(200, body=body))
    assert refusal.value.rule == rule


def test_members_are_read_in_their_form() -> None:
    """Null is absent; numbers of seconds are whole, above zero, and at most 68 years."""
    document: dict[str, object] = {"a": "x", "n": None, "s": 5.9, "long": 10**12, "zero": 0, "true": True, "text": "5"}
    form = re.compile("x+")
    assert (text_of(document, "a", form), text_of(document, "n", form), text_of(document, "none", form)) == (
        "x",
        None,
        None,
    )
    assert (seconds_of(document, "s"), seconds_of(document, "long"), seconds_of(document, "n")) == (5, 2**31 - 1, None)
    for member in ("s", "text"):
        with pytest.raises(InvalidOAuthResponse) as refusal:
            text_of(document, member, form)
        assert refusal.value.rule == "oauth.answer-member"
    for member in ("zero", "true", "text"):
        with pytest.raises(InvalidOAuthResponse) as refusal:
            seconds_of(document, member)
        assert refusal.value.rule == "oauth.answer-member"

"""The errors of the protocol: what each carries besides its code, and what of it stays private."""

from __future__ import annotations

import json
import pickle
import re

import pytest

from papaver.protocol import errors
from papaver.protocol.errors import (
    AccountNeeded,
    DirectConversationOpen,
    DiscoveryFailed,
    ExtensionRequired,
    InsufficientScope,
    PayloadTooLarge,
    PoppyError,
    ProofNonceNeeded,
    RateLimited,
    Refused,
    SignInNeeded,
    TemporarilyUnavailable,
)
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response

WITH_MORE: list[tuple[PapaverError, str, object]] = [
    (ExtensionRequired("links", rule="a.b", detail="d"), "extension", "links"),
    (AccountNeeded("orders", rule="a.b", detail="d"), "scope", "orders"),
    (InsufficientScope("orders", rule="a.b", detail="d"), "scope", "orders"),
    (DirectConversationOpen("cnv_2", rule="a.b", detail="d"), "conversation_id", "cnv_2"),
    (ProofNonceNeeded("n", rule="a.b", detail="d"), "nonce", "n"),
    (RateLimited(3, rule="a.b", detail="d"), "retry_after", 3),
    (TemporarilyUnavailable(30, rule="a.b", detail="d"), "retry_after", 30),
]


def kinds() -> list[type[PapaverError]]:
    """Every error class of the module."""
    return [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize(("error", "name", "value"), WITH_MORE, ids=lambda value: getattr(value, "code", None))
def test_what_an_error_carries_besides_its_code(error: PapaverError, name: str, value: object) -> None:
    """For the table that writes it; the class's own sentence stands when none is given."""
    assert getattr(error, name) == value
    assert (error.rule, error.detail) == ("a.b", "d")
    assert error.description == type(error).description


def test_a_failed_discovery_says_both_values_and_the_remedy() -> None:
    """The three that a person needs."""
    error = DiscoveryFailed("not this", rule="a.b", expected="x", found="y", remedy="z", detail="d")
    assert (error.code, error.rule, error.description) == ("discovery_failed", "a.b", "not this")
    assert (error.expected, error.found, error.remedy, error.detail) == ("x", "y", "z", "d")


def test_a_refusal_keeps_the_answer_and_tells_nothing_of_its_body() -> None:
    """Whoever caught it may look; a log line must not."""
    error = Refused("invalid_request", Response(400, body=b"secret"), "the Company refused", rule="a.b")
    assert (error.code, error.response.body) == ("invalid_request", b"secret")
    assert "secret" not in f"{error} {error!r}"


def test_a_missing_sign_in_names_its_scopes() -> None:
    """So that the caller can ask the User for them."""
    assert SignInNeeded("orders carts", rule="a.b").scope == "orders carts"


def test_a_large_payload_is_an_invalid_request() -> None:
    """Section 8.13 has no code of its own for it (readings 37)."""
    assert issubclass(PayloadTooLarge, errors.InvalidRequest)
    assert PayloadTooLarge.code == "invalid_request"


def test_every_refusal_of_a_company_has_a_code_of_the_specification() -> None:
    """But a challenge without an error, which has none (RFC 6750 3.1)."""
    codes = {kind.__name__: kind.code for kind in kinds() if issubclass(kind, PoppyError) and kind is not PoppyError}
    assert [name for name, code in codes.items() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == ["AccountNeeded"]


def test_the_tree_in_the_docstring_names_every_error() -> None:
    """It is what a reader of the module sees first."""
    named = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))
    assert named == {kind.__name__ for kind in kinds()}


@pytest.mark.parametrize("kind", [kind for kind in kinds() if "__init__" not in vars(kind)])
def test_a_plain_error_says_its_code_and_its_rule(kind: type[PapaverError]) -> None:
    """`detail` is for our own log: it is in neither form of the error."""
    error = kind(rule="a.b", detail="the private part")
    assert "a.b" in str(error)
    assert "the private part" not in f"{error} {error!r}"


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidSession("no", rule="a.b", detail="d"),
        *(error for error, _, _ in WITH_MORE),
        DiscoveryFailed("not this", rule="a.b", expected="x", found="y", remedy="z", detail="d"),
        SignInNeeded("orders carts", rule="a.b"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_being_pickled(error: PapaverError) -> None:
    """Test runners and worker pools carry errors between processes; what they carry stays the same."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), vars(again), str(again), again.code) == (type(error), vars(error), str(error), error.code)


def test_a_failed_discovery_tells_an_uncaught_reader_what_to_do() -> None:
    """Notes stand below the error in a traceback; another party's words in them are made safe."""
    error = DiscoveryFailed("not so", rule="a.b", expected="a", found="b\x1b[31m\nc", remedy="publish a")
    assert error.__notes__ == ["  expected  a", "  found     b [31m c", "  next      publish a"]
    assert not hasattr(DiscoveryFailed("not so", rule="a.b"), "__notes__")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error_description": "iat is\\n too old"}', "iat is too old"),
        (b'{"error_description": 3}', ""),
        (b"<html>", ""),
        (b"", ""),
    ],
)
def test_a_refusal_tells_the_company_s_own_sentence_made_safe(body: bytes, sentence: str) -> None:
    """In `told` and in `str`, where there is one; nothing else of the body."""
    error = Refused("invalid_session", Response(400, body=body), "the Company answered 400", rule="a.b")
    assert error.told == sentence
    more = f'; it says "{sentence}"' if sentence else ""
    assert str(error) == f"invalid_session: the Company answered 400 [a.b]{more}"


@pytest.mark.parametrize("said", ["too long", ""])
def test_a_refusal_survives_being_pickled_without_what_may_be_secret(said: str) -> None:
    """The status, the URL and the Company's sentence go along; header fields and the body do not."""
    body = json.dumps({"error": "invalid_request", "error_description": said, "token": "hunter2"}).encode()
    response = Response(413, Headers({"set-cookie": "hunter2"}), body, "https://example.com/x")
    error = Refused("invalid_request", response, "the Company refused", rule="a.b")
    stored = pickle.dumps(error)
    again = pickle.loads(stored)
    assert b"hunter2" not in stored
    assert (type(again), str(again), again.code, again.rule) == (Refused, str(error), error.code, error.rule)
    assert (again.response.status, again.response.url, again.told) == (413, response.url, said)

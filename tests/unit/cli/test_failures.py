"""How a failure is told to people and scripts."""

from __future__ import annotations

import pytest

from papaver.cli.failures import CliError, describe, exit_status
from papaver.protocol.errors import ConfigurationError, DiscoveryFailed, RateLimited, Refused, SignInNeeded
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response


def _refused(code: str, body: bytes) -> Refused:
    return Refused(code, Response(400, Headers(), body), "the Company answered 400")


def test_a_failed_comparison_shows_both_values_and_the_remedy() -> None:
    """Expected, found, and what to do."""
    error = DiscoveryFailed("not so", rule="discovery.x", expected="a", found="b", remedy="publish a", detail="why")
    assert describe(error, "papaver discover") == {
        "error": "discovery_failed",
        "rule": "discovery.x",
        "detail": "not so (why)",
        "expected": "a",
        "found": "b",
        "next": "publish a",
    }


@pytest.mark.parametrize(
    ("error", "next_step"),
    [
        (CliError("x", next="papaver init"), "papaver init"),
        (ConfigurationError("x"), "correct the setting; papaver ask --help has an example"),
        (
            ConfigurationError("x", rule="identity.listens"),
            "choose another port, or 0 for a free one: papaver identity --serve HOST:PORT",
        ),
        (RateLimited(3), "wait, then run the same command again"),
        (_refused("conversation_closed", b"{}"), "start another: papaver ask DOMAIN TEXT"),
        (PapaverError("x"), "papaver ask --trace shows each exchange, with secrets hidden"),
        (DiscoveryFailed("x", rule="r"), "papaver ask --trace shows each exchange, with secrets hidden"),
    ],
)
def test_every_failure_says_what_to_do_next(error: PapaverError, next_step: str) -> None:
    """There is always a next step."""
    assert describe(error, "papaver ask")["next"] == next_step


def test_a_company_s_own_sentence_is_told_beside_its_code() -> None:
    """What `error_description` says helps a developer."""
    told = describe(_refused("invalid_session", b'{"error_description": "iat is too old"}'), "papaver ask")
    assert told["error"] == "invalid_session"
    assert told["detail"] == "the Company answered 400 (invalid_session: iat is too old)"


def test_a_reason_of_several_lines_stands_below_its_sentence() -> None:
    """As a traceback does."""
    told = describe(CliError("it raised KeyError", detail="line 1\nline 2", next="x"), "papaver")
    assert told["detail"] == "it raised KeyError\nline 1\nline 2"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error_description": 3}'])
def test_an_answer_without_a_sentence_is_told_by_its_code(body: bytes) -> None:
    """Whatever else the Company answered with is not shown."""
    assert describe(_refused("http_418", body), "papaver ask")["detail"] == "the Company answered 400 (http_418)"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CliError("x", next="y"), 1),
        (CliError("x", next="y", code="usage"), 2),
        (SignInNeeded("orders:read"), 3),
        (ConfigurationError("x"), 1),
    ],
)
def test_the_exit_status_is_the_contract_s(error: PapaverError, status: int) -> None:
    """1 refused or failed, 2 usage, 3 sign-in."""
    assert exit_status(error) == status


def test_sign_in_names_the_scope() -> None:
    """What is needed is printed."""
    assert "orders:read" in str(describe(SignInNeeded("orders:read"), "papaver ask")["next"])

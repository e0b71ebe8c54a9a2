"""The access token of a request: read from its one field, and none can be valid where there is no issuer."""

from __future__ import annotations

from typing import Literal

import pytest

from papaver.protocol.access_token import (
    check_for_this_service,
    check_no_token,
    check_not_expired,
    check_scheme,
    read_access_token,
)
from papaver.protocol.errors import InvalidRequest, InvalidToken
from papaver.values.secret import Secret
from papaver.web.messages import Headers


@pytest.mark.parametrize(
    ("field", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("DPoP abc", "abc"),
        ("BEARER", ""),
        ("Basic YTpi", None),
        ("Bearerabc", None),
        ("", None),
    ],
)
def test_a_token_is_what_follows_a_scheme_of_oauth(field: str, token: str | None) -> None:
    """Any letter case; credentials of another scheme are none of ours (readings 66)."""
    read = read_access_token(Headers([("Authorization", field)]))
    assert (None if read is None else read.token.reveal()) == token


def test_without_the_field_there_is_no_token() -> None:
    """Signed out (5.4)."""
    assert read_access_token(Headers()) is None


@pytest.mark.requirement("papaver-30")
def test_b10_two_fields_are_refused() -> None:
    """Even when they are equal, and whatever the scheme."""
    with pytest.raises(InvalidRequest, check=lambda error: error.rule == "token.authorization-once"):
        read_access_token(Headers([("Authorization", "Basic x"), ("authorization", "Bearer x")]))


@pytest.mark.requirement("papaver-30")
def test_no_token_is_valid_where_nobody_issues_any() -> None:
    """And its holder is told what to do."""
    check_no_token(None)
    with pytest.raises(
        InvalidToken, match="continue signed out", check=lambda error: error.rule == "token.needs-issuer"
    ):
        check_no_token(Secret("abc"))


def test_the_scheme_is_told_and_the_token_hides_itself() -> None:
    """What a token is bound to decides which of the two it may be."""
    bearer, dpop = (read_access_token(Headers([("authorization", f"{name} abc")])) for name in ("bearer", "dpop"))
    assert bearer is not None
    assert dpop is not None
    assert (bearer.scheme, dpop.scheme) == ("Bearer", "DPoP")
    assert "abc" not in repr(bearer)


@pytest.mark.requirement("papaver-68")
@pytest.mark.parametrize(("scheme", "jkt"), [("Bearer", "thumb"), ("DPoP", None)])
def test_a_bound_token_is_no_bearer_token_and_another_is_no_dpop_token(
    scheme: Literal["Bearer", "DPoP"], jkt: str | None
) -> None:
    """RFC 9449 7.2: a downgrade from DPoP to Bearer is how a stolen token would be used."""
    with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.scheme-as-bound"):
        check_scheme(scheme, jkt)


def test_each_token_goes_with_its_scheme() -> None:
    """As `token_type` named it (4.5)."""
    check_scheme("Bearer", None)
    check_scheme("DPoP", "thumb")


@pytest.mark.requirement("papaver-76")
@pytest.mark.parametrize("now", [100.0, 100.5])
def test_a_token_ends_when_its_time_is_over(now: float) -> None:
    """At that second, not after it."""
    with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.not-expired"):
        check_not_expired(100.0, now)
    check_not_expired(100.0, 99.9)
    check_not_expired(None, now)


USUAL = ("https://example.com",)
MCP = "https://api.example.com/mcp"


@pytest.mark.requirement("4.5-12")
@pytest.mark.parametrize(
    ("audience", "service"),
    [((MCP,), None), ((MCP,), "https://api.example.com/orders"), ((), MCP), (USUAL, MCP), ((MCP + "/",), MCP)],
    ids=["elsewhere", "at another service", "of no service", "of the domain", "but for a slash"],
)
def test_c59_a_token_is_good_only_where_it_was_issued_for(audience: tuple[str, ...], service: str | None) -> None:
    """Compared character for character (readings 11)."""
    with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.for-this-service"):
        check_for_this_service(audience, service, USUAL)


@pytest.mark.requirement("4.5-06")
@pytest.mark.parametrize(("audience", "service"), [((), None), (USUAL, None), ((MCP,), MCP), (("x", MCP), MCP)])
def test_a_token_is_good_where_it_was_issued_for(audience: tuple[str, ...], service: str | None) -> None:
    """By default at all of the Company's services."""
    check_for_this_service(audience, service, USUAL)

"""Device Sign-In: the request, the codes, and where its link may lead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from papaver.oauth.answers import write_answer, write_error
from papaver.oauth.device import (
    LENGTH,
    LETTERS,
    DeviceAuthorization,
    DeviceRequest,
    check_link,
    device_request,
    normal_user_code,
    read_device_request,
    read_device_response,
    user_code_of,
    write_device_response,
)
from papaver.oauth.errors import InvalidOAuthResponse, InvalidScope, UnauthorizedClient
from papaver.oauth.forms import read_form
from papaver.testing.clock import SeededIds
from papaver.values.secret import Secret

ISSUER = "https://auth.example.com"
LISTED = ("https://example.com", "https://mcp.example.net:8443/mcp", "no url")
ANSWER = DeviceAuthorization(
    Secret("GmRh"), "WDJB-MJHT", f"{ISSUER}/device", f"{ISSUER}/device?user_code=WDJB-MJHT", 600, 5
)


@pytest.mark.requirement("4.7-16")
def test_a_request_is_written_and_read_back() -> None:
    """With its scopes, the assertion, and a service where one is meant."""
    who: dict[str, Any] = {"client_id": "https://agent.example/agent.json", "assertion": Secret("a.b.c")}
    plain = read_form(device_request(f"{ISSUER}/oauth/device", **who, scopes=("a", "b")).body)
    assert (plain.one("client_assertion"), plain.one("scope")) == ("a.b.c", "a b")
    assert read_device_request(plain) == DeviceRequest(("a", "b"))
    served = device_request(f"{ISSUER}/oauth/device", **who, scopes=("a",), resource="https://mcp.example.com")
    assert read_device_request(read_form(served.body)) == DeviceRequest(("a",), ("https://mcp.example.com",))
    with pytest.raises(InvalidScope):
        device_request(f"{ISSUER}/oauth/device", **who, scopes=())
    with pytest.raises(InvalidScope):
        read_device_request(read_form("client_id=x"))


def test_an_answer_is_written_and_read_back() -> None:
    """The device code shows itself to nobody."""
    assert read_device_response(write_device_response(ANSWER)) == ANSWER
    bare = replace(ANSWER, verification_uri_complete=None)
    assert b"complete" not in write_device_response(bare).body
    assert read_device_response(write_device_response(bare)) == bare
    assert "GmRh" not in repr(ANSWER)


def test_without_an_interval_it_is_five_seconds() -> None:
    """RFC 8628 3.2."""
    document: dict[str, Any] = {"device_code": "d", "user_code": "W", "verification_uri": ISSUER, "expires_in": 600.5}
    answer = read_device_response(write_answer(document))
    assert (answer.interval, answer.expires_in) == (5, 600)


@pytest.mark.parametrize(
    "changed",
    [
        {"device_code": None},
        {"user_code": None},
        {"user_code": "\u202eW"},
        {"user_code": "W" * 65},
        {"user_code": "a\nb"},
        {"verification_uri": None},
        {"verification_uri": "https://a b"},
        {"expires_in": None},
        {"interval": -5},
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(changed: dict[str, Any]) -> None:
    """Above all a user code that would draw itself otherwise than it is."""
    document: dict[str, Any] = {"device_code": "d", "user_code": "W", "verification_uri": ISSUER, "expires_in": 600}
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read_device_response(write_answer({**document, **changed}))
    assert refusal.value.rule == "oauth.answer-member"


def test_the_endpoints_own_error_is_raised() -> None:
    """Such as a client that may not use this sign-in type."""
    with pytest.raises(UnauthorizedClient):
        read_device_response(write_error(UnauthorizedClient()))


def test_user_codes_are_as_many_as_guessing_needs() -> None:
    """More than 2^34, all consonants, and another for every random number."""
    assert len(set(LETTERS)) ** LENGTH > 2**34
    ids = SeededIds("codes")
    codes = {user_code_of(ids.secret(16)) for _ in range(1000)}
    assert len(codes) == 1000
    assert {len(code) for code in codes} == {9}
    assert set("".join(codes)) == {*LETTERS, "-"}
    assert all(normal_user_code(code) == code for code in codes)
    with pytest.raises(ValueError, match="16"):
        user_code_of(b"x" * 15)


@pytest.mark.parametrize("typed", ["WDJB-MJHT", "wdjbmjht", " wdjb mjht ", "W-D-J-B\u2013MJHT", "WDJB_MJHT"])
def test_a_typed_code_is_forgiven_its_form(typed: str) -> None:
    """RFC 8628 6.1."""
    assert normal_user_code(typed) == "WDJB-MJHT"


@pytest.mark.parametrize("typed", ["", "WDJB", "WDJB-MJHTT", "WDJB-MJHA", "WDJB-MJH1", "\u00df" * 8, "W" * 9999])
def test_what_is_no_user_code_is_none(typed: str) -> None:
    """The empty text."""
    assert normal_user_code(typed) == ""


@pytest.mark.requirement("4.3-08")
@pytest.mark.parametrize(
    "link",
    [
        f"{ISSUER}/device",
        "https://login.auth.example.com/device",
        "https://AUTH.example.com:8443/device",
        "https://example.com",
        "https://shop.example.com/x",
        "https://mcp.example.net/device",
    ],
)
def test_a_link_to_the_company_is_shown(link: str) -> None:
    """The host of the issuer or of a listed resource, or one below it."""
    check_link(replace(ANSWER, verification_uri=link), issuer=ISSUER, protected_resources=LISTED)
    bare = replace(ANSWER, verification_uri_complete=None)
    check_link(bare, issuer=ISSUER, protected_resources=())


@pytest.mark.requirement("4.3-08")
@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/device",
        "https://auth.example.com.evil.example/device",
        "https://evilexample.com/device",
        "https://example.net/device",
        "http://auth.example.com/device",
        "https://auth.example.com@evil.example/",
        "https://user@auth.example.com/",
        "javascript:alert(1)",
        "",
    ],
)
def test_a_link_elsewhere_is_not_shown(link: str) -> None:
    """In either of its two fields (4.3)."""
    for spoiled in (replace(ANSWER, verification_uri=link), replace(ANSWER, verification_uri_complete=link)):
        with pytest.raises(InvalidOAuthResponse) as refusal:
            check_link(spoiled, issuer=ISSUER, protected_resources=LISTED)
        assert refusal.value.rule == "device.link-host"

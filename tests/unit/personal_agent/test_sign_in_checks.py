"""What has to be true before a sign-in begins: the type that is offered, and where the User comes back to."""

from __future__ import annotations

import pytest

from papaver.oauth.metadata import ServerMetadata
from papaver.personal_agent.sign_in_checks import (
    SignInUnavailable,
    SignInUnknown,
    Type,
    choose_redirect,
    choose_type,
    offered_types,
    state_of,
)
from papaver.protocol.errors import ConfigurationError
from papaver.values.secret import Secret

DIRECT, DEVICE = Type.DIRECT.value, Type.DEVICE.value
HTTPS = "https://agent.example/oauth/callback"
LOOPBACK = "http://127.0.0.1/callback"


def server(*grants: str) -> ServerMetadata:
    """An issuer that lists these grants."""
    return ServerMetadata("https://auth.example.com", (), grant_types_supported=("refresh_token", *grants))


@pytest.mark.requirement("3.2-43")
def test_the_types_offered_are_those_of_the_listed_grants() -> None:
    """Direct first, whatever the order; an issuer that lists none offers none."""
    assert offered_types(server(DEVICE, DIRECT)) == (Type.DIRECT, Type.DEVICE)
    assert offered_types(server(DEVICE)) == (Type.DEVICE,)
    assert offered_types(server(DIRECT)) == (Type.DIRECT,)
    assert offered_types(ServerMetadata("https://auth.example.com", ())) == ()


@pytest.mark.requirement("papaver-91")
def test_a_type_that_is_not_offered_is_not_begun() -> None:
    """The error names the one that was wanted."""
    with pytest.raises(SignInUnavailable) as caught:
        choose_type(server(DIRECT), device=True)
    assert (caught.value.rule, "Device" in caught.value.description) == ("sign-in.type-offered", True)


@pytest.mark.parametrize(
    ("wanted", "registered", "found"),
    [
        (None, (LOOPBACK, HTTPS), HTTPS),
        (HTTPS, (HTTPS,), HTTPS),
        ("http://127.0.0.1:5000/callback", (HTTPS, LOOPBACK), "http://127.0.0.1:5000/callback"),
        ("http://[::1]:5000/callback", ("http://[::1]/callback",), "http://[::1]:5000/callback"),
    ],
)
def test_the_redirect_uri_is_a_registered_one(wanted: str | None, registered: tuple[str, ...], found: str) -> None:
    """Whoever listens at a loopback port says which; else the first https entry."""
    assert choose_redirect(registered, wanted) == found


@pytest.mark.requirement("papaver-91")
@pytest.mark.parametrize(
    ("wanted", "registered"),
    [
        (None, ()),
        (None, (LOOPBACK, "http://[::1]/callback")),
        ("http://localhost:5000/callback", (LOOPBACK,)),
        ("http://[::1]:5000/callback", (LOOPBACK,)),
        (f"{HTTPS}/", (HTTPS,)),
    ],
)
def test_b48_another_redirect_uri_is_a_setting_that_cannot_work(
    wanted: str | None, registered: tuple[str, ...]
) -> None:
    """Before anything is sent; a loopback entry alone needs somebody who listens."""
    with pytest.raises(ConfigurationError) as caught:
        choose_redirect(registered, wanted)
    assert caught.value.rule == "sign-in.redirect-registered"


def test_the_state_of_a_callback_is_found_or_the_callback_is_none() -> None:
    """One `state`, in a URL."""
    assert state_of(Secret(f"{HTTPS}?code=x&state=abc&iss=y")) == "abc"
    for url in ("", "abc", HTTPS, f"{HTTPS}?state=", f"{HTTPS}?state=a&state=b"):
        with pytest.raises(SignInUnknown):
            state_of(Secret(url))

"""What has to be true before a sign-in begins and when it comes back: each check by itself, and the two choices."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from urllib.parse import parse_qs

from papaver.oauth.authorization import matches_redirect
from papaver.oauth.metadata import ServerMetadata
from papaver.oauth.tokens import TokenResponse
from papaver.personal_agent.records import SignInRow
from papaver.protocol.company import CompanyDocument
from papaver.protocol.errors import ConfigurationError, Misbehaved
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.urls import UrlError, host_of, read_url

__all__ = [
    "SignInUnavailable",
    "SignInUnknown",
    "Type",
    "check_fresh",
    "check_known",
    "check_redirect_registered",
    "check_refresh_token",
    "check_same_user",
    "check_sign_in_enabled",
    "check_type_offered",
    "choose_redirect",
    "choose_type",
    "offered_types",
    "state_of",
]

LOOPBACK = frozenset({"127.0.0.1", "[::1]", "::1"})


class SignInUnavailable(PapaverError):
    """The Company does not let anybody begin this sign-in."""

    code = "sign_in_unavailable"
    description = "the Company offers no such sign-in"


class SignInUnknown(PapaverError):
    """A callback that belongs to no sign-in that is waiting: used already, too old, another User's, or never begun."""

    code = "sign_in_unknown"
    description = "no sign-in is waiting for this URL; begin again"


class Type(Enum):
    """A sign-in type, by its grant type (3.2)."""

    DIRECT = "authorization_code"
    DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


def offered_types(server: ServerMetadata) -> tuple[Type, ...]:
    """The sign-in types that an issuer offers, the preferred one first (3.2, section 4)."""
    return tuple(one for one in Type if one.value in (server.grant_types_supported or ()))


def choose_type(server: ServerMetadata, *, device: bool | None = None) -> Type:
    """Direct where it is offered (section 4). Device when the caller asks for it, or nothing else is there (4.3).

    Raises SignInUnavailable.
    """
    offered = offered_types(server)
    wanted = {None: tuple(Type), True: (Type.DEVICE,), False: (Type.DIRECT,)}[device]
    usable = [one for one in wanted if one in offered]
    check_type_offered(usable, wanted)
    return usable[0]


def choose_redirect(registered: Sequence[str], wanted: str | None) -> str:
    """Where the User comes back to: `wanted`, or the first https entry of the identity. Raises ConfigurationError."""
    target = wanted or next((one for one in registered if host_of(one) not in LOOPBACK), "")
    check_redirect_registered(target, registered)
    return target


def state_of(callback: Secret) -> str:
    """The `state` of a callback; the rest of it is judged later. Raises SignInUnknown."""
    found = _states(callback)
    check_known(len(found) == 1)
    return found[0]


def _states(callback: Secret) -> list[str]:
    try:
        query = read_url(callback.reveal().strip()).query or ""
    except UrlError:
        return []
    return parse_qs(query).get("state", [])


@rule("sign-in.enabled")
def check_sign_in_enabled(document: CompanyDocument) -> None:
    """3.2: with `auth.disabled` no sign-in begins. Raises SignInUnavailable."""
    if document.auth.disabled:
        raise SignInUnavailable("the Company has turned off sign-in for Personal Agents", rule="sign-in.enabled")


@rule("sign-in.type-offered")
def check_type_offered(usable: Sequence[Type], wanted: Sequence[Type]) -> None:
    """3.2: only a sign-in type whose grant the issuer's metadata lists. Raises SignInUnavailable."""
    if not usable:
        names = " or ".join(one.name.capitalize() for one in wanted)
        raise SignInUnavailable(f"the Company does not offer {names} Sign-In", rule="sign-in.type-offered")


@rule("sign-in.redirect-registered")
def check_redirect_registered(target: str, registered: Sequence[str]) -> None:
    """4.2: the redirect URI is one of the client metadata's, but for a loopback port. Raises ConfigurationError."""
    if not any(matches_redirect(target, entry) for entry in registered):
        raise ConfigurationError(
            "Direct Sign-In needs a redirect URI of this Personal Agent; add one to redirect_uris, name one, or use "
            "device=True",
            rule="sign-in.redirect-registered",
            detail=target,
        )


@rule("sign-in.known")
def check_known(known: bool) -> None:
    """4.2, RFC 6749 10.12: a callback belongs to a sign-in that began here and has not come back.

    Raises SignInUnknown.
    """
    if not known:
        raise SignInUnknown(rule="sign-in.known")


@rule("sign-in.fresh")
def check_fresh(row: SignInRow, now: float, seconds: float) -> None:
    """A sign-in is waited for only so long. Raises SignInUnknown."""
    if now - row.begun_at > seconds:
        raise SignInUnknown("the sign-in took too long; begin again", rule="sign-in.fresh")


@rule("sign-in.same-user")
def check_same_user(row: SignInRow, user: str) -> None:
    """RFC 9700 4.7: who comes back is who began, else an account could be bound to somebody else.

    Raises SignInUnknown.
    """
    if row.user != user:
        raise SignInUnknown("another User began this sign-in", rule="sign-in.same-user")


@rule("sign-in.refresh-token")
def check_refresh_token(answer: TokenResponse) -> None:
    """4.4, 4.7: sign-in returns a refresh token. Raises Misbehaved."""
    if answer.refresh_token is None:
        raise Misbehaved("the sign-in returned no refresh token, so it cannot be kept", rule="sign-in.refresh-token")

"""Device Sign-In's request and codes (4.3, RFC 8628), on both sides, and where a sign-in link may lead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from papaver.oauth.answers import read_answer, read_error, seconds_of, text_of, write_answer
from papaver.oauth.authorization import read_resources
from papaver.oauth.errors import InvalidOAuthResponse
from papaver.oauth.forms import Form
from papaver.oauth.scopes import read_scope, write_scope
from papaver.oauth.tokens import authenticated_request
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.told import told
from papaver.web.messages import Request, Response
from papaver.web.urls import UrlError, host_of, host_within, read_url

__all__ = [
    "DeviceAuthorization",
    "DeviceRequest",
    "check_link",
    "device_request",
    "normal_user_code",
    "read_device_request",
    "read_device_response",
    "user_code_of",
    "write_device_response",
]

INTERVAL: Final = 5
"""Seconds between polls when the issuer does not say (RFC 8628 3.2)."""

LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Of a user code (RFC 8628 6.1): no vowels, so no words, and nothing that looks like a digit."""

LENGTH: Final = 8
"""Letters in a user code: 20^8 codes, a little more than 2^34."""

_USER_CODE: Final = re.compile(rf"[{LETTERS}]{{{LENGTH}}}", re.ASCII).fullmatch
_TYPED_BETWEEN: Final = re.compile(r"[\s_.\-\u2010-\u2015\u2212]+")
_SHOWN_CODE: Final = re.compile(r"[!-~](?:[ -~]{0,62}[!-~])?", re.ASCII)
_DEVICE_CODE: Final = re.compile(r"[ -~]{1,4096}", re.ASCII)
_LINK: Final = re.compile(r"[!-~]{1,2048}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeviceAuthorization:
    """The answer of the device authorization endpoint (4.3). Times in seconds.

    `device_code`  private: whoever has it gets the tokens
    `user_code`, `verification_uri`, `verification_uri_complete`  for the User's eyes, after `check_link`
    """

    device_code: Secret
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    expires_in: int
    interval: int = INTERVAL


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """What a device authorization request asks for; who asks is `read_assertion`'s question."""

    scopes: tuple[str, ...]
    resource: tuple[str, ...] = ()


def device_request(
    endpoint: str, *, client_id: str, assertion: Secret, scopes: tuple[str, ...], resource: str | None = None
) -> Request:
    """Begin Device Sign-In (4.3). Raises `InvalidScope` for a request without scopes (4.7)."""
    more = [] if resource is None else [("resource", resource)]
    return authenticated_request(endpoint, client_id, assertion, ("scope", write_scope(scopes)), *more)


def read_device_request(form: Form) -> DeviceRequest:
    """Raises `InvalidScope`, `InvalidTarget` or `InvalidOAuthRequest`."""
    return DeviceRequest(read_scope(form.one("scope") or ""), read_resources(form))


def write_device_response(authorization: DeviceAuthorization) -> Response:
    """The answer (RFC 8628 3.2), which no cache keeps."""
    document: dict[str, object] = {
        "device_code": authorization.device_code.reveal(),
        "user_code": authorization.user_code,
        "verification_uri": authorization.verification_uri,
    }
    if authorization.verification_uri_complete is not None:
        document["verification_uri_complete"] = authorization.verification_uri_complete
    return write_answer({**document, "expires_in": authorization.expires_in, "interval": authorization.interval})


def read_device_response(response: Response) -> DeviceAuthorization:
    """The answer, before `check_link`. Raises the endpoint's own error, and `InvalidOAuthResponse`."""
    if response.status != 200:
        raise read_error(response)
    document = read_answer(response)
    device_code = text_of(document, "device_code", _DEVICE_CODE)
    user_code = text_of(document, "user_code", _SHOWN_CODE)
    link = text_of(document, "verification_uri", _LINK)
    expires_in = seconds_of(document, "expires_in")
    if device_code is None or user_code is None or link is None or expires_in is None:
        raise InvalidOAuthResponse(
            "the answer lacks device_code, user_code, verification_uri or expires_in", rule="oauth.answer-member"
        )
    return DeviceAuthorization(
        Secret(device_code),
        user_code,
        link,
        text_of(document, "verification_uri_complete", _LINK),
        expires_in,
        seconds_of(document, "interval") or INTERVAL,
    )


def user_code_of(random: bytes) -> str:
    """A user code such as `WDJB-MJHT` out of at least 16 random octets (RFC 8628 6.1). ValueError for fewer."""
    if len(random) < 16:
        raise ValueError("a user code is made of at least 16 random octets")
    number, letters = int.from_bytes(random, "big"), ""
    for _ in range(LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters += LETTERS[letter]
    return f"{letters[:4]}-{letters[4:]}"


def normal_user_code(text: str) -> str:
    """What a User typed, in the form of `user_code_of`: letter case, hyphens and spaces do not matter.

    "" for what is no user code.
    """
    letters = _TYPED_BETWEEN.sub("", text[:64]).upper()
    return f"{letters[:4]}-{letters[4:]}" if _USER_CODE(letters) is not None else ""


@rule("device.link-host")
def check_link(authorization: DeviceAuthorization, *, issuer: str, protected_resources: Iterable[str]) -> None:
    """4.3: both links are https, on the host of the issuer or of one of its `protected_resources`, or below one.

    Compared on label boundaries (readings 58). For the stricter mode hand in the domain's own URL alone. Raises
    `InvalidOAuthResponse`: show the User nothing then.
    """
    hosts = [host for url in (issuer, *protected_resources) if (host := _host(url)) is not None]
    for link in (authorization.verification_uri, authorization.verification_uri_complete):
        if link is None:
            continue
        host = _https_host(link)
        if host is None or not any(host_within(host, allowed) for allowed in hosts):
            raise InvalidOAuthResponse(
                "the sign-in link does not lead to this Company",
                rule="device.link-host",
                detail=f"expected https on one of {hosts!r:.200}, found {told(link)}",
            )


def _host(url: str) -> str | None:
    try:
        return host_of(url)
    except UrlError:
        return None


def _https_host(url: str) -> str | None:
    try:
        parts = read_url(url)
    except UrlError:
        return None
    return parts.host if parts.scheme == "https" else None

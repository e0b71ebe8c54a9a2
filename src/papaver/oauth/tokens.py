"""The token and revocation endpoints (4.4, 4.6, 4.7; RFC 6749, 7009, 8628): requests and answers, both sides."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from papaver.oauth.answers import read_answer, read_error, seconds_of, text_of, write_answer, write_error
from papaver.oauth.assertions import ASSERTION_TYPE
from papaver.oauth.authorization import read_resources
from papaver.oauth.errors import InvalidOAuthRequest, InvalidOAuthResponse, InvalidScope, UnsupportedGrantType
from papaver.oauth.forms import FORM, Form, write_form
from papaver.oauth.scopes import covers, read_scope, write_scope
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Headers, Request, Response

__all__ = [
    "AUTHORIZATION_CODE",
    "DEVICE_CODE",
    "REFRESH_TOKEN",
    "CodeGrant",
    "DeviceGrant",
    "RefreshGrant",
    "TokenResponse",
    "authenticated_request",
    "check_given",
    "check_no_more_scopes",
    "check_token_type",
    "code_request",
    "device_poll_request",
    "read_error",
    "read_revocation_request",
    "read_token_request",
    "read_token_response",
    "refresh_request",
    "revocation_request",
    "write_error",
    "write_token_response",
]

AUTHORIZATION_CODE: Final = "authorization_code"
REFRESH_TOKEN: Final = "refresh_token"
DEVICE_CODE: Final = "urn:ietf:params:oauth:grant-type:device_code"

MAX_TOKEN: Final = 8192
"""A longer token, code or verifier is refused, in both directions."""

_BEARER: Final = re.compile(rf"(?=.{{1,{MAX_TOKEN}}}\Z)[A-Za-z0-9._~+/-]+=*", re.ASCII)
_TOKEN: Final = re.compile(rf"[ -~]{{1,{MAX_TOKEN}}}", re.ASCII)
_TYPE: Final = re.compile(r"[!-~]{1,200}", re.ASCII)
_SCOPE: Final = re.compile(r"[ -~]{1,4096}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """Tokens, as the token endpoint answers (4.7).

    `token_type`     `DPoP` for a token bound to the proof's key; the issuer decides for each token (4.5)
    `expires_in`     seconds; None when the issuer does not say
    `refresh_token`  None when the old one stays (RFC 6749 6)
    `scope`          granted; None is written as no `scope`, which means exactly what was requested
    """

    access_token: Secret
    token_type: Literal["Bearer", "DPoP"]
    expires_in: int | None = None
    refresh_token: Secret | None = None
    scope: tuple[str, ...] | None = None

    def lacks(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """The needed scopes that were not granted (4.7): look before going on."""
        return tuple([scope for scope in needed if scope not in (self.scope or ())])


@dataclass(frozen=True, slots=True)
class CodeGrant:
    """A code to exchange (RFC 6749 4.1.3, RFC 7636 4.5)."""

    code: Secret
    redirect_uri: str | None
    code_verifier: Secret | None = None
    resource: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshGrant:
    """A refresh (RFC 6749 6). `scope` None: what the refresh token has."""

    refresh_token: Secret
    scope: tuple[str, ...] | None = None
    resource: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceGrant:
    """A poll (RFC 8628 3.4)."""

    device_code: Secret
    resource: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Grant:
    """What every token request begins with."""

    endpoint: str
    client_id: str
    assertion: Secret
    resource: str | None = field(default=None)

    def request(self, grant_type: str, *pairs: tuple[str, str]) -> Request:
        resource = [] if self.resource is None else [("resource", self.resource)]
        pairs = (("grant_type", grant_type), *pairs, *resource)
        return authenticated_request(self.endpoint, self.client_id, self.assertion, *pairs)


def authenticated_request(endpoint: str, client_id: str, assertion: Secret, *pairs: tuple[str, str]) -> Request:
    """A POST of these parameters to an endpoint of the issuer, with the client assertion (4.1)."""
    proof = (
        ("client_id", client_id),
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", assertion.reveal()),
    )
    headers = Headers([("content-type", FORM), ("accept", "application/json")])
    return Request("POST", endpoint, headers, write_form([*pairs, *proof]))


def code_request(
    endpoint: str,
    *,
    client_id: str,
    assertion: Secret,
    code: Secret,
    verifier: Secret,
    redirect_uri: str,
    resource: str | None = None,
) -> Request:
    """Exchange a code for tokens (4.2). `redirect_uri` is the one of the authorization request."""
    return _Grant(endpoint, client_id, assertion, resource).request(
        AUTHORIZATION_CODE,
        ("code", code.reveal()),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier.reveal()),
    )


def refresh_request(
    endpoint: str,
    *,
    client_id: str,
    assertion: Secret,
    refresh_token: Secret,
    scopes: tuple[str, ...] | None = None,
    resource: str | None = None,
) -> Request:
    """A new access token (4.4), for fewer `scopes` where they are given, for one service where `resource` is (4.5)."""
    scope = [] if scopes is None else [("scope", write_scope(scopes))]
    return _Grant(endpoint, client_id, assertion, resource).request(
        REFRESH_TOKEN, ("refresh_token", refresh_token.reveal()), *scope
    )


def device_poll_request(
    endpoint: str, *, client_id: str, assertion: Secret, device_code: Secret, resource: str | None = None
) -> Request:
    """Ask whether the User has decided (4.3, RFC 8628 3.4). Each poll takes a new assertion."""
    return _Grant(endpoint, client_id, assertion, resource).request(DEVICE_CODE, ("device_code", device_code.reveal()))


def revocation_request(
    endpoint: str, *, client_id: str, assertion: Secret, token: Secret, hint: str = REFRESH_TOKEN
) -> Request:
    """Give a token back (4.6, RFC 7009 2.1)."""
    pairs = (("token", token.reveal()), ("token_type_hint", hint))
    return authenticated_request(endpoint, client_id, assertion, *pairs)


def read_token_request(form: Form) -> CodeGrant | RefreshGrant | DeviceGrant:
    """What a token request asks for; who asks is `read_assertion`'s question.

    Raises `InvalidOAuthRequest`, `UnsupportedGrantType`, `InvalidScope` or `InvalidTarget`.
    """
    grant_type = form.one("grant_type")
    check_given("grant_type", grant_type)
    if grant_type == AUTHORIZATION_CODE:
        verifier = form.one("code_verifier")
        return CodeGrant(
            code=_secret(form, "code"),
            redirect_uri=form.one("redirect_uri"),
            code_verifier=None if verifier is None else Secret(verifier),
            resource=read_resources(form),
        )
    if grant_type == REFRESH_TOKEN:
        scope = form.one("scope")
        return RefreshGrant(
            refresh_token=_secret(form, "refresh_token"),
            scope=None if scope is None else read_scope(scope),
            resource=read_resources(form),
        )
    if grant_type == DEVICE_CODE:
        return DeviceGrant(_secret(form, "device_code"), read_resources(form))
    raise UnsupportedGrantType(rule="oauth.grant-type", detail=f"found {grant_type!r:.120}")


def read_revocation_request(form: Form) -> tuple[Secret, str | None]:
    """The token and the hint about it, which may be of any kind (RFC 7009 2.1). Raises `InvalidOAuthRequest`."""
    return _secret(form, "token"), form.one("token_type_hint")


def write_token_response(response: TokenResponse) -> Response:
    """The answer with tokens (4.7, RFC 6749 5.1), which no cache keeps."""
    document: dict[str, object] = {
        "access_token": response.access_token.reveal(),
        "token_type": response.token_type,
    }
    if response.expires_in is not None:
        document["expires_in"] = response.expires_in
    if response.refresh_token is not None:
        document["refresh_token"] = response.refresh_token.reveal()
    if response.scope is not None:
        document["scope"] = write_scope(response.scope)
    return write_answer(document)


def read_token_response(response: Response, *, requested: tuple[str, ...]) -> TokenResponse:
    """The tokens of an answer; `requested` is what was asked for, at a refresh without `scope` what is held.

    `scope` of the result says what was granted, also where the answer leaves it out because that is `requested`.
    Raises the endpoint's own error, and `InvalidOAuthResponse` for an answer that must not be used.
    """
    if response.status != 200:
        raise read_error(response)
    document = read_answer(response)
    access_token = text_of(document, "access_token", _BEARER)
    token_type = text_of(document, "token_type", _TYPE)
    refresh_token = text_of(document, "refresh_token", _TOKEN)
    scope = text_of(document, "scope", _SCOPE)
    if access_token is None:
        raise InvalidOAuthResponse("the answer has no access_token", rule="oauth.answer-member")
    check_token_type(token_type)
    granted = requested if scope is None else _granted(scope)
    check_no_more_scopes(granted, requested)
    return TokenResponse(
        access_token=Secret(access_token),
        token_type="DPoP" if token_type is not None and token_type.lower() == "dpop" else "Bearer",
        expires_in=seconds_of(document, "expires_in"),
        refresh_token=None if refresh_token is None else Secret(refresh_token),
        scope=granted,
    )


@rule("oauth.parameter-given")
def check_given(name: str, value: str | None) -> None:
    """RFC 6749 5.2: what a request needs is there, and is not endless."""
    if value is None or len(value) > MAX_TOKEN:
        raise InvalidOAuthRequest(
            f"{name} is missing" if value is None else f"{name} is too long", rule="oauth.parameter-given"
        )


@rule("oauth.token-type-known")
def check_token_type(token_type: str | None) -> None:
    """4.5, RFC 6749 7.1: Bearer or DPoP, in any letter case; a token of another type could not be used rightly.

    Bearer is allowed where DPoP was offered: the Company decides for each token (RFC 9449 5).
    """
    if token_type is None or token_type.lower() not in ("bearer", "dpop"):
        raise InvalidOAuthResponse("token_type is neither Bearer nor DPoP", rule="oauth.token-type-known")


@rule("oauth.granted-within-requested")
def check_no_more_scopes(granted: tuple[str, ...], requested: tuple[str, ...]) -> None:
    """4.7: nothing is granted beyond what was requested, because that is all the User approved."""
    if not covers(requested, granted):
        raise InvalidOAuthResponse(
            "more scopes were granted than requested",
            rule="oauth.granted-within-requested",
            detail=f"requested {requested!r:.200}, granted {granted!r:.200}",
        )


def _granted(scope: str) -> tuple[str, ...]:
    try:
        return read_scope(scope)
    except InvalidScope as error:
        raise InvalidOAuthResponse("`scope` of the answer is malformed", rule=error.rule, detail=error.detail) from None


def _secret(form: Form, name: str) -> Secret:
    value = form.one(name)
    check_given(name, value)
    return Secret(value or "")

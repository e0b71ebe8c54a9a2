"""Direct Sign-In's two redirects (4.2, RFC 6749 4.1): the request to the issuer and the answer back, on both sides.

The issuer settles client and redirect URI first, because only then is there anywhere to send an error to. The client
checks `state` and `iss` first, because until then the answer is anybody's.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from papaver.oauth.answers import error_text
from papaver.oauth.client_metadata import ClientMetadata
from papaver.oauth.errors import (
    InvalidOAuthRequest,
    InvalidOAuthResponse,
    InvalidTarget,
    ProtocolError,
    UnsupportedResponseType,
    error_of,
)
from papaver.oauth.forms import Form, read_form, write_form
from papaver.oauth.pkce import METHOD, check_challenge
from papaver.oauth.scopes import read_scope, write_scope
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.told import told
from papaver.web.urls import UrlError, htu, read_url

__all__ = [
    "AuthorizationRequest",
    "authorization_url",
    "check_dpop_jkt",
    "check_iss",
    "check_redirect",
    "check_resource_form",
    "check_response_mode",
    "check_response_type",
    "check_response_url",
    "check_state",
    "check_state_form",
    "code_url",
    "error_url",
    "matches_redirect",
    "read_authorization_request",
    "read_authorization_response",
    "read_redirect",
    "read_resources",
]

MAX_CODE: Final = 4096

_LOOPBACK: Final = re.compile(
    r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?][^#]*)?)", re.ASCII | re.DOTALL
).fullmatch
_STATE: Final = re.compile(r"[ -~]{1,2048}", re.ASCII).fullmatch
_JKT: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII).fullmatch
_CODE: Final = re.compile(rf"[ -~]{{1,{MAX_CODE}}}", re.ASCII).fullmatch
_ERROR: Final = re.compile(r"[ !#-\[\]-~]{1,100}", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a Personal Agent asks for (4.2; names of RFC 6749 4.1.1, RFC 7636 4.3, RFC 8707 2, RFC 9449 10).

    `state`     as sent; None where a client left it out, which ours never does
    `resource`  services that the tokens are for; empty for the default
    `dpop_jkt`  thumbprint of the key that the code is bound to, or None
    """

    client_id: str
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str | None = field(repr=False)
    code_challenge: str
    resource: tuple[str, ...] = ()
    dpop_jkt: str | None = None


def authorization_url(endpoint: str, request: AuthorizationRequest) -> str:
    """The URL to open in the User's browser. Raises `InvalidScope` for a request without scopes (4.7)."""
    pairs = [
        ("response_type", "code"),
        ("client_id", request.client_id),
        ("redirect_uri", request.redirect_uri),
        ("scope", write_scope(request.scopes)),
        *([] if request.state is None else [("state", request.state)]),
        ("code_challenge", request.code_challenge),
        ("code_challenge_method", METHOD),
        *(("resource", resource) for resource in request.resource),
        *([] if request.dpop_jkt is None else [("dpop_jkt", request.dpop_jkt)]),
    ]
    return _with_query(endpoint, pairs)


def read_redirect(form: Form, client: ClientMetadata) -> str:
    """Where the answer of this request may go: its `redirect_uri`, when it is one of the client's.

    Raises `InvalidOAuthRequest`, which is shown to the User and never redirected (RFC 6749 4.1.2.1).
    """
    redirect_uri = form.one("redirect_uri") or ""
    check_redirect(redirect_uri, client)
    return redirect_uri


def read_authorization_request(form: Form, redirect_uri: str) -> AuthorizationRequest:
    """The rest of the request, once `read_redirect` accepted its redirect URI.

    Raises `InvalidOAuthRequest`, `UnsupportedResponseType`, `InvalidScope` or `InvalidTarget`, for `error_url`.
    """
    state = form.one("state")
    check_state_form(state)
    check_response_type(form.one("response_type"))
    check_response_mode(form.one("response_mode"))
    challenge, dpop_jkt = form.one("code_challenge"), form.one("dpop_jkt")
    check_challenge(challenge, form.one("code_challenge_method"))
    check_dpop_jkt(dpop_jkt)
    return AuthorizationRequest(
        client_id=form.one("client_id") or "",
        redirect_uri=redirect_uri,
        scopes=read_scope(form.one("scope") or ""),
        state=state,
        code_challenge=challenge or "",
        resource=read_resources(form),
        dpop_jkt=dpop_jkt,
    )


def read_resources(form: Form) -> tuple[str, ...]:
    """The values of `resource`, each once (RFC 8707 2). Raises `InvalidTarget`."""
    resources = tuple(dict.fromkeys(form.all("resource")))
    check_resource_form(resources)
    return resources


def matches_redirect(uri: str, entry: str) -> bool:
    """Whether `uri` is this entry of `redirect_uris`: character for character, but for a loopback literal's port.

    4.2, RFC 8252 7.3. `127.0.0.1` and `[::1]` are two addresses, and `localhost` is a name and neither of them.
    """
    if uri == entry:
        return True
    given, listed = _LOOPBACK(uri), _LOOPBACK(entry)
    if given is None or listed is None or given.groups() != listed.groups():
        return False
    try:
        read_url(uri)
    except UrlError:
        return False
    return True


def code_url(redirect_uri: str, *, issuer: str, state: str | None, code: Secret) -> Secret:
    """Where the browser goes with a code (RFC 6749 4.1.2, RFC 9207 2). Secret, because the code is in it."""
    return Secret(_with_query(redirect_uri, [("code", code.reveal()), *_state(state), ("iss", issuer)]))


def error_url(redirect_uri: str, *, issuer: str, state: str | None, error: ProtocolError) -> str:
    """Where the browser goes with an error, `iss` included (4.2, RFC 6749 4.1.2.1, RFC 9207 2)."""
    said = [("error", error.code), ("error_description", error_text(error.description))]
    return _with_query(redirect_uri, [*said, *_state(state), ("iss", issuer)])


def read_authorization_response(url: str, *, redirect_uri: str, issuer: str, state: str) -> Secret:
    """The code in the URL that the browser came back to; `redirect_uri`, `issuer` and `state` are the request's own.

    Raises `InvalidOAuthResponse` for an answer that is not proven to be this request's, and the issuer's own error,
    such as `AccessDenied`, only after that. What the issuer wrote about it is in `detail`, never in `description`.
    """
    try:
        form = read_form(url.partition("#")[0].partition("?")[2])
        check_response_url(url, form, redirect_uri)
        check_state(form.one("state"), state)
        check_iss(form.one("iss"), issuer)
        error, code = form.one("error"), form.one("code")
        description = form.one("error_description") or ""
    except InvalidOAuthRequest as broken:
        raise InvalidOAuthResponse(
            f"the redirect back is malformed: {broken.description}", rule=broken.rule, detail=broken.detail
        ) from None
    if error is not None and _ERROR(error) is not None:
        raise error_of(error, told(description))
    if error is not None or code is None or _CODE(code) is None:
        raise InvalidOAuthResponse("the redirect back has neither a code nor an error", rule="oauth.response-code")
    return Secret(code)


@rule("redirect.registered")
def check_redirect(redirect_uri: str, client: ClientMetadata) -> None:
    """4.2: `redirect_uri` is one of the client's `redirect_uris`. It has to be given, however many there are."""
    if not any(matches_redirect(redirect_uri, entry) for entry in client.redirect_uris):
        raise InvalidOAuthRequest(
            "redirect_uri is not in the client's redirect_uris, character for character",
            rule="redirect.registered",
            detail=f"expected one of {client.redirect_uris}, got {redirect_uri!r:.300}",
        )


@rule("oauth.state-form")
def check_state_form(state: str | None) -> None:
    """RFC 6749 appendix A.5: visible ASCII and spaces; it goes back as it came, so it is bounded."""
    if state is not None and _STATE(state) is None:
        raise InvalidOAuthRequest(
            "state is not 1 to 2048 characters of printable ASCII", rule="oauth.state-form", detail=f"{len(state)} long"
        )


@rule("oauth.response-type-code")
def check_response_type(response_type: str | None) -> None:
    """4.2: the code grant, and no other."""
    if response_type is None:
        raise InvalidOAuthRequest("response_type is missing", rule="oauth.response-type-code")
    if response_type != "code":
        raise UnsupportedResponseType(rule="oauth.response-type-code", detail=f"found {response_type!r:.80}")


@rule("oauth.response-mode-query")
def check_response_mode(response_mode: str | None) -> None:
    """The answer is in the redirect's query (RFC 6749 4.1.2); whoever asks for it elsewhere would not find it."""
    if response_mode not in (None, "query"):
        raise InvalidOAuthRequest(
            "response_mode can only be query",
            rule="oauth.response-mode-query",
            detail=f"found {response_mode!r:.80}",
        )


@rule("oauth.dpop-jkt-form")
def check_dpop_jkt(dpop_jkt: str | None) -> None:
    """RFC 9449 10: the thumbprint of a key, as RFC 7638 writes one."""
    if dpop_jkt is not None and _JKT(dpop_jkt) is None:
        raise InvalidOAuthRequest("dpop_jkt is not a JWK thumbprint", rule="oauth.dpop-jkt-form")


@rule("oauth.resource-form")
def check_resource_form(resources: tuple[str, ...]) -> None:
    """RFC 8707 2: each is an absolute URL without a fragment. Whether it is served here is the issuer's question."""
    for resource in resources:
        try:
            fragment = read_url(resource).fragment
        except UrlError:
            fragment = ""
        if fragment is not None:
            raise InvalidTarget(
                "resource is not an absolute URL without a fragment", rule="oauth.resource-form", detail=told(resource)
            )


@rule("oauth.response-at-redirect-uri")
def check_response_url(url: str, form: Form, redirect_uri: str) -> None:
    """RFC 6749 4.1.2: the answer comes to the redirect URI that was asked for, whose own query it keeps."""
    path, _, query = redirect_uri.partition("?")
    try:
        elsewhere = htu(url) != htu(path)
    except UrlError:
        elsewhere = True
    if elsewhere or any(form.get(name) != values for name, values in read_form(query).items()):
        raise InvalidOAuthResponse(
            "the redirect back is not to the redirect_uri of the request",
            rule="oauth.response-at-redirect-uri",
            detail=f"expected {redirect_uri}",
        )


@rule("oauth.response-state")
def check_state(found: str | None, state: str) -> None:
    """RFC 6749 10.12: the answer is to this request, of this browser. Compared in constant time."""
    if found is None or not hmac.compare_digest(found.encode(), state.encode()):
        reason = "has no state" if found is None else "has another state than the request"
        raise InvalidOAuthResponse(f"the redirect back {reason}", rule="oauth.response-state")


@rule("oauth.response-iss")
def check_iss(found: str | None, issuer: str) -> None:
    """4.2, RFC 9207 2.4: `iss` is there, on errors too, and is the issuer asked, character for character."""
    if found != issuer:
        raise InvalidOAuthResponse(
            "the redirect back has no iss" if found is None else "the redirect back is from another issuer",
            rule="oauth.response-iss",
            detail=f"expected {issuer}, found {told(found or '(none)')}",
        )


def _state(state: str | None) -> list[tuple[str, str]]:
    return [] if state is None else [("state", state)]


def _with_query(url: str, pairs: list[tuple[str, str]]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{write_form(pairs).decode('ascii')}"

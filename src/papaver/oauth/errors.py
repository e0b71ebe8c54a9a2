"""The errors of OAuth: one class per code of an RFC, and what a metadata document of either side may be refused for.

PapaverError
└── OAuthError
    ├── InvalidMetadata          a server's or a resource's metadata          RFC 8414, RFC 9728
    ├── InvalidClientMetadata    invalid_client_metadata                      RFC 7591 3.2.2, 4.1
    │   └── InvalidRedirectUri   invalid_redirect_uri                         RFC 7591 3.2.2, 4.1
    ├── InvalidOAuthResponse     a server's answer, or a redirect back        4.2, 4.3, 4.7
    ├── InvalidAccessToken       invalid_token                                RFC 6750 3.1, RFC 9068 4
    └── ProtocolError            an error response of an OAuth endpoint
        ├── InvalidOAuthRequest       invalid_request              RFC 6749 4.1.2.1, 5.2
        ├── InvalidClient             invalid_client               RFC 6749 5.2
        ├── InvalidGrant              invalid_grant                RFC 6749 5.2
        ├── UnauthorizedClient        unauthorized_client          RFC 6749 4.1.2.1, 5.2
        ├── UnsupportedGrantType      unsupported_grant_type       RFC 6749 5.2
        ├── UnsupportedResponseType   unsupported_response_type    RFC 6749 4.1.2.1
        ├── InvalidScope              invalid_scope                RFC 6749 4.1.2.1, 5.2
        ├── AccessDenied              access_denied                RFC 6749 4.1.2.1, RFC 8628 3.5
        ├── ServerError               server_error                 RFC 6749 4.1.2.1
        ├── TryLater                  temporarily_unavailable      RFC 6749 4.1.2.1
        ├── UnsupportedTokenType      unsupported_token_type       RFC 7009 2.2.1
        ├── InvalidTarget             invalid_target               RFC 8707 2
        ├── AuthorizationPending      authorization_pending        RFC 8628 3.5
        ├── SlowDown                  slow_down                    RFC 8628 3.5
        ├── ExpiredToken              expired_token                RFC 8628 3.5
        ├── InvalidDpopProof          invalid_dpop_proof           RFC 9449 5, 7.1
        ├── UseDpopNonce              use_dpop_nonce               RFC 9449 8, 9
        └── UnknownCode               any other code, as received
"""

from __future__ import annotations

from papaver.values.errors import PapaverError

__all__ = [
    "AccessDenied",
    "AuthorizationPending",
    "ExpiredToken",
    "InvalidAccessToken",
    "InvalidClient",
    "InvalidClientMetadata",
    "InvalidDpopProof",
    "InvalidGrant",
    "InvalidMetadata",
    "InvalidOAuthRequest",
    "InvalidOAuthResponse",
    "InvalidRedirectUri",
    "InvalidScope",
    "InvalidTarget",
    "OAuthError",
    "ProtocolError",
    "ServerError",
    "SlowDown",
    "TryLater",
    "UnauthorizedClient",
    "UnknownCode",
    "UnsupportedGrantType",
    "UnsupportedResponseType",
    "UnsupportedTokenType",
    "UseDpopNonce",
    "error_of",
]


class OAuthError(PapaverError):
    """An error of OAuth. `code` is the RFC's own where it has one."""


class InvalidMetadata(OAuthError):
    """Metadata that must not be used. `expected` and `found` are the differing values, where there are two."""

    code = "invalid_metadata"
    description = "the metadata cannot be used"

    def __init__(
        self, description: str = "", *, rule: str = "", detail: str = "", expected: str = "", found: str = ""
    ) -> None:
        self.expected = expected
        self.found = found
        super().__init__(description, rule=rule, detail=detail)


class InvalidClientMetadata(OAuthError):
    """A client metadata document, or a `client_id`, that no Company may accept (4.1)."""

    code = "invalid_client_metadata"
    description = "the client metadata document cannot be used"


class InvalidRedirectUri(InvalidClientMetadata):
    """An entry of `redirect_uris` that is neither https on the client's host nor a loopback URI (4.1)."""

    code = "invalid_redirect_uri"
    description = "a redirect URI cannot be used"


class InvalidOAuthResponse(OAuthError):
    """What came back from an issuer, directly or by the User's browser, and must not be used (4.2, 4.3, 4.7)."""

    code = "invalid_oauth_response"
    description = "the answer of the authorization server cannot be used"


class InvalidAccessToken(OAuthError):
    """An access token of an issuer that does not stand (RFC 6750 3.1)."""

    code = "invalid_token"
    description = "the access token is unknown, expired, revoked or not for this Company"


class ProtocolError(OAuthError):
    """An error response of an OAuth endpoint, given or received. It knows its code, never its status or place."""


class InvalidOAuthRequest(ProtocolError):
    code = "invalid_request"
    description = "the request is malformed"


class InvalidClient(ProtocolError):
    code = "invalid_client"
    description = "the client is not accepted or did not authenticate"


class InvalidGrant(ProtocolError):
    code = "invalid_grant"
    description = "the code or token is invalid, expired, revoked, or was issued to another client"


class UnauthorizedClient(ProtocolError):
    code = "unauthorized_client"
    description = "this client may not use this sign-in type here"


class UnsupportedGrantType(ProtocolError):
    code = "unsupported_grant_type"
    description = "the grant type is not supported"


class UnsupportedResponseType(ProtocolError):
    code = "unsupported_response_type"
    description = "the response type is not supported; use code"


class InvalidScope(ProtocolError):
    code = "invalid_scope"
    description = "the scope is missing, malformed, unknown, or more than was granted"


class AccessDenied(ProtocolError):
    code = "access_denied"
    description = "the User declined"


class ServerError(ProtocolError):
    code = "server_error"
    description = "the server failed"


class TryLater(ProtocolError):
    code = "temporarily_unavailable"
    description = "this cannot be done right now; try again later"


class UnsupportedTokenType(ProtocolError):
    code = "unsupported_token_type"
    description = "this type of token cannot be revoked here"


class InvalidTarget(ProtocolError):
    code = "invalid_target"
    description = "the resource is unknown here"


class AuthorizationPending(ProtocolError):
    code = "authorization_pending"
    description = "the User has not decided yet"


class SlowDown(ProtocolError):
    code = "slow_down"
    description = "polled too often; wait five seconds longer between polls"


class ExpiredToken(ProtocolError):
    code = "expired_token"
    description = "the device code has expired"


class InvalidDpopProof(ProtocolError):
    code = "invalid_dpop_proof"
    description = "the DPoP proof is missing or does not verify"


class UseDpopNonce(ProtocolError):
    """`nonce` is the one to use, sent in `DPoP-Nonce`."""

    code = "use_dpop_nonce"
    description = "the DPoP proof needs a nonce that this server provides"

    def __init__(self, nonce: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.nonce = nonce
        super().__init__(description, rule=rule, detail=detail)


class UnknownCode(ProtocolError):
    """A received code that is none of the above, or is not known here."""

    def __init__(self, code: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.code = code
        super().__init__(description or "the server refused", rule=rule, detail=detail)


_CODES = {
    kind.code: kind
    for kind in (
        InvalidOAuthRequest,
        InvalidClient,
        InvalidGrant,
        UnauthorizedClient,
        UnsupportedGrantType,
        UnsupportedResponseType,
        InvalidScope,
        AccessDenied,
        ServerError,
        TryLater,
        UnsupportedTokenType,
        InvalidTarget,
        AuthorizationPending,
        SlowDown,
        ExpiredToken,
        InvalidDpopProof,
    )
}


def error_of(code: str, description: str = "", *, nonce: str | None = None) -> ProtocolError:
    """The error of a received `code`; `description` is the other party's own sentence, for people only."""
    if code == UseDpopNonce.code and nonce is not None:
        return UseDpopNonce(nonce, detail=description)
    kind = _CODES.get(code)
    return UnknownCode(code, detail=description) if kind is None else kind(detail=description)

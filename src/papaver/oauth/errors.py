"""The errors of OAuth's documents: what a metadata document of either side may be refused for.

PapaverError
└── OAuthError
    ├── InvalidMetadata         a server's or a resource's metadata          RFC 8414, RFC 9728
    ├── InvalidClientMetadata   invalid_client_metadata                      RFC 7591 3.2.2, 4.1
    └── InvalidRedirectUri      invalid_redirect_uri                         RFC 7591 3.2.2, 4.1
"""

from __future__ import annotations

from papaver.values.errors import PapaverError

__all__ = ["InvalidClientMetadata", "InvalidMetadata", "InvalidRedirectUri", "OAuthError"]


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

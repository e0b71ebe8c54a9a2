"""An issuer that is a table of tokens: a Company's accounts without an OAuth flow. No sockets, no store."""

from __future__ import annotations

from typing import Any, Final

from papaver.company.incoming import Incoming
from papaver.company.sign_in import IssuerParts, Scope
from papaver.oauth.access_tokens import AccessToken
from papaver.ports.grants import digest
from papaver.protocol.errors import InvalidToken
from papaver.testing.keys import AgentKeys
from papaver.web.messages import Response

__all__ = ["SCOPES", "TokenTable", "bearer"]

SCOPES: Final = (Scope("orders:read", "See orders"), Scope("orders:write", "Change orders"))
CLIENT: Final = AgentKeys().client_id


class TokenTable:
    """`Company(sign_in=TokenTable())`, its running form and its verifier in one. `rechecks` counts."""

    issuer = "https://example.com"
    authorization_endpoint = "https://example.com/authorize"
    token_endpoint = "https://example.com/token"
    dpop = shows_pages = False

    def __init__(self) -> None:
        self._tokens: dict[str, AccessToken] = {}
        self._hashes: dict[str, str] = {}
        self.rechecks = 0

    def issue(self, token: str, account: str, *scopes: str, until: float | None = None, client: str = CLIENT) -> str:
        self._hashes[digest(token)] = token
        self._tokens[token] = AccessToken(client, account, frozenset(scopes), until)
        return token

    def revoke(self, token: str) -> None:
        del self._tokens[token]

    def run(self, parts: IssuerParts) -> TokenTable:
        return self

    @property
    def verifier(self) -> TokenTable:
        return self

    async def verify(self, token: str) -> AccessToken:
        found = self._tokens.get(token)
        if found is None:
            raise InvalidToken(rule="test.token")
        return found

    async def recheck(self, ath: str, token: AccessToken) -> None:
        self.rechecks += 1
        if self._hashes.get(ath) not in self._tokens:
            raise InvalidToken(rule="test.token")

    def owns(self, host: str, path: str) -> bool:
        return False

    async def answer(self, incoming: Incoming) -> Response:
        raise NotImplementedError

    async def sweep(self) -> None:
        """There is nothing that ends."""


def bearer(token: str) -> dict[str, Any]:
    """What a bench's request says to be sent with this token."""
    return {"headers": {"authorization": f"Bearer {token}"}, "access_token": token}

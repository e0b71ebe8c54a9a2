"""An issuer whose access tokens a test makes up: what a Company does with tokens, without any sign-in."""

from __future__ import annotations

from collections.abc import Mapping

from papaver.company.incoming import Incoming
from papaver.company.sign_in import IssuerParts
from papaver.jose.keys import PrivateKey
from papaver.oauth.access_tokens import AccessToken
from papaver.ports.grants import digest
from papaver.protocol.errors import InvalidToken
from papaver.testing.keys import NOW, compact
from papaver.web.messages import Response

__all__ = ["ISSUER", "HeldIssuer", "proof"]

ISSUER = "https://auth.example.com"
CLIENT = "https://agent.example/agent.json"


def proof(
    key: PrivateKey, method: str, url: str, token: str, *, jose: Mapping[str, object] | None = None, **claims: object
) -> str:
    """A DPoP proof for one request with `token`, correct but for what `jose` and `claims` replace or OMIT."""
    header = {"typ": "dpop+jwt", "alg": key.alg, "jwk": key.public.jwk(), **(jose or {})}
    body = {"jti": "prf_1", "htm": method, "htu": url, "iat": int(NOW), "ath": digest(token), **claims}
    return compact(key, header, body)


class HeldIssuer:
    """`Company(sign_in=HeldIssuer())`: `issue` makes a token good, `revoke` ends it. It serves nothing of its own.

    `asked` counts how often a token was looked up.
    """

    shows_pages = False

    def __init__(self, issuer: str = ISSUER, *, dpop: bool = True) -> None:
        self.issuer, self.dpop = issuer, dpop
        self.authorization_endpoint = f"{issuer.rstrip('/')}/authorize"
        self.token_endpoint = f"{issuer.rstrip('/')}/token"
        self.tokens: dict[str, AccessToken] = {}
        self.asked = 0

    def issue(
        self,
        token: str = "token-of-dana",
        account: str = "dana",
        *scopes: str,
        client_id: str = CLIENT,
        audience: tuple[str, ...] = (),
        jkt: str | None = None,
        expires_at: float | None = NOW + 300.0,
    ) -> str:
        """The token, good from now on."""
        self.tokens[digest(token)] = AccessToken(client_id, account, frozenset(scopes), expires_at, audience, jkt)
        return token

    def revoke(self, token: str) -> None:
        del self.tokens[digest(token)]

    def run(self, parts: IssuerParts) -> HeldIssuer:
        return self

    @property
    def verifier(self) -> HeldIssuer:
        return self

    async def verify(self, token: str) -> AccessToken:
        self.asked += 1
        return self._find(digest(token))

    async def recheck(self, ath: str, token: AccessToken) -> None:
        self._find(ath)

    def owns(self, host: str, path: str) -> bool:
        return False

    async def answer(self, incoming: Incoming) -> Response:
        raise AssertionError("it owns nothing")

    async def sweep(self) -> None:
        """Nothing is over."""

    def _find(self, ath: str) -> AccessToken:
        found = self.tokens.get(ath)
        if found is None:
            raise InvalidToken(rule="test.token-known")
        return found

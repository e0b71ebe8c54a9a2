"""Access tokens of an issuer that is not ours: JWTs by its keys (RFC 9068), or judged by its word (RFC 7662)."""

from __future__ import annotations

from dataclasses import replace

from papaver.company.bounded import Bounded
from papaver.company.issuer_documents import IssuerDocuments
from papaver.company.settings import CompanyLimits
from papaver.company.sign_in import TokenForgotten
from papaver.jose.issuer_keys import IssuerKeySet
from papaver.oauth.access_tokens import (
    AccessToken,
    TokenProfile,
    introspection_request,
    read_introspection,
    read_jwt_access_token,
)
from papaver.oauth.errors import InvalidAccessToken, OAuthError
from papaver.ports.personal_agent import Poster
from papaver.ports.system import Clock, FetchFailed
from papaver.protocol.errors import InvalidToken, TemporarilyUnavailable
from papaver.protocol.session import ath
from papaver.values.secret import Secret

__all__ = ["IntrospectedTokens", "JwtTokens"]

UNKNOWN_KEY = "jws.kid"
RETRY_AFTER = 5
ANSWER_BYTES = 64 * 1024


def _usual(found: AccessToken, audience: tuple[str, ...], usual: str) -> AccessToken:
    """An audience that the operator says is the Company's own becomes the Company's name for itself."""
    if not any(one in audience for one in found.audience):
        return found
    return replace(found, audience=tuple(usual if one in audience else one for one in found.audience))


class JwtTokens:
    """A `TokenVerifier` by the issuer's keys. What verified is remembered until it ends, or the key set changes."""

    def __init__(
        self,
        issuer: str,
        documents: IssuerDocuments,
        audience: tuple[str, ...],
        usual: str,
        profile: TokenProfile,
        clock: Clock,
        limits: CompanyLimits,
    ) -> None:
        self._issuer, self._documents, self._audience, self._usual = issuer, documents, audience, usual
        self._profile, self._clock = profile, clock
        self._known: Bounded[str, tuple[IssuerKeySet, AccessToken]] = Bounded(limits.tokens_cached)

    async def verify(self, token: str) -> AccessToken:
        """Raises InvalidToken, TemporarilyUnavailable."""
        keys, token_ath, now = await self._documents.keys(), ath(token), self._clock.now()
        known = self._known.find(token_ath)
        if known is not None and known[0] is keys and known[1].expires_at is not None and now < known[1].expires_at:
            return known[1]
        self._known.drop(token_ath)
        try:
            found = self._read(token, keys, now)
        except InvalidToken as error:
            newer = await self._documents.newer_keys() if error.rule == UNKNOWN_KEY else None
            if newer is None or newer is keys:
                raise
            keys, found = newer, self._read(token, newer, now)
        self._known.put(token_ath, (keys, found))
        return found

    async def recheck(self, ath: str, token: AccessToken) -> None:
        """A JWT ends with its time, which the caller knows (readings 3)."""

    def _read(self, token: str, keys: IssuerKeySet, now: float) -> AccessToken:
        try:
            found = read_jwt_access_token(token, keys, issuer=self._issuer, now=now, profile=self._profile)
        except InvalidAccessToken as error:
            raise InvalidToken(rule=error.rule, detail=error.detail) from None
        return _usual(found, self._audience, self._usual)


class IntrospectedTokens:
    """A `TokenVerifier` that asks the issuer each time, so that what is revoked there stops here at once."""

    def __init__(
        self,
        issuer: str,
        url: str,
        authorization: Secret | None,
        audience: tuple[str, ...],
        usual: str,
        profile: TokenProfile,
        poster: Poster,
        clock: Clock,
        limits: CompanyLimits,
    ) -> None:
        self._issuer, self._url, self._authorization = issuer, url, authorization
        self._audience, self._usual, self._profile = audience, usual, profile
        self._poster, self._clock, self._seconds = poster, clock, limits.introspection_seconds
        self._held: Bounded[str, Secret] = Bounded(limits.held_in_all)

    async def verify(self, token: str) -> AccessToken:
        """Raises InvalidToken, TemporarilyUnavailable."""
        secret = Secret(token)
        found = await self._ask(secret)
        self._held.put(ath(token), secret)
        return found

    async def recheck(self, ath: str, token: AccessToken) -> None:
        """Asks again, for as long as the token is remembered (readings 3)."""
        secret = self._held.find(ath)
        if secret is None:
            raise TokenForgotten(rule="token.active", detail="not remembered any more, so the issuer is not asked")
        await self._ask(secret)

    async def _ask(self, token: Secret) -> AccessToken:
        request = introspection_request(self._url, token, authorization=self._authorization)
        try:
            response = await self._poster.post(request, self._seconds, ANSWER_BYTES)
            found = read_introspection(response, self._clock.now(), issuer=self._issuer, profile=self._profile)
        except InvalidAccessToken as error:
            raise InvalidToken(rule=error.rule, detail=error.detail) from None
        except (FetchFailed, OAuthError) as error:
            raise TemporarilyUnavailable(
                RETRY_AFTER, rule=error.rule or "token.introspection", detail=f"{self._url}: {error.detail}"
            ) from None
        return _usual(found, self._audience, self._usual)

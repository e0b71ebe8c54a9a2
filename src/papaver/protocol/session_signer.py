"""The Session header on a Personal Agent's side (5.2): one delegated key signs for one User ID, until it expires."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from papaver.jose import jws
from papaver.jose.keys import PrivateKey
from papaver.protocol.delegation import DelegationExpired, read_delegation
from papaver.protocol.session import SessionProfile, ath
from papaver.protocol.session_jwt import SessionClaims
from papaver.protocol.terms import AgentId, ClientId, CompanyId, SessionId, UserId
from papaver.values.base64url import encode
from papaver.web.urls import htu

__all__ = ["SessionSigner"]

_encode_claims = msgspec.json.Encoder().encode


class SessionSigner:
    """Signs the Session JWTs of one User ID at one Company with one delegated key, and no other User ID's (5.2).

    `client_id`, `company_id`, `user_id`  what every JWT of this key says; fixed for the signer's life
    `expires_at`                          the delegation's `exp` in Unix seconds; nothing is signed from then on
    """

    __slots__ = ("_header_and_dot", "_sign", "client_id", "company_id", "expires_at", "kid", "user_id")

    def __init__(
        self,
        profile: SessionProfile,
        key: PrivateKey,
        delegation: str,
        *,
        client_id: ClientId,
        company_id: CompanyId,
        user_id: UserId,
    ) -> None:
        """`delegation` is the compact JWT that vouches for `key`. ValueError when it does not, or is not ours."""
        if key.alg != profile.alg:
            raise ValueError(f"a delegated key signs {profile.alg}, not {key.alg}")
        claims = read_delegation(delegation).claims
        if claims.cnf.jwk != key.public.jwk():
            raise ValueError("the delegation is for another key")
        if claims.iss != client_id:
            raise ValueError("the delegation is another client's")
        self.client_id = client_id
        self.company_id = company_id
        self.user_id = user_id
        self.expires_at = claims.exp
        self.kid = key.public.thumbprint
        self._sign = key.sign
        more = {profile.delegation_member: delegation}
        self._header_and_dot = jws.header_segment(typ=profile.typ, alg=profile.alg, kid=self.kid, more=more) + b"."

    def sign(
        self,
        *,
        sid: SessionId,
        method: str,
        url: str,
        now: float,
        jti: str,
        agent_id: AgentId | None = None,
        access_token: str | None = None,
    ) -> str:
        """The header value for one request: `url` as it is sent, `now` in Unix seconds, `jti` unique and unguessable.

        Raises DelegationExpired from the delegation's `exp` on (5.2), and UrlError for a URL that cannot be requested.
        """
        if now >= self.expires_at:
            raise DelegationExpired(detail=f"exp {self.expires_at}, now {now:.0f}")
        claims = SessionClaims(
            self.client_id,
            self.company_id,
            sid,
            self.user_id,
            method,
            htu(url),
            int(now),
            jti,
            UNSET if access_token is None else ath(access_token),
            UNSET if agent_id is None else agent_id,
        )
        signing_input = self._header_and_dot + encode(_encode_claims(claims)).encode()
        return f"{signing_input.decode()}.{encode(self._sign(signing_input))}"

    def __repr__(self) -> str:
        return f"SessionSigner(kid={self.kid!r}, expires_at={self.expires_at})"

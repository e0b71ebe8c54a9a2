"""A Personal Agent's keys and documents for tests, and Session headers that may be wrong in any one place.

Names and claims are written out here on purpose, apart from the code under test: a wrong name there shows here.
Everything is signed correctly, whatever it says, unless another key is handed in.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from enum import Enum
from typing import Final

from papaver.jose.keys import PrivateKey, write_key_set
from papaver.values.base64url import encode
from papaver.values.strict_json import dumps
from papaver.web.urls import htu

__all__ = ["NOW", "OMIT", "AgentKeys", "compact"]

NOW: Final = 1_790_900_000
"""The time that these fixtures are made for, in Unix seconds."""


class _Omit(Enum):
    OMIT = "OMIT"

    def __repr__(self) -> str:
        return "OMIT"


OMIT: Final = _Omit.OMIT
"""As the value of a claim or header member: leave it out."""


def compact(key: PrivateKey, header: Mapping[str, object], payload: Mapping[str, object] | bytes) -> str:
    """A compact JWS with exactly this header and payload, signed by `key`."""
    members = {name: value for name, value in header.items() if value is not OMIT}
    body = payload if isinstance(payload, bytes) else dumps({n: v for n, v in payload.items() if v is not OMIT})
    signing_input = f"{encode(dumps(members))}.{encode(body)}"
    return f"{signing_input}.{encode(key.sign(signing_input.encode()))}"


class AgentKeys:
    """One Personal Agent: a key in its `jwks_uri`, one delegated key, and its documents.

    `identity`   signs delegations (ES256 unless `alg` says PS384)          `delegated`  signs Session JWTs
    """

    def __init__(
        self,
        client_id: str = "https://agent.example/agent.json",
        *,
        alg: str = "ES256",
        identity: PrivateKey | None = None,
        delegated: PrivateKey | None = None,
    ) -> None:
        self.client_id = client_id
        self.jwks_uri = client_id.rpartition("/")[0] + "/jwks.json"
        self.identity = identity or PrivateKey.generate("PS384" if alg == "PS384" else "ES256")
        self.delegated = delegated or PrivateKey.generate()
        self._count = itertools.count(1)
        self._delegations: dict[int, str] = {}

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The key-set document at `jwks_uri`."""
        return write_key_set([self.identity.public])

    def metadata(self, **members: object) -> dict[str, object]:
        """The client metadata document at `client_id` (4.1), with `members` replaced, added or omitted."""
        document: dict[str, object] = {
            "client_id": self.client_id,
            "client_name": "Example Agent",
            "jwks_uri": self.jwks_uri,
            "redirect_uris": [self.client_id.rpartition("/")[0] + "/oauth/callback"],
            "token_endpoint_auth_method": "private_key_jwt",
        }
        return {name: value for name, value in {**document, **members}.items() if value is not OMIT}

    def documents(self) -> dict[str, bytes]:
        """Both documents, URL → body."""
        return {self.client_id: dumps(self.metadata()), self.jwks_uri: dumps(self.jwks())}

    def fresh(self, label: str = "jti") -> str:
        """A value of 22 characters that no other call of this object returns, the same in every run."""
        seed = f"{self.client_id} {label} {next(self._count)}"
        return encode(hashlib.sha256(seed.encode()).digest()[:16])

    def delegation(
        self,
        now: float = NOW,
        *,
        key: PrivateKey | None = None,
        signer: PrivateKey | None = None,
        jose: Mapping[str, object] | None = None,
        **claims: object,
    ) -> str:
        """A delegation for `key` (default: `delegated`), signed by `signer` (default: `identity`), made 60 s ago.

        It lasts six hours. `jose` and `claims` replace, add or OMIT members of header and payload.
        """
        signer = signer or self.identity
        header = {"alg": signer.alg, "typ": "poppy-delegation+jwt", "kid": self.identity.kid, **(jose or {})}
        made = int(now) - 60
        body: dict[str, object] = {
            "iss": self.client_id,
            "cnf": {"jwk": (key or self.delegated).public.jwk()},
            "iat": made,
            "exp": made + 21_600,
            "jti": self.fresh("delegation"),
            **claims,
        }
        return compact(signer, header, body)

    def header(
        self,
        method: str,
        url: str,
        company_id: str,
        *,
        now: float = NOW,
        key: PrivateKey | None = None,
        delegation: object = None,
        jose: Mapping[str, object] | None = None,
        access_token: str | None = None,
        payload: bytes | None = None,
        **claims: object,
    ) -> str:
        """The value of `Poppy-Session` for one request.

        `key` signs it in place of `delegated`; `delegation` replaces the one that is made once per hour of `now`;
        `jose` and `claims` replace, add or OMIT members of header and payload; `payload` takes the place of all claims.
        """
        hour = int(now) // 3600
        if delegation is None:
            delegation = self._delegations.get(hour) or self._delegations.setdefault(hour, self.delegation(now))
        header = {
            "typ": "poppy-session+jwt",
            "alg": "ES256",
            "kid": self.delegated.public.thumbprint,
            "poppy_dlg": delegation,
            **(jose or {}),
        }
        hashed = {} if access_token is None else {"ath": encode(hashlib.sha256(access_token.encode()).digest())}
        body: dict[str, object] = {
            "iss": self.client_id,
            "aud": company_id,
            "sid": "sid_Yx2b7Qd",
            "sub": "usr_dana",
            "htm": method,
            "htu": htu(url),
            "iat": int(now),
            "jti": self.fresh(),
            **hashed,
            **claims,
        }
        return compact(key or self.delegated, header, body if payload is None else payload)

"""Accounts for the figures: a hundred Users signed in, written to the store as the issuer would have written them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

from joserfc import jws as oracle
from joserfc.jwk import RSAKey

from bench.agent import Agent
from bench.serving import http_request
from papaver.oauth.assertions import ASSERTION_TYPE, make_assertion
from papaver.oauth.forms import FORM, write_form
from papaver.ports.company import DocumentRow
from papaver.ports.grants import AccessRow, GrantChange, GrantKeys, GrantRow, RefreshRow, digest
from papaver.protocol.terms import AccountId, ClientId, CompanyId
from papaver.stores.sqlite import SqliteStore

__all__ = ["ISSUER", "JWKS_URI", "SCOPE", "ExternalKey", "refresh_request", "seed"]

ISSUER = "https://shop.example/auth"
JWKS_URI = "https://shop.example/auth-jwks.json"
SCOPE = "orders:read"
DAY = 86_400


def seed(store: Path, agent: Agent, users: int, families: int) -> tuple[list[str], list[str]]:
    """Access tokens, one for each User, and refresh tokens, each of a family of its own. Nobody has the store open."""
    return asyncio.run(_seed(store, agent, users, families))


async def _seed(path: Path, agent: Agent, users: int, families: int) -> tuple[list[str], list[str]]:
    store, now = SqliteStore(path), time.time()
    access = [f"access-{number:06d}-{'x' * 30}" for number in range(users)]
    refresh = [f"refresh-{number:06d}-{'x' * 30}" for number in range(families)]
    await store.open()
    tables = await store.tables(CompanyId(ISSUER))
    for url, body in agent.keys.documents().items():
        await tables.clients.keep_document(DocumentRow(url, body, now, now + 3600))
    client = ClientId(agent.keys.client_id)
    for number in range(max(users, families)):
        account, first = AccountId(f"acct_{number:04d}"), digest(f"first {number}")
        token = digest(refresh[number]) if number < families else first
        grant = GrantRow(
            f"grant_{number:06d}", client, "Bench", account, (SCOPE,), "direct", now, now + 90 * DAY, token
        )
        rows = (
            (AccessRow(digest(access[number]), grant.id, client, account, (SCOPE,), now + DAY),)
            if number < users
            else ()
        )
        change = GrantChange(None, grants=(grant,), refresh=(RefreshRow(token, grant.id),), access=rows)
        await tables.grants.apply(GrantKeys(), lambda _, change=change: change)
    await store.close()
    return access, refresh


def refresh_request(agent: Agent, token: str) -> bytes:
    """A refresh at the token endpoint, with a client assertion of its own (4.4)."""
    keys = agent.keys
    assertion = make_assertion(
        keys.identity, client_id=keys.client_id, issuer=ISSUER, now=time.time(), jti=keys.fresh("assertion")
    )
    body = write_form(
        [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", keys.client_id),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", assertion.reveal()),
        ]
    )
    return http_request("POST", "/auth/token", [("content-type", FORM)], body)


class ExternalKey:
    """An issuer that is not ours: RS256, as most are."""

    def __init__(self) -> None:
        self._key = RSAKey.generate_key(2048, {"kid": "k1"})

    def documents(self) -> dict[str, str]:
        return {JWKS_URI: json.dumps({"keys": [self._key.as_dict(private=False)]})}

    def tokens(self, agent: Agent, accounts: Sequence[str]) -> list[str]:
        """One access token for each account (RFC 9068)."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": "https://shop.example",
            "client_id": agent.keys.client_id,
            "scope": SCOPE,
            "iat": now,
            "exp": now + DAY,
        }
        header = {"typ": "at+jwt", "alg": "RS256", "kid": "k1"}
        return [
            oracle.serialize_compact(header, json.dumps({**claims, "sub": one}), self._key, algorithms=["RS256"])
            for one in accounts
        ]

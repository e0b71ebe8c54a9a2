"""Delegated keys (5.2): one for each User ID, vouched for by a key of `jwks_uri`, replaced before that ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from papaver.jose.keys import PrivateKey
from papaver.personal_agent.flows.effects import Flow, exclusive, keep, load
from papaver.personal_agent.identity import Identity
from papaver.personal_agent.records import DELEGATED_KEY, DelegatedKeyRow, read_row, row_key, write_row
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import Ids
from papaver.protocol.delegation import issue_delegation
from papaver.protocol.session import SessionProfile
from papaver.protocol.session_signer import SessionSigner
from papaver.protocol.terms import CompanyId, UserId

__all__ = ["DelegatedKeys"]

SKEW = 30
"""Seconds that a delegation may be dated ahead of the Company's clock; Companies allow 60 (readings 17)."""


class _Held(NamedTuple):
    signer: SessionSigner
    iat: int


@dataclass(slots=True)
class DelegatedKeys:
    """The signers in use. A key is made for one User ID at one Company and signs for no other (5.2, 10.7).

    The vault keeps key and delegation, so that a restart goes on with them. Anonymous Users have a vault that forgets.
    """

    identity: Identity
    limits: AgentLimits
    ids: Ids
    _held: dict[tuple[str, str], _Held] = field(default_factory=dict[tuple[str, str], _Held])

    def signer(self, profile: SessionProfile, company: CompanyId, user: UserId, now: float) -> Flow[SessionSigner]:
        """Who signs for this User ID. `now` is the Company's time, in Unix seconds."""
        held = self._held.get((company, user))
        if held is not None and self._usable(held.iat, held.signer.expires_at, now):
            return held.signer
        renewed = yield from exclusive(f"{DELEGATED_KEY} {user}", self._renewed(profile, company, user, now))
        self._held[company, user] = renewed
        return renewed.signer

    def forget(self, user: UserId) -> None:
        """Drop what is held for an anonymous User ID."""
        for key in [key for key in self._held if key[1] == user]:
            del self._held[key]

    def _renewed(self, profile: SessionProfile, company: CompanyId, user: UserId, now: float) -> Flow[_Held]:
        """The stored key when it is good for a while, else a new one. Runs under a lock: one key for each User ID."""
        key = row_key(company, user)
        row = yield from self._stored(key)
        if row is None or not self._usable(row.iat, row.exp, now) or not self._vouched_by_current(row):
            fresh = row = self._made(profile, company, user, now)
            yield from keep(DELEGATED_KEY, key, lambda _: write_row(fresh))
        signer = SessionSigner(
            profile,
            PrivateKey.read(row.jwk),
            row.delegation,
            client_id=self.identity.client_id,
            company_id=company,
            user_id=user,
        )
        return _Held(signer, row.iat)

    def _stored(self, key: str) -> Flow[DelegatedKeyRow | None]:
        value = yield from load(DELEGATED_KEY, key)
        return None if value is None else read_row(DelegatedKeyRow, value)

    def _made(self, profile: SessionProfile, company: CompanyId, user: UserId, now: float) -> DelegatedKeyRow:
        delegated = PrivateKey.generate("ES256")
        iat = int(now)
        exp = iat + self.limits.delegation_lifetime
        signer = self.identity.keys.current
        delegation = issue_delegation(
            signer,
            profile.delegation,
            client_id=self.identity.client_id,
            delegated=delegated.public,
            iat=iat,
            exp=exp,
            jti=self.ids.token(),
        )
        return DelegatedKeyRow(
            company=company,
            user_id=user,
            kid=delegated.public.thumbprint,
            iat=iat,
            exp=exp,
            jwk=delegated.private_jwk(),
            delegation=delegation,
            signed_by=signer.kid,
            client_id=self.identity.client_id,
        )

    def _usable(self, iat: int, exp: int, now: float) -> bool:
        """Good for the time that a request may take, by the Company's clock."""
        return iat - SKEW <= now < exp - self.limits.delegation_renewed

    def _vouched_by_current(self, row: DelegatedKeyRow) -> bool:
        """By a key that is still published, for this `client_id`; a removed key's delegations are void (10.7)."""
        published: Mapping[str, object] = {key.kid: key for key in self.identity.keys.public_keys}
        return row.signed_by in published and row.client_id == self.identity.client_id

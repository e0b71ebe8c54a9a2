"""A request's Session: the shell around 5.3's ladder, in the order of readings 5, and how Sessions end (5.5)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from papaver.company.clients import Client, Clients
from papaver.company.limits import Rates, check_rate
from papaver.company.settings import CompanyLimits
from papaver.ports.company import ReplayKey, SessionRow, SessionStore
from papaver.ports.system import Clock, Ids
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.dialect import Dialect
from papaver.protocol.errors import InvalidSession, PoppyError
from papaver.protocol.extensions import EXTENSIONS_HEADER, read_extensions
from papaver.protocol.session import (
    BoundSession,
    ProvenSession,
    SessionJwt,
    VerifiedSession,
    bind,
    expect,
    open_session,
)
from papaver.protocol.terms import ClientId, CompanyId, SessionId, UserId
from papaver.web.messages import Headers

__all__ = ["OpenedSession", "Sessions"]

SEEN_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A Session that may be relied on, its stored row, and the replay key of this request."""

    verified: VerifiedSession
    row: SessionRow
    replay: ReplayKey


class Sessions:
    """The Sessions of one Company. `end` and `end_user` are the operator's: `await company.sessions.end(…)`."""

    def __init__(
        self,
        company_id: CompanyId,
        store: SessionStore,
        clients: Clients,
        clock: Clock,
        ids: Ids,
        limits: CompanyLimits,
    ) -> None:
        self._company_id, self._store, self._clients = company_id, store, clients
        self._clock, self._ids, self._limits = clock, ids, limits
        self._delegations = DelegationCache(limits.delegations, limits.delegations_per_client)
        self._rates = Rates(limits.rates_kept)
        self._live: OrderedDict[tuple[ClientId, SessionId], SessionRow] = OrderedDict()

    async def prove(self, dialect: Dialect, method: str, url: str, headers: Headers, peer: str) -> BoundSession:
        """Steps 1 to 3 of 5.3, and the limits of 5.6: nothing is stored yet. Raises a PoppyError."""
        now = self._clock.now()
        claimed = ""
        try:
            jwt = dialect.session.read(headers)
            claimed = jwt.iss
            client = await self._clients.load(ClientId(claimed), peer)
            proven = await self._verify(dialect, jwt, client, method, url, peer)
        except PoppyError as error:
            error.detail = f"{error.detail}; claims to be {claimed[:200]!r}"
            check_rate(self._rates, f"address {peer}", self._limits.requests_per_address, now)
            raise
        await self._clients.proven(proven.client_id)
        check_rate(self._rates, f"client {proven.client_id}", self._limits.requests_per_client, now)
        check_rate(self._rates, f"user {proven.client_id} {proven.user_id}", self._limits.requests_per_user, now)
        return bind(proven, None)

    async def open(self, dialect: Dialect, bound: BoundSession, headers: Headers) -> OpenedSession:
        """Step 4: the Session is new, or continues (5.3). Raises InvalidSession or SessionEnded."""
        proven, now = bound.proven, self._clock.now()
        key = (proven.client_id, proven.sid)
        row = self._live.get(key)
        if row is None or now > row.seen_at + SEEN_EVERY:
            fresh = SessionRow(
                key=self._ids.token(),
                client_id=proven.client_id,
                sid=proven.sid,
                user_id=proven.user_id,
                agent_id=proven.agent_id,
                seen_at=now,
            )
            row = await self._store.open(fresh, forget_before=now - self._limits.session_idle)
            self._remember(key, row)
        verified = open_session(bound, row, version=str(dialect.version), extensions=_declared(dialect, headers))
        until = proven.iat + self._limits.iat_window + 1
        return OpenedSession(verified, row, ReplayKey(proven.client_id, proven.jti, until))

    def forget(self, row: SessionRow) -> None:
        """Ask the store the next time."""
        self._live.pop((row.client_id, row.sid), None)

    async def end(self, client_id: ClientId, sid: SessionId) -> bool:
        """End one Session; False when there is no live one. Its next request gets `session_ended` (5.5)."""
        self._live.pop((client_id, sid), None)
        return await self._store.end(client_id, sid, self._clock.now())

    async def end_user(self, client_id: ClientId, user_id: UserId) -> int:
        """End every live Session of a User; how many."""
        self._live = OrderedDict((key, row) for key, row in self._live.items() if row.user_id != user_id)
        return await self._store.end_user(client_id, user_id, self._clock.now())

    async def sweep(self) -> int:
        """Forget Sessions that were idle or ended for long (5.5; limits.md)."""
        now = self._clock.now()
        return await self._store.sweep(
            forget_before=now - self._limits.session_idle, ended_before=now - self._limits.session_remembered
        )

    async def _verify(
        self, dialect: Dialect, jwt: SessionJwt, client: Client, method: str, url: str, peer: str
    ) -> ProvenSession:
        expected = expect(
            company_id=self._company_id,
            method=method,
            url=url,
            now=self._clock.now(),
            iat_window=self._limits.iat_window,
        )
        try:
            return dialect.session.verify(jwt, client.keys, expected, self._delegations)
        except InvalidSession as error:
            if error.rule != "delegation.signed-by-jwks-key":
                raise
            newer = await self._clients.reload(client, peer)
            if newer is None:
                raise
        return dialect.session.verify(jwt, newer.keys, expected, self._delegations)

    def _remember(self, key: tuple[ClientId, SessionId], row: SessionRow) -> None:
        if row.ended_at is not None:
            self._live.pop(key, None)
            return
        self._live[key] = row
        self._live.move_to_end(key)
        if len(self._live) > self._limits.rates_kept:
            self._live.popitem(last=False)


def _declared(dialect: Dialect, headers: Headers) -> Mapping[str, str]:
    return read_extensions(headers.all(EXTENSIONS_HEADER))

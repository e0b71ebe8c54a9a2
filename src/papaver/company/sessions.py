"""A request's Session: the shell around 5.3's ladder, in the order of readings 5, and how Sessions end (5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from papaver.company.bounded import Bounded
from papaver.company.clients import Client, Clients
from papaver.company.limits import check_rate, is_of_one_party, network_of
from papaver.company.settings import CompanyLimits
from papaver.company.tokens import Tokens
from papaver.ports.company import ReplayKey, SessionRow, SessionStore
from papaver.ports.system import Clock, Ids
from papaver.protocol.access_token import read_access_token
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.dialect import Challenged, Dialect
from papaver.protocol.errors import InvalidSession, RateLimited
from papaver.protocol.extensions import EXTENSIONS_HEADER, read_extensions
from papaver.protocol.session import (
    AccountAccess,
    BoundSession,
    Expected,
    ProvenSession,
    SessionJwt,
    VerifiedSession,
    bind,
    check_ath,
    check_not_ended,
    expect,
    open_session,
)
from papaver.protocol.terms import ClientId, CompanyId, SessionId, UserId
from papaver.values.rules import rule
from papaver.web.messages import Headers
from papaver.web.urls import UrlError

__all__ = ["FLOOD", "OpenedSession", "Sessions", "check_flood"]

SEEN_EVERY: Final = 60.0
FLOOD: Final = 10
"""So many times the limit of an address, and nothing that it sends is looked at."""
FLOODS_KEPT: Final = 1000
UNKNOWN_SIGNER: Final = "delegation.signed-by-jwks-key"


@rule("limits.flood")
def check_flood(floods: Bounded[str, float], network: str, now: float) -> None:
    """5.6: an address that is far over its limit costs no signature check more, whatever it sends.

    `floods`: addresses, and until when.
    """
    until = floods.find(network)
    if until is None:
        return
    if now < until:
        raise RateLimited(max(1, int(until - now) + 1), rule="limits.flood", detail=f"address {network}")
    floods.drop(network)


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
        tokens: Tokens,
        clock: Clock,
        ids: Ids,
        limits: CompanyLimits,
    ) -> None:
        self._company_id, self._store, self._clients, self._tokens = company_id, store, clients, tokens
        self._clock, self._ids, self._limits = clock, ids, limits
        self._delegations = DelegationCache(limits.delegations, limits.delegations_per_client)
        self._rates = clients.counters.rates("sessions", limits.rates_kept)
        self._floods: Bounded[str, float] = Bounded(FLOODS_KEPT)
        self._live: Bounded[tuple[ClientId, SessionId], SessionRow] = Bounded(limits.rates_kept)

    async def prove(self, dialect: Dialect, jwt: SessionJwt, method: str, url: str, peer: str) -> ProvenSession:
        """Steps 1 and 2 of 5.3: nothing is stored yet. Raises a PoppyError."""
        client = await self._clients.load(ClientId(jwt.iss), peer)
        proven = await self._verify(dialect, jwt, client, method, url, peer)
        if not self._clients.is_known(proven.client_id):
            await self._clients.proven(client)
        return proven

    async def bind(self, proven: ProvenSession, headers: Headers, method: str, url: str) -> BoundSession:
        """The limits of 5.6 (readings 5), then step 3 of 5.3: the request's access token, or that there is none.

        Raises RateLimited, InvalidRequest, InvalidSession, InvalidToken, TemporarilyUnavailable (readings 6).
        """
        now, client = self._clock.now(), proven.client_id
        check_rate(self._rates, ("client", client), self._limits.requests_per_client, now)
        check_rate(self._rates, ("user", client, proven.user_id), self._limits.requests_per_user, now)
        carried = read_access_token(headers)
        if carried is None:
            return bind(proven, None)
        check_ath(proven, carried.token.reveal())
        access = await self._tokens.identify(carried)
        bound = bind(proven, access)
        await self._tokens.check(carried, access, headers, method, url)
        return bound

    async def without_session(self, headers: Headers, method: str, url: str) -> AccountAccess | None:
        """The access token of a request to an endpoint that uses no Session (5.3); None when it is signed out.

        Raises RateLimited, InvalidRequest, InvalidToken, TemporarilyUnavailable.
        """
        carried = read_access_token(headers)
        if carried is None:
            return None
        access = await self._tokens.identify(carried)
        check_rate(self._rates, ("client", access.client_id), self._limits.requests_per_client, self._clock.now())
        await self._tokens.check_client(access)
        await self._tokens.check(carried, access, headers, method, url)
        return access

    async def recheck(self, opened: OpenedSession) -> None:
        """Whether the access token of a held request is still good now (readings 3); signed out it always is.

        Raises InvalidToken, TemporarilyUnavailable.
        """
        await self._tokens.recheck(opened.verified.access)

    async def holds(self, access: AccountAccess) -> bool:
        """Whether a turn may still use the access token of an earlier request (readings 26).

        Raises TemporarilyUnavailable.
        """
        return await self._tokens.holds(access)

    def challenged(self, url: str) -> Challenged:
        """What the challenges of a request to `url` say."""
        return self._tokens.challenged(url)

    def check_address(self, peer: str) -> None:
        """Before anything is verified: raises RateLimited when this address is far over its limit (5.6)."""
        if self._floods:
            check_flood(self._floods, network_of(peer), self._clock.now())

    def count_unverified(self, peer: str) -> None:
        """Count a request that proved nothing; raises RateLimited when its address has sent too many (5.6)."""
        limit, now, network = self._limits.requests_per_address, self._clock.now(), network_of(peer)
        wait = self._rates.count(("flood", network), FLOOD * limit, now)
        if wait and is_of_one_party(network):
            self._floods.put(network, now + wait)
        check_rate(self._rates, ("address", network), limit, now)

    async def open(
        self, dialect: Dialect, bound: BoundSession, headers: Headers, *, remembered: bool = False
    ) -> OpenedSession:
        """Step 4: the Session is new, or continues (5.3). Raises InvalidSession or SessionEnded.

        `remembered`: a row read within the last minute will do, because what is done next looks at it again.
        """
        proven, now = bound.proven, self._clock.now()
        key = (proven.client_id, proven.sid)
        row = self._live.find(key)
        if row is not None and (now > row.seen_at + SEEN_EVERY or not remembered):
            # Seen within the minute there is nothing to write; whether it has ended meanwhile is read.
            row = await self._store.load(*key) if now <= row.seen_at + SEEN_EVERY else None
        if row is None:
            fresh = SessionRow(
                key=self._ids.token(),
                client_id=proven.client_id,
                sid=proven.sid,
                user_id=proven.user_id,
                agent_id=proven.agent_id,
                seen_at=now,
            )
            row = await self._store.open(fresh, forget_before=now - self._limits.session_idle)
            if row.ended_at is None:
                self._live.put(key, row)
        verified = open_session(bound, row, version=str(dialect.version), extensions=_declared(headers))
        await self._tokens.check_account(row.key, bound.access)
        until = proven.iat + self._limits.iat_window + 1
        return OpenedSession(verified, row, ReplayKey(proven.client_id, proven.jti, until))

    async def check_open(self, opened: OpenedSession) -> None:
        """Raises SessionEnded when the Session of a remembered row has ended meanwhile, by whatever process."""
        row = await self._store.load(opened.row.client_id, opened.row.sid)
        if row is not None:
            self.check_row(opened, row)

    def check_row(self, opened: OpenedSession, row: SessionRow) -> None:
        """As `check_open`, for a row that was just read."""
        if row.ended_at is not None:
            self.forget(opened.row)
        check_not_ended(row)

    def forget(self, row: SessionRow) -> None:
        """Ask the store the next time."""
        self._live.drop((row.client_id, row.sid))

    async def end(self, client_id: ClientId, sid: SessionId) -> bool:
        """End one Session; False when there is no live one. Its next request gets `session_ended` (5.5)."""
        ended = await self._store.end(client_id, sid, self._clock.now())
        self._live.drop((client_id, sid))
        return ended

    async def end_user(self, client_id: ClientId, user_id: UserId) -> int:
        """End every live Session of a User; how many."""
        ended = await self._store.end_user(client_id, user_id, self._clock.now())
        self._live.drop_all()
        return ended

    async def sweep(self) -> int:
        """Forget Sessions idle or ended for long (5.5), and clients and documents of long ago; how many Sessions."""
        now = self._clock.now()
        await self._clients.sweep()
        return await self._store.sweep(
            forget_before=now - self._limits.session_idle, ended_before=now - self._limits.session_remembered
        )

    async def _verify(
        self, dialect: Dialect, jwt: SessionJwt, client: Client, method: str, url: str, peer: str
    ) -> ProvenSession:
        expected = self._expected(method, url)
        try:
            return dialect.session.verify(jwt, client.keys, expected, self._delegations)
        except InvalidSession as error:
            if error.rule != UNKNOWN_SIGNER:
                raise
            newer = await self._clients.reload(client, peer)
            if newer is None:
                raise
        return dialect.session.verify(jwt, newer.keys, expected, self._delegations)

    def _expected(self, method: str, url: str) -> Expected:
        try:
            return expect(
                company_id=self._company_id,
                method=method,
                url=url,
                now=self._clock.now(),
                iat_window=self._limits.iat_window,
            )
        except UrlError as error:
            raise InvalidSession(
                "the request's URL is none that an htu can name", rule="session.htu-is-url", detail=error.description
            ) from None


def _declared(headers: Headers) -> Mapping[str, str]:
    return read_extensions(headers.all(EXTENSIONS_HEADER))

"""A request's access token, judged (4.5, 5.3 step 3, 7): whose it is, for which service, and with which key."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from papaver.company.bounded import Bounded
from papaver.company.clients import Clients
from papaver.company.services import Services
from papaver.company.settings import CompanyLimits
from papaver.company.sign_in import TokenForgotten, TokenVerifier
from papaver.oauth.access_tokens import AccessToken
from papaver.ports.company import CompanyTables
from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, TicketRow, digest
from papaver.ports.system import Clock
from papaver.protocol.access_token import (
    CarriedToken,
    check_for_this_service,
    check_no_token,
    check_not_expired,
    check_scheme,
)
from papaver.protocol.dialect import Challenged
from papaver.protocol.errors import InvalidSession, InvalidToken, SessionEnded
from papaver.protocol.session import AccountAccess, ath
from papaver.protocol.terms import AccountId, ClientId
from papaver.values.rules import rule
from papaver.web.messages import Headers
from papaver.web.urls import protected_resource_metadata_url

__all__ = ["ProofVerifier", "Tokens", "check_same_account"]

log = logging.getLogger("papaver.company.tokens")

ACCOUNT_OF_SESSION: Final = "session-account"


class ProofVerifier(Protocol):
    """Judges the DPoP proof of a request (RFC 9449 4.3). `algs`: what it takes."""

    @property
    def algs(self) -> tuple[str, ...]: ...

    async def verify(self, headers: Headers, method: str, url: str, access: AccountAccess) -> None:
        """Raises InvalidToken."""
        ...


@rule("session.same-account")
def check_same_account(first: str, account_id: AccountId) -> None:
    """5.4, readings 25: where account changes are refused, a Session stays with the first account that it used."""
    if first != account_id:
        raise SessionEnded(rule="session.same-account", detail="the Session used another account before")


class Tokens:
    """The access tokens of one Company. Without a `verifier` it has no issuer, and no token is good.

    `proofs`  None where no token is bound to a key
    `usual`   audiences of tokens that are good at every service without tokens of its own
    """

    def __init__(
        self,
        verifier: TokenVerifier | None,
        services: Services,
        usual: frozenset[str],
        clients: Clients,
        tables: CompanyTables,
        clock: Clock,
        limits: CompanyLimits,
        proofs: ProofVerifier | None = None,
        *,
        refuse_account_change: bool = False,
    ) -> None:
        self._verifier, self._services, self._usual, self._clients = verifier, services, usual, clients
        self._tables, self._clock, self._limits, self._proofs = tables, clock, limits, proofs
        self._refuse_account_change = refuse_account_change
        self._accounts: Bounded[str, str] = Bounded(limits.rates_kept)
        self._schemes = ("Bearer",) if proofs is None else ("Bearer", "DPoP")

    async def identify(self, carried: CarriedToken) -> AccountAccess:
        """Whose token it is. Whether it is good for a request, `check` tells.

        Raises InvalidToken, TemporarilyUnavailable.
        """
        if self._verifier is None:
            check_no_token(carried)
            raise AssertionError  # never reached: the line before refuses every token
        token = carried.token.reveal()
        found = await self._verifier.verify(token)
        return AccountAccess(
            ath(token),
            found.client_id,
            AccountId(found.subject),
            found.scopes,
            found.expires_at,
            found.audience,
            found.jkt,
        )

    async def check(
        self, carried: CarriedToken, access: AccountAccess, headers: Headers, method: str, url: str
    ) -> None:
        """Scheme, proof and service of a token that was identified. Raises InvalidToken."""
        check_scheme(carried.scheme, access.jkt)
        if access.jkt is not None:
            if self._proofs is None:
                raise InvalidToken("DPoP-bound tokens are not accepted here", rule="token.scheme-as-bound")
            await self._proofs.verify(headers, method, url, access)
        check_for_this_service(access.audience, self._services.find(url), self._usual)

    async def check_client(self, access: AccountAccess) -> None:
        """A client that is not accepted has no valid tokens (4.1, readings 57); asked where no Session is verified."""
        try:
            await self._clients.check(ClientId(access.client_id))
        except InvalidSession as error:
            raise InvalidToken(rule=error.rule, detail=error.detail) from None

    async def recheck(self, access: AccountAccess | None) -> None:
        """Whether a request's token, verified before, is still good (readings 3).

        Raises InvalidToken, TemporarilyUnavailable.
        """
        if access is None:
            return
        check_not_expired(access.expires_at, self._clock.now())
        if self._verifier is not None:
            token = AccessToken(
                access.client_id, access.account_id, access.scopes, access.expires_at, access.audience, access.jkt
            )
            await self._verifier.recheck(access.ath, token)

    async def holds(self, access: AccountAccess) -> bool:
        """Whether a turn may still use the token of an earlier request: not once it is revoked, its account disabled or
        its client blocked (readings 26). Raises TemporarilyUnavailable.

        An opaque token that this process does not remember cannot be asked about: it counts by its scopes and its end.
        """
        try:
            await self.check_client(access)
            if access.ath:
                await self.recheck(access)
        except TokenForgotten:
            return True
        except InvalidToken as error:
            log.info("the token of an earlier request is good no more: %s", error.rule)
            return False
        return True

    async def check_account(self, session_key: str, access: AccountAccess | None) -> None:
        """Where account changes are refused: that this Session used no other before. Raises SessionEnded."""
        if access is None or not self._refuse_account_change:
            return
        first = self._accounts.find(session_key)
        if first is None:
            first = await self._first_account(session_key, access.account_id)
            self._accounts.put(session_key, first)
        check_same_account(first, access.account_id)

    async def _first_account(self, session_key: str, account_id: AccountId) -> str:
        """The account that a Session used first, on whatever replica; `account_id` becomes it when there was none."""
        key = (ACCOUNT_OF_SESSION, digest(session_key))
        until = self._clock.now() + self._limits.session_remembered

        def decide(loaded: GrantLoaded) -> GrantChange[str]:
            before = loaded.tickets.get(key)
            first = account_id if before is None else before.value.decode()
            return GrantChange(first, put_tickets=(TicketRow(*key, first.encode(), until),))

        return await self._tables.grants.apply(GrantKeys(tickets=(key,)), decide)

    def challenged(self, url: str) -> Challenged:
        """What the challenges of a request to `url` say besides the error (section 7; RFC 9728 5.1)."""
        service = self._services.find(url)
        metadata = None if service is None else protected_resource_metadata_url(service)
        return Challenged(self._schemes, () if self._proofs is None else self._proofs.algs, metadata)

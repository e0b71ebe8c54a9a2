"""Sign-ins that go on in a browser: begun here, authenticated by the app, decided here or on the app's own page."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from urllib.parse import quote

from papaver.company.authserver.configuration import Configuration
from papaver.company.authserver.interactions import (
    Decided,
    Deciding,
    InteractionOver,
    decide_interaction,
    decide_opened,
    decide_signed_in,
    interaction_keys,
)
from papaver.company.authserver.tickets import (
    INTERACTION,
    Asked,
    Interaction,
    Redirect,
    key_of,
    read_ticket,
    write_ticket,
)
from papaver.oauth.authorization import code_url, error_url
from papaver.ports.grants import GrantChange, GrantKeys, GrantStore, digest
from papaver.ports.system import Clock, Ids
from papaver.protocol.terms import AccountId
from papaver.values.secret import Secret

__all__ = ["SignIns"]


class SignIns:
    """The interactions of one issuer. An interaction's secret is in URLs of the issuer and of the sign-in page only."""

    def __init__(self, configuration: Configuration, grants: GrantStore, clock: Clock, ids: Ids) -> None:
        self._configuration, self._grants, self._clock, self._ids = configuration, grants, clock, ids

    async def begin(
        self,
        browser: str,
        *,
        asked: Asked | None = None,
        redirect: Redirect | None = None,
        device: tuple[str, str] | None = None,
    ) -> str:
        """Begin one in the browser with this cookie; where to send it: the app's sign-in page.

        `device`: the digest of the device code, and the user code, which the consent page shows again.
        """
        secret = self._ids.token(32) + ("" if device is None else f".{device[1]}")
        expires_at = self._clock.now() + self._configuration.limits.authorization_request
        found = Interaction(digest(browser), expires_at, asked, redirect, None if device is None else device[0])
        ticket = write_ticket(key_of(INTERACTION, secret), found, expires_at)
        await self._grants.apply(GrantKeys(), lambda _: GrantChange(None, put_tickets=(ticket,)))
        page = self._configuration.sign_in_page
        page = self._configuration.origin + page if page.startswith("/") else page
        return f"{page}{'&' if '?' in page else '?'}interaction={secret}"

    async def find(self, secret: str) -> Interaction:
        """An interaction that is open. Raises InteractionOver."""
        found = await self._read(secret)
        if found is None or self._clock.now() >= found.expires_at:
            raise InteractionOver(rule="interaction.open", detail="unknown, decided or expired")
        return found

    async def signed_in(self, secret: str, account: AccountId, name: str) -> str:
        """The User is `account`: the URL of the page that goes on. Raises InteractionOver."""
        ticket = self._ids.token(32)
        decide = functools.partial(
            decide_signed_in,
            interaction=digest(secret),
            account=account,
            name=name,
            ticket=digest(ticket),
            now=self._clock.now(),
        )
        found = await self._grants.apply(GrantKeys(tickets=(key_of(INTERACTION, secret),)), decide)
        page = "connected" if found.asked is None else "consent"
        return f"{self._configuration.root}/{page}?interaction={quote(secret)}&ticket={ticket}"

    async def decide(
        self, secret: str, account: AccountId | None, scopes: Sequence[str], ticket: str | None = None
    ) -> tuple[Decided, Secret]:
        """Approve these scopes or decline, once; how it ended, and where the browser goes. Raises InteractionOver."""
        code = Secret(self._ids.token(32))
        ask = Deciding(
            interaction=digest(secret),
            account=account,
            scopes=scopes,
            code=digest(code.reveal()),
            code_lifetime=self._configuration.limits.code,
            now=self._clock.now(),
            ticket=None if ticket is None else digest(ticket),
        )
        keys = GrantKeys(tickets=interaction_keys(secret, await self._read(secret)), account=account)
        decided = await self._grants.apply(keys, functools.partial(decide_interaction, ask=ask))
        return decided, self._back(decided, code)

    async def open_agents(self, secret: str, browser: str, ticket: str) -> Interaction:
        """The page of connected agents is opened: once, in the browser it began in. Raises InteractionOver."""
        decide = functools.partial(
            decide_opened,
            interaction=digest(secret),
            browser=digest(browser),
            ticket=digest(ticket),
            now=self._clock.now(),
        )
        return await self._grants.apply(GrantKeys(tickets=(key_of(INTERACTION, secret),)), decide)

    def _back(self, decided: Decided, code: Secret) -> Secret:
        redirect, issuer = decided.redirect, self._configuration.issuer
        if redirect is None:
            done = "approved" if decided.error is None else "declined"
            return Secret(f"{self._configuration.root}/consent?done={done}")
        if decided.error is not None:
            return Secret(error_url(redirect.uri, issuer=issuer, state=redirect.state, error=decided.error))
        return code_url(redirect.uri, issuer=issuer, state=redirect.state, code=code)

    async def _read(self, secret: str) -> Interaction | None:
        return read_ticket(Interaction, await self._grants.ticket(key_of(INTERACTION, secret)))

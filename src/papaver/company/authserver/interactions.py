"""A sign-in between its start and the User's decision: begun in one browser, signed in by one account, decided once."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from papaver.company.authserver.devices import check_device_fresh
from papaver.company.authserver.tickets import (
    CODE,
    DEVICE,
    INTERACTION,
    Asked,
    Code,
    Device,
    Interaction,
    Redirect,
    key_of,
    read_ticket,
    write_ticket,
)
from papaver.oauth.errors import AccessDenied, ExpiredToken, ProtocolError
from papaver.ports.grants import GrantChange, GrantLoaded, TicketKey
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = [
    "Decided",
    "Deciding",
    "InteractionOver",
    "check_asks",
    "check_browser",
    "check_leads_to_agents",
    "check_same_account",
    "check_ticket",
    "decide_interaction",
    "decide_opened",
    "decide_signed_in",
    "find_interaction",
    "interaction_keys",
]


class InteractionOver(PapaverError):
    """A sign-in that cannot go on: it is unknown, too old, decided already, or another account's."""

    code = "interaction_over"
    description = "this sign-in is over; start again in the app that sent you here"


@dataclass(frozen=True, slots=True)
class Deciding:
    """The User's decision. `account` None: declined by whoever has the interaction.

    `scopes`  as approved; empty declines                     `code`  digest of the code to issue, and how long it lives
    `ticket`  what the consent page was opened with; None when the app has a page of its own
    """

    interaction: str
    account: str | None
    scopes: Sequence[str]
    code: str
    code_lifetime: float
    now: float
    ticket: str | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """How it ended. `redirect` in Direct Sign-In; `error` None: approved."""

    redirect: Redirect | None
    error: ProtocolError | None


@rule("interaction.browser")
def check_browser(interaction: Interaction, browser: str) -> None:
    """RFC 9700 4.7: only the browser that a sign-in began in goes on with it; nobody is made to finish another's."""
    if not hmac.compare_digest(interaction.browser, browser):
        raise InteractionOver(rule="interaction.browser", detail="another browser")


@rule("interaction.ticket")
def check_ticket(interaction: Interaction, ticket: str) -> None:
    """The page is opened by who was sent there after signing in, and by nobody who only knows of the sign-in."""
    if not interaction.ticket or not hmac.compare_digest(interaction.ticket, ticket):
        raise InteractionOver(rule="interaction.ticket", detail="another ticket")


@rule("interaction.one-account")
def check_same_account(interaction: Interaction, account: str) -> None:
    """Who signed in first decides; another account does not take over (C53)."""
    if interaction.account is not None and interaction.account != account:
        raise InteractionOver(rule="interaction.one-account", detail="another account signed in before")


@rule("interaction.asks")
def check_asks(interaction: Interaction) -> None:
    """Where nobody asks for access there is nothing to decide."""
    if interaction.asked is None:
        raise InteractionOver(rule="interaction.asks", detail="it leads to the connected agents")


@rule("interaction.leads-to-agents")
def check_leads_to_agents(interaction: Interaction) -> None:
    """A sign-in that an agent asked for opens its consent page and no other."""
    if interaction.asked is not None or interaction.account is None:
        raise InteractionOver(rule="interaction.leads-to-agents", detail="it is an agent's sign-in")


def find_interaction(loaded: GrantLoaded, key: TicketKey, now: float) -> Interaction:
    """The interaction of this key, as it stands. Raises InteractionOver when it is unknown, decided or too old."""
    found = read_ticket(Interaction, loaded.tickets.get(key))
    if found is None or now >= found.expires_at:
        raise InteractionOver(rule="interaction.open", detail="unknown, decided or expired")
    return found


def decide_signed_in(
    loaded: GrantLoaded, interaction: str, account: str, name: str, ticket: str, now: float
) -> GrantChange[Interaction]:
    """Somebody signed in: the interaction is that account's, and `ticket`, a digest, opens its page."""
    key = (INTERACTION, interaction)
    found = find_interaction(loaded, key, now)
    check_same_account(found, account)
    signed_in = msgspec.structs.replace(found, account=account, name=name, ticket=ticket)
    return GrantChange(signed_in, put_tickets=(write_ticket(key, signed_in, found.expires_at),))


def decide_interaction(loaded: GrantLoaded, ask: Deciding) -> GrantChange[Decided]:
    """Approve or decline, once. Raises InteractionOver.

    No scope is granted that was not asked for; without any it is a decline (4.7).
    """
    key = (INTERACTION, ask.interaction)
    found = find_interaction(loaded, key, ask.now)
    asked = found.asked
    check_asks(found)
    if ask.ticket is not None:
        check_ticket(found, ask.ticket)
    if ask.account is not None:
        check_same_account(found, ask.account)
    approved = () if asked is None else tuple(scope for scope in asked.scopes if scope in ask.scopes)
    declined = ask.account is None or not approved or loaded.disabled
    granted = None if declined or asked is None else msgspec.structs.replace(asked, scopes=approved)
    if found.device is not None:
        return _decide_device(loaded, key, (DEVICE, found.device), granted, ask)
    redirect = found.redirect
    if granted is None or redirect is None:
        return GrantChange(Decided(redirect, AccessDenied(rule="interaction.declined")), drop_tickets=(key,))
    expires_at = ask.now + ask.code_lifetime
    code = Code(granted, redirect, ask.account or "", ask.now, expires_at)
    return GrantChange(
        Decided(redirect, None),
        put_tickets=(write_ticket((CODE, ask.code), code, expires_at),),
        drop_tickets=(key,),
    )


def decide_opened(
    loaded: GrantLoaded, interaction: str, browser: str, ticket: str, now: float
) -> GrantChange[Interaction]:
    """The page of connected agents is opened, once, by who was sent there in this browser. Both are digests."""
    key = (INTERACTION, interaction)
    found = find_interaction(loaded, key, now)
    check_browser(found, browser)
    check_ticket(found, ticket)
    check_leads_to_agents(found)
    return GrantChange(found, drop_tickets=(key,))


def _decide_device(
    loaded: GrantLoaded, key: TicketKey, device_key: TicketKey, granted: Asked | None, ask: Deciding
) -> GrantChange[Decided]:
    row = loaded.tickets.get(device_key)
    device = read_ticket(Device, row)
    if row is None or device is None or device.state != "pending":
        raise InteractionOver(rule="interaction.open", detail="the device's request is gone or decided")
    try:
        check_device_fresh(device, ask.now)
    except ExpiredToken:
        raise InteractionOver(rule="interaction.open", detail="the device code has expired") from None
    if granted is None:
        decided, error = msgspec.structs.replace(device, state="denied"), AccessDenied(rule="interaction.declined")
    else:
        decided, error = (
            msgspec.structs.replace(device, state="approved", asked=granted, account=ask.account, signed_in_at=ask.now),
            None,
        )
    return GrantChange(
        Decided(None, error), put_tickets=(write_ticket(device_key, decided, row.expires_at),), drop_tickets=(key,)
    )


def interaction_keys(interaction: str, found: Interaction | None) -> tuple[TicketKey, ...]:
    """The tickets to load for a decision about an interaction with this secret."""
    keys: tuple[TicketKey, ...] = (key_of(INTERACTION, interaction),)
    return keys if found is None or found.device is None else (*keys, (DEVICE, found.device))

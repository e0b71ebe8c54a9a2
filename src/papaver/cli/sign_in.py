"""`papaver sign-in` and `papaver sign-out`: the User's account at a Company (4.2, 4.3, 5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import click

from papaver.cli.needs import as_user
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.showing import moment, show_device, show_link
from papaver.cli.waiting import elsewhere, first, pasted, seconds_until
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, SignedIn

if TYPE_CHECKING:
    from papaver.adapters.httpx2.personal_agent import HttpSession, PersonalAgent
    from papaver.values.secret import Secret

__all__ = ["sign_in", "sign_in_there", "sign_out"]

LOOPBACK = ("127.0.0.1", "::1")


@command("sign-in", example='papaver sign-in shop.example --scope "orders:read orders:write"')
@click.argument("domain")
@click.option("--scope", "scopes", multiple=True, required=True, metavar="S", help="May be repeated, or name several.")
@click.option("--device", is_flag=True, help="Device Sign-In: for a browser that cannot come back to this machine.")
@click.option("--no-open", is_flag=True, help="Open no browser; the link is shown.")
@click.option("--user", default="me", show_default=True, help="Your name for the User; no Company sees it.")
def sign_in(run: Run, domain: str, scopes: tuple[str, ...], device: bool, no_open: bool, user: str) -> None:
    """Have the User sign in at the Company of DOMAIN, and approve scopes there. No token is ever shown.

    The browser comes back to this machine; where it cannot, paste the address that it ends at, and press Enter.
    """
    wanted = [one for scope in scopes for one in scope.split(" ") if one]
    if not wanted:
        raise click.UsageError("--scope names no scope")
    asyncio.run(_sign_in(run, domain, wanted, True if device else None, no_open, user))


@command("sign-out", example="papaver sign-out shop.example")
@click.argument("domain")
@click.option("--user", default="me", show_default=True, help="Your name for the User; no Company sees it.")
def sign_out(run: Run, domain: str, user: str) -> None:
    """Sign the User out at the Company of DOMAIN: every refresh token that is held for the account is revoked."""
    asyncio.run(_sign_out(run, domain, user))


async def _sign_in(run: Run, domain: str, scopes: Sequence[str], device: bool | None, no_open: bool, user: str) -> None:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        session = (await agent.discover(domain)).session(user)
        await sign_in_there(run, agent, session, scopes, device=device, no_open=no_open)


async def sign_in_there(
    run: Run,
    agent: PersonalAgent,
    session: HttpSession,
    scopes: Sequence[str],
    *,
    device: bool | None = None,
    no_open: bool = False,
    lines: asyncio.Queue[Secret | None] | None = None,
) -> None:
    """Begin it, show the User where, wait, and tell what was approved. `lines` as in `pasted`."""
    from papaver.adapters.loopback import LoopbackListener

    back = _way_back(agent.identity.redirect_uris)
    if back is None or device:
        begun = await session.sign_in(*scopes, device=device)
        ended = await _ended(run, agent, session, begun, no_open, lines)
    else:
        path, host = back
        async with LoopbackListener(path, host=host) as listener:
            begun = await session.sign_in(*scopes, redirect_uri=listener.redirect_uri, device=device)
            ended = await _ended(run, agent, session, begun, no_open, lines, listener)
    company = session.live.found.identifier
    mine = [one for one in await agent.accounts(user=session.live.whose.user) if one.company == company]
    held = next((one for one in mine if one.account == ended.account), None)
    expires = None if held is None or held.expires_at is None else moment(held.expires_at)
    granted = " ".join(ended.scopes)
    run.line(scope=granted, account=ended.account, expires_at=expires)
    run.say("Signed in at {name} ({domain}): {scopes}", name=ended.company_name, domain=ended.domain, scopes=granted)
    if ended.missing:
        run.note(f"not approved: {' '.join(ended.missing)}")


async def _ended(
    run: Run,
    agent: PersonalAgent,
    session: HttpSession,
    begun: DirectSignIn | DeviceSignIn,
    no_open: bool,
    lines: asyncio.Queue[Secret | None] | None,
    listener: Any = None,
) -> SignedIn:
    """Show the User where to sign in, and wait."""
    if isinstance(begun, DeviceSignIn):
        show_device(run, begun)
        return await begun.wait()
    show_link(run, begun, no_open)
    state = parse_qs(urlsplit(begun.url).query)["state"][0]
    seconds = seconds_until(begun.expires_at)
    if listener is None:
        began = begun.expires_at - session.live.setup.limits.sign_in_kept

        async def look() -> SignedIn | None:
            return await _completed(agent, session, begun, began)

        return await first(seconds, pasted(run, begun, lines), elsewhere(look))

    async def called_back() -> SignedIn | None:
        return await begun.complete((await listener.callback(state)).reveal())

    return await first(seconds, called_back(), pasted(run, begun, lines))


async def _completed(agent: PersonalAgent, session: HttpSession, begun: DirectSignIn, began: float) -> SignedIn | None:
    """What `papaver identity --serve` completed for this User since this sign-in began."""
    for one in await agent.accounts(user=session.live.whose.user):
        ours = one.company == session.live.found.identifier and one.account == session.account
        if ours and one.state == "signed_in" and one.signed_in_at >= began:
            missing = tuple(scope for scope in begun.scopes if scope not in one.scopes)
            return SignedIn(begun.company_name, begun.domain, one.user, one.account, one.scopes, missing)
    return None


def _way_back(redirect_uris: Sequence[str]) -> tuple[str, Any] | None:
    """Path and address of the first loopback redirect URI; None when the User comes back elsewhere."""
    for uri in redirect_uris:
        parts = urlsplit(uri)
        if parts.scheme == "http" and parts.hostname in LOOPBACK:
            return parts.path or "/", parts.hostname
    return None


async def _sign_out(run: Run, domain: str, user: str) -> None:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        company = await agent.discover(domain)
        session = company.session(user)
        mine = [one for one in await agent.accounts(user=user) if one.company == company.identifier]
        held = next((one for one in mine if one.account == session.account), None)
        if held is None:
            run.line(signed_out=True, account=session.account, revoked=True)
            run.say("{user} has no account at {domain} here.", user=user, domain=company.domain)
            return
        revoked = await session.sign_out()
    run.line(signed_out=True, account=held.account, revoked=revoked)
    run.say("Signed out at {name} ({domain}).", name=company.name, domain=company.domain)
    if not revoked:
        run.note(
            "no token of the account is used any more, but the Company could not be told yet: "
            f"papaver sign-out {company.domain}{as_user(user)} tells it again"
        )

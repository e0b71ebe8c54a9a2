"""The page of connected agents: what each may do for the account, since when, and how to disconnect it (5.5)."""

from __future__ import annotations

from papaver.company.authserver.answers import redirect
from papaver.company.authserver.desk import Desk
from papaver.company.authserver.tickets import PAGE, PageSession, key_of, read_ticket, write_ticket
from papaver.company.incoming import Incoming
from papaver.oauth.scopes import union
from papaver.ports.grants import GrantChange, GrantKeys, GrantRow
from papaver.ports.pages import ConnectedAgent, ConnectedView
from papaver.protocol.terms import AccountId, ClientId
from papaver.web.messages import Response

__all__ = ["connected"]

DISCONNECTED = "Disconnected. It can no longer act for you here."


async def connected(desk: Desk, incoming: Incoming) -> Response:
    """Show the agents, or disconnect one; a User who is not known signs in first.

    Raises InteractionOver, ForeignForm, InvalidOAuthRequest.
    """
    query = desk.query(incoming)
    if incoming.method == "GET" and query.one("ticket") is not None:
        return await _open(desk, incoming, query.one("interaction") or "", query.one("ticket") or "")
    value = desk.browsers.find(incoming.headers, "connected")
    known = None if value is None else await _session(desk, value)
    if value is None or known is None:
        return await _sign_in(desk, incoming)
    if incoming.method == "GET":
        return await _show(desk, known, value, DISCONNECTED if query.one("done") == "disconnected" else None)
    form = await desk.gate.form(incoming)
    desk.browsers.check_form(incoming.headers, form.one("csrf"), "connected", value)
    client_id = form.one("client_id")
    if client_id is not None:
        account = AccountId(known.account)
        await desk.grants.revoke(desk.clock.now(), account_id=account, client_id=ClientId(client_id))
    return redirect(desk.url("/connected?done=disconnected"))


async def _sign_in(desk: Desk, incoming: Incoming) -> Response:
    desk.gate.count_address(incoming.peer)
    browser = desk.browsers.find(incoming.headers, "browser") or desk.browsers.fresh()
    page = await desk.sign_ins.begin(browser)
    return redirect(page, desk.browsers.set("browser", browser, desk.limits.authorization_request))


async def _open(desk: Desk, incoming: Incoming, secret: str, ticket: str) -> Response:
    """Back from the sign-in page: from now on this browser is known, under a name that nobody saw before."""
    browser = desk.browsers.find(incoming.headers, "browser") or ""
    found = await desk.sign_ins.open_agents(secret, browser, ticket)
    value, seconds = desk.browsers.fresh(), desk.limits.page_session
    session = PageSession(found.account or "", found.name)
    row = write_ticket(key_of(PAGE, value), session, desk.clock.now() + seconds)
    await desk.grants.apply(GrantKeys(), lambda _: GrantChange(None, put_tickets=(row,)))
    return redirect(desk.url("/connected"), desk.browsers.set("connected", value, seconds))


async def _session(desk: Desk, value: str) -> PageSession | None:
    row = await desk.grants.ticket(key_of(PAGE, value))
    return None if row is None or desk.clock.now() >= row.expires_at else read_ticket(PageSession, row)


async def _show(desk: Desk, known: PageSession, value: str, notice: str | None) -> Response:
    now = desk.clock.now()
    by_client: dict[ClientId, list[GrantRow]] = {}
    for grant in await desk.grants.grants(AccountId(known.account)):
        if grant.stands(now):
            by_client.setdefault(grant.client_id, []).append(grant)
    view = ConnectedView(
        company=desk.offer.name,
        account=known.name or known.account,
        agents=tuple(_agent(desk, grants) for grants in by_client.values()),
        action=desk.url("/connected"),
        csrf=desk.browsers.csrf("connected", value),
        notice=notice,
    )
    return desk.pages.connected(view)


def _agent(desk: Desk, grants: list[GrantRow]) -> ConnectedAgent:
    newest = grants[0]
    return ConnectedAgent(
        agent=desk.agent(newest.client_id, newest.client_name),
        scopes=desk.scopes(union(*(grant.scopes for grant in grants))),
        since=min(grant.signed_in_at for grant in grants),
    )

"""The consent page: which agent asks for what, shown each time; approved or declined, once (4.2, 4.3)."""

from __future__ import annotations

from papaver.company.authserver.answers import redirect
from papaver.company.authserver.desk import Desk
from papaver.company.authserver.interactions import (
    InteractionOver,
    check_asks,
    check_browser,
    check_ticket,
)
from papaver.company.authserver.tickets import Interaction
from papaver.company.incoming import Incoming
from papaver.oauth.forms import Form
from papaver.ports.grants import digest
from papaver.ports.pages import ConsentView
from papaver.protocol.terms import AccountId, ClientId
from papaver.web.messages import Response

__all__ = ["consent"]

DONE = {
    "approved": ("Approved", "You can go back to the device that asked. It goes on by itself."),
    "declined": ("Declined", "The device that asked gets no access. You can close this page."),
}


async def consent(desk: Desk, incoming: Incoming) -> Response:
    """Show the page, or take its form. Raises InteractionOver, ForeignForm, InvalidOAuthRequest."""
    query = desk.query(incoming)
    done = DONE.get(query.one("done") or "")
    if done is not None and incoming.method == "GET":
        return desk.message(*done, 200)
    browser = desk.browsers.find(incoming.headers, "browser")
    if browser is None:
        raise InteractionOver(rule="interaction.browser", detail="no cookie")
    secret, ticket = query.one("interaction") or "", query.one("ticket") or ""
    found = await desk.sign_ins.find(secret)
    check_browser(found, digest(browser))
    check_ticket(found, digest(ticket))
    check_asks(found)
    if incoming.method == "GET":
        return await _show(desk, incoming, found, browser)
    form = await desk.gate.form(incoming)
    desk.browsers.check_form(incoming.headers, form.one("csrf"), f"consent {secret}", browser)
    return await _take(desk, incoming, found, form, browser)


async def _show(
    desk: Desk, incoming: Incoming, found: Interaction, browser: str, problem: str | None = None
) -> Response:
    query = desk.query(incoming)
    secret, asked = query.one("interaction") or "", found.asked
    if asked is None:
        raise InteractionOver(rule="interaction.asks")
    grants = await desk.grants.grants(AccountId(found.account or ""), ClientId(asked.client_id))
    now = desk.clock.now()
    held = frozenset(scope for grant in grants if grant.stands(now) for scope in grant.scopes)
    view = ConsentView(
        company=desk.offer.name,
        agent=desk.agent(asked.client_id, asked.client_name),
        scopes=desk.scopes(asked.scopes),
        account=found.name or found.account or "",
        action=desk.url(f"/consent?{incoming.query}"),
        csrf=desk.browsers.csrf(f"consent {secret}", browser),
        held=held,
        user_code=secret.partition(".")[2] or None,
        problem=problem,
    )
    return desk.pages.consent(view, 200 if problem is None else 400)


async def _take(desk: Desk, incoming: Incoming, found: Interaction, form: Form, browser: str) -> Response:
    decision = form.one("decision")
    if decision not in ("approve", "decline"):
        return await _show(desk, incoming, found, browser, "Choose whether to approve or to decline.")
    query = desk.query(incoming)
    account = AccountId(found.account or "") if decision == "approve" else None
    _, back = await desk.sign_ins.decide(
        query.one("interaction") or "", account, form.all("scope"), query.one("ticket") or ""
    )
    return redirect(back.reveal())

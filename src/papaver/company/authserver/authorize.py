"""The authorization endpoint (4.2, RFC 6749 4.1.1): checked, kept, and on to the app's sign-in page.

client · redirect URI        an error here is a page: there is nowhere to send it
state · response type · PKCE · scope · terms     an error here goes back to the client, with `iss` (RFC 9207)
"""

from __future__ import annotations

from typing import Final

from papaver.company.authserver.answers import redirect
from papaver.company.authserver.desk import Desk
from papaver.company.authserver.machine import shown_name
from papaver.company.authserver.terms import CHECKS, Wanted
from papaver.company.authserver.tickets import Asked, Redirect
from papaver.company.incoming import Incoming
from papaver.oauth.authorization import (
    check_state_form,
    error_url,
    read_authorization_request,
    read_redirect,
)
from papaver.oauth.client_metadata import ClientMetadata
from papaver.oauth.errors import InvalidClient, InvalidOAuthRequest, ProtocolError, TryLater
from papaver.oauth.forms import Form
from papaver.protocol.errors import PoppyError
from papaver.web.messages import Response

__all__ = ["authorize"]

ONCE: Final = ("client_id", "redirect_uri")


async def authorize(desk: Desk, incoming: Incoming) -> Response:
    """A request of the User's browser. Raises InvalidClient, InvalidOAuthRequest and PoppyError, for a page."""
    form = desk.query(incoming) if incoming.method == "GET" else await desk.gate.form(incoming)
    desk.gate.count_address(incoming.peer)
    client_id = form.one("client_id")
    if client_id is None:
        raise InvalidClient("client_id is missing", rule="authorize.client-id")
    client = (await desk.gate.load(client_id, incoming.peer)).metadata
    redirect_uri = read_redirect(form, client)
    try:
        asked, back = _read(desk, form, client, redirect_uri)
    except ProtocolError as error:
        return _refused(desk, form, redirect_uri, error)
    browser = desk.browsers.find(incoming.headers, "browser") or desk.browsers.fresh()
    try:
        page = await desk.sign_ins.begin(browser, asked=asked, redirect=back)
    except PoppyError as error:
        return _refused(desk, form, redirect_uri, TryLater(detail=error.description))
    return redirect(page, desk.browsers.set("browser", browser, desk.limits.authorization_request))


def _read(desk: Desk, form: Form, client: ClientMetadata, redirect_uri: str) -> tuple[Asked, Redirect]:
    request = read_authorization_request(form, redirect_uri)
    wanted = Wanted(client.client_id, "direct", request.scopes, request.resource)
    for check in CHECKS["authorize"]:
        check(wanted, desk.terms)
    asked = Asked(
        client.client_id,
        shown_name(client.client_id, client.client_name),
        desk.terms.grantable(client.client_id, request.scopes),
        desk.terms.resource(request.resource),
    )
    jkt = request.dpop_jkt if desk.configuration.dpop else None
    return asked, Redirect(redirect_uri, request.code_challenge, request.state, jkt)


def _refused(desk: Desk, form: Form, redirect_uri: str, error: ProtocolError) -> Response:
    issuer = desk.configuration.issuer
    return redirect(error_url(redirect_uri, issuer=issuer, state=_state(form), error=error))


def _state(form: Form) -> str | None:
    """The request's `state`, unless that is what is wrong with it."""
    try:
        state = form.one("state")
        check_state_form(state)
    except InvalidOAuthRequest:
        return None
    return state

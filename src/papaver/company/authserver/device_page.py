"""The page where a User enters the code that another device shows (4.3, RFC 8628 3.3). Opening it approves nothing."""

from __future__ import annotations

import functools

from papaver.company.authserver.answers import redirect
from papaver.company.authserver.desk import Desk, with_fields
from papaver.company.authserver.devices import decide_entry
from papaver.company.authserver.tickets import DEVICE, USER_CODE, Device, read_ticket
from papaver.company.incoming import Incoming
from papaver.oauth.device import normal_user_code
from papaver.ports.grants import GrantKeys, digest
from papaver.ports.pages import DeviceView
from papaver.protocol.errors import RateLimited
from papaver.web.messages import Response

__all__ = ["device"]

UNKNOWN = "This code is unknown, used or too old. Compare it with the one on your device, or start again there."
TOO_OFTEN = "Too many codes were tried. Wait a minute, then try again."


async def device(desk: Desk, incoming: Incoming) -> Response:
    """Ask for the code, or take it and go on to the sign-in page. Raises ForeignForm, InvalidOAuthRequest."""
    browser = desk.browsers.find(incoming.headers, "browser")
    if incoming.method == "GET":
        given = normal_user_code(desk.query(incoming).one("user_code") or "")
        return _show(desk, browser or desk.browsers.fresh(), given)
    form = await desk.gate.form(incoming)
    value = browser or desk.browsers.fresh()
    desk.browsers.check_form(incoming.headers, form.one("csrf"), "device", value)
    try:
        desk.gate.count_user_code(incoming.peer)
    except RateLimited as error:
        return _show(desk, value, "", TOO_OFTEN, 429, ("retry-after", str(error.retry_after)))
    user_code = normal_user_code(form.one("user_code") or "")
    found = await _enter(desk, user_code)
    if found is None:
        return _show(desk, value, user_code, UNKNOWN, 400)
    hashed, waiting = found
    page = await desk.sign_ins.begin(value, asked=waiting.asked, device=(hashed, user_code))
    return redirect(page, desk.browsers.set("browser", value, desk.limits.authorization_request))


async def _enter(desk: Desk, user_code: str) -> tuple[str, Device] | None:
    """The device's request that waits for this code, by the digest of its device code."""
    if not user_code:
        return None
    hashed, now = digest(user_code), desk.clock.now()
    keys = GrantKeys(tickets=((USER_CODE, hashed),))
    most = desk.limits.tries_per_user_code
    key = await desk.grants.apply(keys, functools.partial(decide_entry, user_code=hashed, now=now, most=most))
    if key is None:
        return None
    waiting = read_ticket(Device, await desk.grants.ticket((DEVICE, key)))
    return None if waiting is None or waiting.state != "pending" else (key, waiting)


def _show(
    desk: Desk, browser: str, user_code: str, problem: str | None = None, status: int = 200, *more: tuple[str, str]
) -> Response:
    view = DeviceView(desk.offer.name, desk.url("/device"), desk.browsers.csrf("device", browser), user_code, problem)
    cookie = desk.browsers.set("browser", browser, desk.limits.authorization_request)
    return with_fields(desk.pages.device(view, status), cookie, *more)

"""The recoveries of section 7 that concern the account: another token, a wider one, a nonce. Else the User is needed.

A challenge without an error code says that no token came, and is handled as `insufficient_scope`; nothing is refreshed
for it. A refused token is refreshed once; when that fails the request goes on signed out (5.5).
"""

from __future__ import annotations

from papaver.oauth.errors import InvalidScope, UseDpopNonce
from papaver.oauth.scopes import covers, read_scope
from papaver.personal_agent.accounts import is_in, may_sign_in, need_of, within
from papaver.personal_agent.flows.access import account_of, drop_token, service_of
from papaver.personal_agent.flows.attempts import Attempt, Recovery
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.flows.resources import resource_of
from papaver.personal_agent.live import LiveSession
from papaver.protocol.errors import InsufficientScope, InvalidToken
from papaver.web.urls import protected_resource_metadata_url

__all__ = ["ACCOUNT_RECOVERIES", "cover", "refresh", "use_nonce"]


def refresh(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """`invalid_token`: the next try has another token, or none when the account turns out to be signed out.

    A service that names its own metadata may take only tokens issued for it, which we did not know (4.5).
    """
    if attempt.access is None:
        return False
    service = service_of(live, attempt.opened, attempt.request)
    named = attempt.attributes.get("resource_metadata")
    if service is not None and named == protected_resource_metadata_url(service.url):
        resource = yield from resource_of(live, attempt.opened, service, again=True)
        if resource != attempt.access.resource:
            return True
    yield from drop_token(live, attempt.opened, attempt.access.token)
    return True


def cover(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """401 without an error code, and `insufficient_scope`: a token that covers what is named, else the User."""
    needed = _named(attempt.attributes.get("scope", ""))
    row = yield from account_of(live, attempt.opened)
    sent = attempt.access
    if row is not None and is_in(row) and covers(within(row, live.whose.only), needed):
        if sent is None or not covers(sent.scopes, needed):
            attempt.need.scopes = needed
            return True
        if needed:
            return False  # the token has what is asked for: asking the User would change nothing
    if may_sign_in(live, attempt.opened.found):
        attempt.need.user = need_of(row, needed)
    return False


def use_nonce(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """`use_dpop_nonce`: the answer brought the nonce, which is noted already (RFC 9449 9)."""
    yield from ()
    return attempt.access is not None and attempt.access.key is not None and "dpop-nonce" in attempt.response.headers


ACCOUNT_RECOVERIES: dict[tuple[int, str], Recovery] = {
    (401, ""): cover,
    (401, InvalidToken.code): refresh,
    (401, UseDpopNonce.code): use_nonce,
    (403, InsufficientScope.code): cover,
}


def _named(scope: str) -> tuple[str, ...]:
    """The scopes that a challenge names; none when it names nothing that is a scope."""
    try:
        return read_scope(scope) if scope else ()
    except InvalidScope:
        return ()

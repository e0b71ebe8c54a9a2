"""Sign-out (4.6, 5.5): every refresh token that is held for the account is revoked; the Session goes on signed out."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from papaver.personal_agent.accounts import SIGNED_OUT, AccountKey, account_key, keep_account, left_of, stored_account
from papaver.personal_agent.flows.access import revoke_left, verified
from papaver.personal_agent.flows.effects import Flow, exclusive
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.protocol.errors import DiscoveryFailed, Misbehaved

__all__ = ["sign_out"]

logger = logging.getLogger("papaver.personal_agent")


def sign_out(live: LiveSession) -> Flow[bool]:
    """Sign the account out → whether the Company has confirmed it. Without that it is told at the next occasion.

    From the first step on no token of the account is sent any more, whatever the Company answers.
    """
    opened = yield from live.opened()
    if live.whose.anonymous or opened.found.issuer is None:
        return True
    key = account_key(live, opened)
    return (yield from exclusive(key.lock, _signed_out(live, opened, key)))


def _signed_out(live: LiveSession, opened: OpenedSession, key: AccountKey) -> Flow[bool]:
    row = yield from stored_account(key)
    if row is None:
        return True
    row = replace(row, state=SIGNED_OUT, refresh_token=None, tokens=(), dpop_jwk=None, unrevoked=left_of(row))
    yield from keep_account(key, row)
    if not row.unrevoked:
        return True
    try:
        issuer, row = yield from verified(live.setup, opened.found, row, live.offset)
    except (DiscoveryFailed, Misbehaved) as error:
        logger.warning("%s could not be told that the User signed out: %s", opened.found.domain, error)
        return False
    yield from keep_account(key, row)
    return (yield from revoke_left(live.setup, key, issuer, live.nonces))

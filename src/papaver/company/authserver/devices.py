"""Device Sign-In (4.3, RFC 8628): what a poll gets, what entering a user code does, and how a request is decided.

How the practices of RFC 10027 2 are followed here: codes live ten minutes and are used once; user codes are long enough
and their tries are counted; opening a link decides nothing; the consent page names the agent, its host and the code and
is shown each time; Direct Sign-In is what the metadata offers first (RFC 10027 6.2.1.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from papaver.company.authserver.codes import check_resource_asked, first_grant
from papaver.company.authserver.issue import Issue, access_row, token_response
from papaver.company.authserver.refresh import check_account_enabled
from papaver.company.authserver.tickets import (
    DEVICE,
    USER_CODE,
    Asked,
    Device,
    UserCode,
    read_ticket,
    write_ticket,
)
from papaver.oauth.errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrant,
    ProtocolError,
    SlowDown,
)
from papaver.oauth.tokens import TokenResponse
from papaver.ports.grants import GrantChange, GrantLoaded, RefreshRow
from papaver.values.rules import rule

__all__ = [
    "Beginning",
    "Polling",
    "check_device_fresh",
    "check_device_of_client",
    "check_poll_in_time",
    "decide_begin",
    "decide_entry",
    "decide_poll",
]

REMEMBERED: Final = 600.0
"""How long an expired device code is still known as that, in seconds."""


@dataclass(frozen=True, slots=True)
class Polling:
    """A poll whose client is proven. `device` is the digest of the device code; times in seconds.

    `grant_id`  made from the device code
    """

    client_id: str
    device: str
    grant_id: str
    issue: Issue
    grant_lifetime: float
    slower: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class Beginning:
    """A device's request. `device` and `user_code` are digests."""

    device: str
    user_code: str
    asked: Asked
    expires_at: float
    interval: int


@rule("device.of-client")
def check_device_of_client(device: Device, client_id: str) -> None:
    """RFC 8628 3.4: a device code belongs to the client that it was issued to."""
    if device.asked.client_id != client_id:
        raise InvalidGrant(rule="device.of-client", detail=f"of {device.asked.client_id}, sent by {client_id}")


@rule("device.fresh")
def check_device_fresh(device: Device, now: float) -> None:
    """RFC 8628 3.5: a device code ends, whether anybody decided or not."""
    if now >= device.expires_at:
        raise ExpiredToken(rule="device.fresh")


@rule("device.interval")
def check_poll_in_time(device: Device, now: float, tolerance: float) -> None:
    """RFC 8628 3.5: not more often than said. The first poll is never too early (B42), nor is a little haste (B43)."""
    if device.polled_at is not None and now < device.polled_at + device.interval - tolerance:
        raise SlowDown(rule="device.interval", detail=f"polled {now - device.polled_at:.1f} s after the last time")


def decide_begin(loaded: GrantLoaded, ask: Beginning) -> GrantChange[bool]:
    """Store the request; False, and nothing stored, when the user code is taken."""
    taken = (USER_CODE, ask.user_code)
    if taken in loaded.tickets:
        return GrantChange(False)
    device = Device(ask.asked, ask.expires_at, ask.interval)
    return GrantChange(
        True,
        put_tickets=(
            write_ticket((DEVICE, ask.device), device, ask.expires_at + REMEMBERED),
            write_ticket(taken, UserCode(ask.device), ask.expires_at),
        ),
    )


def decide_entry(loaded: GrantLoaded, user_code: str, now: float, most: int) -> GrantChange[str | None]:
    """Somebody entered this user code (its digest): the digest of its device code, or None when it is none.

    Each entry is counted; one too many and the code is void (RFC 10027 2).
    """
    key = (USER_CODE, user_code)
    row = loaded.tickets.get(key)
    found = read_ticket(UserCode, row)
    if row is None or found is None or now >= row.expires_at:
        return GrantChange(None)
    if found.tries >= most:
        return GrantChange(None)
    counted = msgspec.structs.replace(found, tries=found.tries + 1)
    return GrantChange(found.device, put_tickets=(write_ticket(key, counted, row.expires_at),))


def decide_poll(loaded: GrantLoaded, ask: Polling) -> GrantChange[TokenResponse | ProtocolError]:
    """The tokens, or what to tell the device. Raises InvalidGrant, ExpiredToken, AccessDenied, InvalidTarget.

    An approved request is answered however hastily it is polled.
    """
    row = loaded.tickets.get((DEVICE, ask.device))
    device = read_ticket(Device, row)
    if row is None or device is None:
        raise InvalidGrant(rule="device.known", detail="unknown device code")
    check_device_of_client(device, ask.client_id)
    check_device_fresh(device, ask.issue.now)
    if device.state == "denied":
        raise AccessDenied(rule="device.denied")
    if device.state == "approved":
        return _tokens(loaded, device, ask)
    return _pending(device, ask, row.expires_at)


def _pending(device: Device, ask: Polling, kept_until: float) -> GrantChange[TokenResponse | ProtocolError]:
    """Not decided yet. A hasty poll makes the interval longer, counted from it on."""
    answer: ProtocolError = AuthorizationPending(rule="device.pending")
    interval = device.interval
    try:
        check_poll_in_time(device, ask.issue.now, ask.tolerance)
    except SlowDown as error:
        answer, interval = error, interval + ask.slower
    polled = msgspec.structs.replace(device, polled_at=ask.issue.now, interval=interval)
    return GrantChange(answer, put_tickets=(write_ticket((DEVICE, ask.device), polled, kept_until),))


def _tokens(loaded: GrantLoaded, device: Device, ask: Polling) -> GrantChange[TokenResponse | ProtocolError]:
    check_resource_asked(device.asked.resource, ask.issue.resource)
    check_account_enabled(loaded.disabled)
    grant = first_grant(
        ask.issue,
        device.asked,
        device.account or "",
        ask.grant_id,
        device.signed_in_at,
        ask.grant_lifetime,
        "device",
    )
    row = access_row(ask.issue, grant, grant.scopes)
    return GrantChange(
        token_response(ask.issue, row),
        drop_tickets=((DEVICE, ask.device),),
        grants=(grant,),
        refresh=(RefreshRow(grant.current, grant.id),),
        access=(row,),
    )

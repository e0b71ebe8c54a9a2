"""What the issuer's one-time tickets say: a sign-in that has begun, a code, a device's request, a page's session.

Each is found by the digest of its secret, and no secret is in it. Times are Unix seconds.
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar

import msgspec

from papaver.ports.grants import TicketKey, TicketRow, digest

__all__ = [
    "CODE",
    "DEVICE",
    "INTERACTION",
    "PAGE",
    "USER_CODE",
    "Asked",
    "Code",
    "Device",
    "Interaction",
    "PageSession",
    "Redirect",
    "UserCode",
    "key_of",
    "read_ticket",
    "write_ticket",
]

INTERACTION: Final = "interaction"
CODE: Final = "code"
DEVICE: Final = "device"
USER_CODE: Final = "user_code"
PAGE: Final = "page"

T = TypeVar("T", bound=msgspec.Struct)


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asks for what. `resource` None: the default token (4.5)."""

    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    resource: str | None = None


class Redirect(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where Direct Sign-In returns to, and what its token request has to match (4.2)."""

    uri: str
    challenge: str
    state: str | None = None
    jkt: str | None = None


class Interaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sign-in from its start to the User's decision. Without `asked` the User wants to see the connected agents.

    `browser`   digest of the cookie of the browser it began in: no other one decides
    `redirect`  in Direct Sign-In      `device`  digest of the device code in Device Sign-In
    `account`   who signed in, once somebody did; `name` is what that User is called
    `ticket`    digest of the one-time value that the consent page is opened with
    """

    browser: str
    expires_at: float
    asked: Asked | None = None
    redirect: Redirect | None = None
    device: str | None = None
    account: str | None = None
    name: str = ""
    ticket: str = ""


class Code(msgspec.Struct, frozen=True, omit_defaults=True):
    """An authorization code. `asked.scopes` are those that were approved. A used one is remembered for a while."""

    asked: Asked
    redirect: Redirect
    account: str
    signed_in_at: float
    expires_at: float
    used: bool = False


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device's request. Once approved, `asked.scopes` are those that were approved, by `account`.

    `polled_at`, `interval`  when it was last polled, and how many seconds have to pass from then
    """

    asked: Asked
    expires_at: float
    interval: int
    state: Literal["pending", "approved", "denied"] = "pending"
    account: str | None = None
    signed_in_at: float = 0
    polled_at: float | None = None


class UserCode(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which device's request a user code belongs to, by the digest of its device code; and how often it was entered."""

    device: str
    tries: int = 0


class PageSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom the page of connected agents knows."""

    account: str
    name: str


def key_of(kind: str, value: str) -> TicketKey:
    """Under which a ticket with this secret is stored."""
    return kind, digest(value)


def write_ticket(key: TicketKey, value: msgspec.Struct, expires_at: float) -> TicketRow:
    return TicketRow(key[0], key[1], msgspec.json.encode(value), expires_at)


def read_ticket(kind: type[T], row: TicketRow | None) -> T | None:
    """What a ticket says; None when there is none."""
    return None if row is None else msgspec.json.decode(row.value, type=kind)

"""One try of a signed request, as recoveries see it, and what they may change about the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from papaver.personal_agent.accounts import Access
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.protocol.errors import SignInNeeded
from papaver.web.messages import Request, Response

__all__ = ["Attempt", "Need", "Recovery"]


@dataclass(slots=True)
class Need:
    """What one request needs of the account. `user` is set when only the User can help."""

    scopes: tuple[str, ...] = ()
    user: SignInNeeded | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: the Session and the clock's correction that it was signed with, the request and its answer.

    `access`      the access token that it carried, if one
    `attributes`  what came with the error code, such as `scope`
    """

    opened: OpenedSession
    offset: float
    request: Request
    response: Response
    access: Access | None = None
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    need: Need = field(default_factory=Need)


Recovery = Callable[[LiveSession, Attempt], Flow[bool]]
"""A flow → whether the request may be sent again."""

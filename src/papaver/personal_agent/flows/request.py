"""A signed request as a flow: each try is judged, signed afresh and sent; answers that can be mended are, once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from papaver.personal_agent.flows.effects import Flow, SessionFields, Sign, send, sign
from papaver.personal_agent.flows.recoveries import Attempt, Recovery, paced, recovery_of
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.protocol.destinations import check_destination
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.extensions import EXTENSIONS_HEADER, write_extensions
from papaver.protocol.negotiation import VERSION_HEADER
from papaver.values.rules import rule
from papaver.web.messages import Request, Response

__all__ = ["Build", "Exchange", "check_headers_ours", "check_session_open", "signed"]

Build = Callable[[OpenedSession], Request]
"""The request as it is in a Session: another version may have another endpoint."""


class Exchange(NamedTuple):
    """An answer, and the Session in which the request was sent last."""

    opened: OpenedSession
    response: Response


def signed(live: LiveSession, build: Build) -> Flow[Exchange]:
    """Send a request with the Session header, again after each recovery that helped (section 7).

    Raises NotADestination before anything is signed, RateLimited for a request that may not be sent yet, and
    FetchFailed when there is no answer. Any status is an answer.
    """
    used: set[Recovery] = set()
    while True:
        check_session_open(live)
        opened = yield from live.opened()
        request = build(opened)
        check_headers_ours(request, opened)
        check_destination(request.url, request.method, opened.destinations)
        yield from paced(live, request)
        offset = live.offset
        response = yield from _sent(live, opened, request)
        recovery = recovery_of(opened, response)
        if recovery is None or recovery in used:
            return Exchange(opened, response)
        used.add(recovery)
        if not (yield from recovery(live, Attempt(opened, offset, request, response))):
            return Exchange(opened, response)


def _sent(live: LiveSession, opened: OpenedSession, request: Request) -> Flow[Response]:
    profile = opened.dialect.session
    signer = yield from live.setup.keys.signer(profile, opened.company_id, opened.user_id, live.now())
    jwt = yield from sign(Sign(signer, opened.sid, request.method, request.url, opened.agent_id, live.offset))
    fields = SessionFields(profile.header, jwt, _declared(opened))
    return (yield from send(request, fields, opened.destinations))


def _declared(opened: OpenedSession) -> tuple[tuple[str, str], ...]:
    """The version and the extensions, the same on every request of a Session (3.4)."""
    declared = [(VERSION_HEADER, str(opened.dialect.version))]
    extensions = write_extensions(opened.extensions)
    if extensions is not None:
        declared.append((EXTENSIONS_HEADER, extensions))
    return tuple(declared)


@rule("session.headers-ours")
def check_headers_ours(request: Request, opened: OpenedSession) -> None:
    """Who uses a Session sets neither its headers nor a token: the Session does, or nobody (3.4, 5.1, 5.2).

    Raises ConfigurationError.
    """
    for name in (opened.dialect.session.header, VERSION_HEADER, EXTENSIONS_HEADER, "authorization"):
        if name in request.headers:
            raise ConfigurationError(f"a Session sets {name} itself; leave it out", rule="session.headers-ours")


@rule("session.open")
def check_session_open(live: LiveSession) -> None:
    """An ended Session is not used again (5.1, 5.5). Raises ConfigurationError."""
    if live.ended:
        raise ConfigurationError("this Session was closed; open another one", rule="session.open")

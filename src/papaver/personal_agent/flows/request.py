"""A signed request as a flow: each try is judged, signed afresh and sent; answers that can be mended are, once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from papaver.oauth.dpop import make_proof
from papaver.personal_agent.accounts import Access
from papaver.personal_agent.flows.access import access_for
from papaver.personal_agent.flows.attempts import Attempt, Need, Recovery
from papaver.personal_agent.flows.describe import describe_if_unlisted
from papaver.personal_agent.flows.effects import Flow, SessionFields, Sign, send, sign
from papaver.personal_agent.flows.endpoints import note_nonce
from papaver.personal_agent.flows.recoveries import paced, recovery_of
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.protocol.destinations import check_destination
from papaver.protocol.errors import ConfigurationError, SignInNeeded
from papaver.protocol.extensions import EXTENSIONS_HEADER, write_extensions
from papaver.protocol.negotiation import VERSION_HEADER
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Request, Response
from papaver.web.urls import origin_of

__all__ = ["Build", "Exchange", "check_headers_ours", "check_session_open", "signed"]

Build = Callable[[OpenedSession], Request]
"""The request as it is in a Session: another version may have another endpoint."""


class Exchange(NamedTuple):
    """An answer, and the Session in which the request was sent last. `needs` is set when only the User can help."""

    opened: OpenedSession
    response: Response
    needs: SignInNeeded | None = None


def signed(live: LiveSession, build: Build, needed: Sequence[str] = ()) -> Flow[Exchange]:
    """Send a request with the Session header and, signed in, an access token; again after each recovery that helped.

    `needed` are the scopes that the token should have where the account has them (section 7).

    Raises NotADestination before anything is signed, RateLimited for a request that may not be sent yet, and
    FetchFailed when there is no answer. Any status is an answer.
    """
    used: set[Recovery] = set()
    need = Need(tuple(needed))
    while True:
        check_session_open(live)
        opened = yield from live.opened()
        request = build(opened)
        check_headers_ours(request, opened)
        yield from describe_if_unlisted(live, opened, request)
        check_destination(request.url, request.method, live.destinations(opened))
        yield from paced(live, request)
        access = yield from access_for(live, opened, request, need.scopes)
        if not _same_account(live, opened, access):
            continue
        offset = live.offset
        response = yield from _sent(live, opened, request, access)
        received = opened.dialect.errors.read(response) if response.status >= 400 else None
        recovery = recovery_of(response, received)
        if received is None or recovery is None or recovery in used:
            return Exchange(opened, response, need.user)
        used.add(recovery)
        attempt = Attempt(opened, offset, request, response, access, received.attributes, need)
        if not (yield from recovery(live, attempt)):
            return Exchange(opened, response, need.user)


def _same_account(live: LiveSession, opened: OpenedSession, access: Access | None) -> bool:
    """Whether the `sid` in use may carry this token: never those of two sign-ins, which may be two accounts (5.4)."""
    if access is None:
        return True
    if live.chain not in (None, access.chain):
        live.leave(opened)
        return False
    live.chain = access.chain
    return True


def _sent(live: LiveSession, opened: OpenedSession, request: Request, access: Access | None) -> Flow[Response]:
    profile = opened.dialect.session
    signer = yield from live.setup.keys.signer(profile, opened.company_id, opened.user_id, live.now())
    token = None if access is None else access.token
    jwt = yield from sign(Sign(signer, opened.sid, request.method, request.url, opened.agent_id, live.offset, token))
    authorization = None if access is None else access.authorization
    proof = _proof(live, request, access)
    fields = SessionFields(profile.header, jwt, _declared(opened), authorization, proof)
    response = yield from send(request, fields, live.destinations(opened))
    if proof is not None:
        note_nonce(live.nonces, request.url, response)
    return response


def _proof(live: LiveSession, request: Request, access: Access | None) -> Secret | None:
    """The DPoP proof beside a bound token (RFC 9449 7), by the account's key and never by the Session's (5.2)."""
    if access is None or access.key is None:
        return None
    return make_proof(
        access.key,
        method=request.method,
        url=request.url,
        now=live.now(),
        jti=live.setup.ids.token(),
        nonce=live.nonces.get(origin_of(request.url)),
        access_token=access.token,
    )


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
    for name in (opened.dialect.session.header, VERSION_HEADER, EXTENSIONS_HEADER, "authorization", "dpop"):
        if name in request.headers:
            raise ConfigurationError(f"a Session sets {name} itself; leave it out", rule="session.headers-ours")


@rule("session.open")
def check_session_open(live: LiveSession) -> None:
    """An ended Session is not used again (5.1, 5.5). Raises ConfigurationError."""
    if live.ended:
        raise ConfigurationError("this Session was closed; open another one", rule="session.open")

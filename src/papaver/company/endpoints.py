"""Routes of the Company's endpoints, and what a request passes through, in the order of readings 5."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import unquote_plus

from papaver.company.conversations import Conversations
from papaver.company.holding import Holding
from papaver.company.incoming import Incoming
from papaver.company.offer import Offer
from papaver.company.refusals import Attempt, Refusals
from papaver.company.sessions import Sessions
from papaver.company.settings import CompanyLimits
from papaver.protocol.dialect import BEARER_ONLY, Challenged, Dialect, NoRoute, Place, Route, RouteKind, Version, Wanted
from papaver.protocol.errors import ConfigurationError, InvalidRequest, PoppyError, RateLimited
from papaver.protocol.negotiation import VERSION_HEADER, negotiate, retirement_fields
from papaver.protocol.session import BoundSession, VerifiedSession
from papaver.protocol.session_checks import check_header_once
from papaver.protocol.signed_in import OAuthCaller, SignedInSession, signed_in, without_session
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.web.messages import Headers, Request, Response, Stream
from papaver.web.urls import UrlError

__all__ = ["Endpoints", "check_no_credentials_in_url", "nothing_here"]

JSON: Final = ("content-type", "application/json")
NO_STORE: Final = ("cache-control", "no-store")
CREDENTIALS: Final = frozenset({"access_token", "poppy-session", "poppy_session"})


@rule("request.no-credentials-in-url")
def check_no_credentials_in_url(query: str) -> None:
    """5.6: no token or Session JWT is taken from a URL, and a request that has one there is refused (readings 64)."""
    for pair in query.split("&") if query else ():
        name = unquote_plus(pair.partition("=")[0]).lower()
        if name in CREDENTIALS:
            raise InvalidRequest(
                f"the URL carries {name}; credentials go into header fields", rule="request.no-credentials-in-url"
            )


class Endpoints:
    """The conversation endpoint, and Sessions for the app's own API."""

    def __init__(
        self,
        offer: Offer,
        sessions: Sessions,
        conversations: Conversations,
        refusals: Refusals,
        dialects: Mapping[Version, Dialect],
        limits: CompanyLimits,
        holding: Holding,
    ) -> None:
        self._endpoint, self._app_url = offer.endpoint, offer.app_url
        self._sessions, self._conversations = sessions, conversations
        self._refusals, self._dialects, self._limits, self._holding = refusals, dialects, limits, holding
        self._preferred = dialects[offer.versions[0]]
        self._usual = (str(offer.versions[0]),)
        self._retiring = offer.retiring()

    async def conversation(self, incoming: Incoming, suffix: str) -> Response | Stream:
        """A request below the conversation endpoint; `suffix` is what follows it, as received."""
        attempt = Attempt(incoming)
        try:
            dialect = self._negotiate(attempt)
        except PoppyError as error:
            route = _route(self._preferred, incoming.method, suffix)
            return nothing_here(route.allow) if isinstance(route, NoRoute) else self._refused(error, attempt)
        route = _route(dialect, incoming.method, suffix)
        if isinstance(route, NoRoute):
            return nothing_here(route.allow)
        try:
            url = f"{self._endpoint}{suffix}"
            bound = await self._prove(dialect, attempt, incoming.method, url)
            response = await self._handle(dialect, incoming, route, url, bound)
        except ConfigurationError:
            raise
        except PapaverError as error:
            response = self._refused(error, attempt)
        more = self.retirement(dialect.version) if self._retiring else ()
        return replace(response, headers=response.headers.with_(*more)) if more else response

    async def verify_signed_in(self, incoming: Incoming, *scopes: str) -> SignedInSession:
        """As `verify`, for a request that needs the User's account with these scopes (5.4, 7)."""
        session = await self.verify(incoming)
        try:
            return signed_in(session, *scopes)
        except PoppyError as error:
            attempt = Attempt(incoming, client=session.client_id, proven=True)
            self._negotiate(attempt)
            raise self._told(error, attempt) from None

    async def verify(self, incoming: Incoming) -> VerifiedSession:
        """The Session of a request to the app's own API (5.3).

        Raises a PoppyError, which is logged already; render it with `write`. It does not hold the frames in which the
        header was read: an app may show an error with its local variables.
        """
        attempt = Attempt(incoming)
        try:
            dialect = self._negotiate(attempt)
            bound = await self._prove(dialect, attempt, incoming.method, f"{self._app_url}{incoming.path}")
            opened = await self._sessions.open(dialect, bound, incoming.headers)
            check_no_credentials_in_url(incoming.query)
        except PoppyError as error:
            raise self._told(error, attempt) from None
        return opened.verified

    async def without_session(self, incoming: Incoming, *scopes: str) -> OAuthCaller:
        """The caller of an API that uses no Session claims: its Session header is not looked at (5.3).

        Raises a PoppyError as `verify` does.
        """
        attempt = Attempt(incoming)
        try:
            self._sessions.check_address(incoming.peer)
            check_no_credentials_in_url(incoming.query)
            url = f"{self._app_url}{incoming.path}"
            access = await self._sessions.without_session(incoming.headers, incoming.method, url)
            return without_session(access, *scopes)
        except PoppyError as error:
            raise self._told(error, attempt) from None

    def write(self, error: PoppyError, incoming: Incoming) -> Response:
        """A PoppyError as section 7 answers it at an API, in the version that the request named."""
        attempt = Attempt(incoming)
        with suppress(PoppyError):
            self._negotiate(attempt)
        return self._refusals.write(error, attempt.dialect, Place.API, self._challenged(incoming))

    def _told(self, error: PoppyError, attempt: Attempt) -> PoppyError:
        """The error for the app, counted and logged."""
        told = self._counted(error, attempt)
        self._refusals.log(told, self._refusals.write(told, attempt.dialect, Place.API), attempt)
        return told.with_traceback(None)

    def _challenged(self, incoming: Incoming) -> Challenged:
        try:
            return self._sessions.challenged(f"{self._app_url}{incoming.path}")
        except UrlError:
            return BEARER_ONLY

    def retirement(self, version: Version) -> tuple[tuple[str, str], ...]:
        """The fields that say that a version ends (3.4); most have none."""
        return retirement_fields(version, self._retiring)

    def _negotiate(self, attempt: Attempt) -> Dialect:
        """Readings 5: the header is there, once; then the version; nothing is handled under another one.

        Each request says its own, and is not held to what its Session said before (readings 45).
        """
        headers = attempt.incoming.headers
        check_header_once(headers.all(self._preferred.session.header))
        values = headers.all(VERSION_HEADER)
        dialect = self._preferred if values == self._usual else self._dialects[negotiate(values, self._dialects)]
        attempt.dialect = dialect
        return dialect

    async def _prove(self, dialect: Dialect, attempt: Attempt, method: str, url: str) -> BoundSession:
        self._sessions.check_address(attempt.incoming.peer)
        jwt = dialect.session.read(attempt.incoming.headers)
        attempt.client = jwt.iss
        proven = await self._sessions.prove(dialect, jwt, method, url, attempt.incoming.peer)
        attempt.proven = True
        return await self._sessions.bind(proven, attempt.incoming.headers, method, url)

    async def _handle(
        self, dialect: Dialect, incoming: Incoming, route: Route | PoppyError, url: str, bound: BoundSession
    ) -> Response | Stream:
        opened = await self._sessions.open(dialect, bound, incoming.headers, remembered=True)
        try:
            check_no_credentials_in_url(incoming.query)
            if isinstance(route, PoppyError):
                raise route
            body = b""
            if route.kind is RouteKind.READ:
                wanted = dialect.conversations.read_wanted(incoming.query, incoming.headers)
            else:
                waits = route.kind in (RouteKind.START, RouteKind.SAY)  # handoff and close: readings 22
                wanted = dialect.conversations.read_query(incoming.query) if waits else Wanted()
                user = bound.proven.client_id, bound.proven.user_id
                body = await self._holding.body(user, incoming.body, self._limits.body_bytes)
            request = Request(incoming.method, url, incoming.headers, body)
            said = self._conversations.read(dialect, route, request)
        except PoppyError:
            # Readings 5: that the Session has ended is said first. Whatever goes on to the store is told there.
            await self._sessions.check_open(opened)
            raise
        return await self._conversations.answer(dialect, opened, route, said, wanted, incoming.gone)

    def _refused(self, error: PapaverError, attempt: Attempt) -> Response:
        told = self._counted(error, attempt) if isinstance(error, PoppyError) else error
        response = self._refusals.write(told, attempt.dialect, Place.ENDPOINT, self._challenged(attempt.incoming))
        self._refusals.log(told, response, attempt)
        return response

    def _counted(self, error: PoppyError, attempt: Attempt) -> PoppyError:
        """The error, or that this address has sent too much that proves nothing (5.6)."""
        if not attempt.proven:
            try:
                self._sessions.count_unverified(attempt.incoming.peer)
            except RateLimited as limited:
                return limited
        return error


def _route(dialect: Dialect, method: str, suffix: str) -> Route | NoRoute | PoppyError:
    try:
        return dialect.conversations.route(method, suffix)
    except PoppyError as error:
        return error


def nothing_here(allow: tuple[str, ...] = ()) -> Response:
    """405 with the methods that there are, or 404 when there are none (readings 44)."""
    if allow:
        headers = Headers([("allow", ", ".join(allow)), JSON, NO_STORE])
        return Response(405, headers, strict_json.dumps({"error": "method_not_allowed"}))
    return Response(404, Headers([JSON, NO_STORE]), strict_json.dumps({"error": "not_found"}))

"""Routes of the Company's endpoints, in the order of readings 5, and how an error leaves: rendered, and logged once."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from papaver.company.conversations import Conversations
from papaver.company.incoming import Incoming
from papaver.company.offer import CONVERSATIONS, Offer
from papaver.company.sessions import OpenedSession, Sessions
from papaver.company.settings import CompanyLimits
from papaver.protocol.dialect import Dialect, NoRoute, Place, Route, RouteKind, Version
from papaver.protocol.errors import InvalidRequest, PoppyError
from papaver.protocol.negotiation import VERSION_HEADER, negotiate, retirement_fields
from papaver.protocol.session import BoundSession, VerifiedSession, check_header_once
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.web.messages import Headers, Request, Response

__all__ = ["Endpoints", "check_no_credentials_in_url"]

log = logging.getLogger("papaver.company")

JSON = ("content-type", "application/json")
NO_STORE = ("cache-control", "no-store")
IN_URLS = ("access_token=", "poppy-session=", "poppy_session=")


@rule("request.no-credentials-in-url")
def check_no_credentials_in_url(query: str) -> None:
    """5.6: tokens and Session JWTs are not taken from a URL, and a request that has one there is refused (B10)."""
    lowered = query.lower()
    for name in IN_URLS:
        if lowered.startswith(name) or f"&{name}" in lowered:
            raise InvalidRequest(
                f"the URL carries {name[:-1]}; credentials go into header fields", rule="request.no-credentials-in-url"
            )


class Endpoints:
    """The conversation endpoint, and Sessions for the app's own API."""

    def __init__(self, offer: Offer, sessions: Sessions, conversations: Conversations, limits: CompanyLimits) -> None:
        self._offer, self._sessions, self._conversations, self._limits = offer, sessions, conversations, limits
        self._dialects: Mapping[Version, Dialect] = offer.dialects
        self._preferred = self._dialects[offer.versions[0]]
        self._retiring = offer.retiring()

    async def conversation(self, incoming: Incoming, suffix: str) -> Response:
        """A request below the conversation endpoint; `suffix` is what follows it, as received."""
        route = self._route(self._preferred, incoming.method, suffix)
        if isinstance(route, NoRoute):
            return _nothing_here(route)
        dialect = self._preferred
        client = ""
        try:
            dialect = self._dialect(incoming.headers)
            url = f"{self._offer.endpoint}{suffix}"
            bound = await self._sessions.prove(dialect, incoming.method, url, incoming.headers, incoming.peer)
            client = bound.proven.client_id
            response = await self._handle(dialect, incoming, route, url, bound)
        except PoppyError as error:
            response = self.refuse(error, dialect, Place.ENDPOINT, incoming, client)
        more = retirement_fields(dialect.version, self._retiring)
        return response if not more else Response(response.status, response.headers.with_(*more), response.body)

    async def _handle(
        self, dialect: Dialect, incoming: Incoming, route: Route | PoppyError, url: str, bound: BoundSession
    ) -> Response:
        try:
            check_no_credentials_in_url(incoming.query)
            if isinstance(route, PoppyError):
                raise route
            wanted = dialect.conversations.read_query(incoming.query)
            body = b"" if route.kind is RouteKind.READ else await incoming.body(self._limits.body_bytes)
            request = Request(incoming.method, url, incoming.headers, body)
            command = self._conversations.read(dialect, route, request)
        except PoppyError:
            # Readings 5: that the Session ended is said first, and an unknown one begins all the same.
            await self._sessions.open(dialect, bound, incoming.headers)
            raise
        opened: OpenedSession = await self._sessions.open(dialect, bound, incoming.headers)
        return await self._conversations.answer(dialect, opened, route, command, wanted, incoming.gone)

    async def verify(self, incoming: Incoming) -> VerifiedSession:
        """The Session of a request to the app's own API (5.3). Raises a PoppyError; render it with `refuse`."""
        dialect = self._dialect(incoming.headers)
        url = f"{self._offer.app_url}{incoming.path}"
        bound = await self._sessions.prove(dialect, incoming.method, url, incoming.headers, incoming.peer)
        check_no_credentials_in_url(incoming.query)
        return (await self._sessions.open(dialect, bound, incoming.headers)).verified

    def _dialect(self, headers: Headers) -> Dialect:
        """Readings 5: the header is there, once; then the version; nothing is handled under another one."""
        check_header_once(headers.all(self._preferred.session.header))
        return self._dialects[negotiate(headers.all(VERSION_HEADER), self._dialects)]

    def _route(self, dialect: Dialect, method: str, suffix: str) -> Route | NoRoute | PoppyError:
        try:
            return dialect.conversations.route(method, suffix)
        except PoppyError as error:
            return error

    def refuse(
        self,
        error: PoppyError,
        dialect: Dialect | None,
        place: Place,
        incoming: Incoming | None = None,
        client: str = "",
    ) -> Response:
        """The error as it leaves (7, 8.13), and the one line that says why, for the Company's own eyes."""
        response = (dialect or self._preferred).errors.write(error, place)
        line = {
            "event": "refused",
            "status": response.status,
            "code": error.code,
            "rule": error.rule,
            "client": client,
            "detail": error.detail,
        }
        if incoming is not None:
            line |= {"method": incoming.method, "path": incoming.path, "peer": incoming.peer}
        log.info("%s", json.dumps(line))
        return response


def _nothing_here(route: NoRoute) -> Response:
    if route.allow:
        headers = Headers([("allow", ", ".join(route.allow)), JSON, NO_STORE])
        return Response(405, headers, strict_json.dumps({"error": "method_not_allowed"}))
    return Response(404, Headers([JSON, NO_STORE]), strict_json.dumps({"error": "not_found"}))


def suffix_of(offer: Offer, path: str) -> str | None:
    """What follows the conversation endpoint in a path as the app sees it; None when the path is not below it."""
    prefix = offer.path + CONVERSATIONS
    if path == prefix or path.startswith(prefix + "/"):
        return path[len(prefix) :]
    return None

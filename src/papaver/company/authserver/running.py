"""An embedded issuer while its Company runs: its routes, and what becomes of what goes wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from papaver.company.authserver.answers import (
    error_response,
    forbidden_method,
    not_found,
    retry_after,
    status_of,
)
from papaver.company.authserver.authorize import authorize
from papaver.company.authserver.browser import Browsers, ForeignForm
from papaver.company.authserver.configuration import Configuration, issuer_terms, server_document
from papaver.company.authserver.connected import connected
from papaver.company.authserver.consent import consent
from papaver.company.authserver.desk import Desk
from papaver.company.authserver.device_page import device
from papaver.company.authserver.gate import Gate
from papaver.company.authserver.interactions import InteractionOver
from papaver.company.authserver.issue import derive
from papaver.company.authserver.machine import Machine
from papaver.company.authserver.sign_ins import SignIns
from papaver.company.authserver.terms import SignInType
from papaver.company.authserver.verifier import OpaqueVerifier
from papaver.company.incoming import Incoming
from papaver.company.sign_in import IssuerParts
from papaver.oauth.errors import AuthorizationPending, ProtocolError
from papaver.ports.grants import GrantStore
from papaver.protocol.errors import ConfigurationError, PoppyError
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.web.messages import Headers, Response
from papaver.web.urls import authorization_server_metadata_url, origin_of

__all__ = ["ROUTES", "Route", "RunningEmbedded", "check_pages"]

log = logging.getLogger("papaver.company")
LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class Route:
    """A path below the issuer. `needs`: the sign-in type without which it is not there (C43).

    `kind`  machine: called by agents, which prove themselves, so no form token is asked for (C63)
            entry:   opened from another site by the User's browser; begins something and decides nothing
            page:    a page with forms of our own, which carry a token
    """

    kind: Literal["machine", "entry", "page"]
    methods: tuple[str, ...]
    needs: SignInType | None = None


ROUTES: Final[Mapping[str, Route]] = {
    "/authorize": Route("entry", ("GET", "POST"), "direct"),
    "/token": Route("machine", ("POST",)),
    "/revoke": Route("machine", ("POST",)),
    "/device_authorization": Route("machine", ("POST",), "device"),
    "/device": Route("page", ("GET", "POST"), "device"),
    "/consent": Route("page", ("GET", "POST")),
    "/connected": Route("page", ("GET", "POST")),
}
ASSETS: Final = "/assets/"


@rule("issuer.pages")
def check_pages(pages: object) -> None:
    """An issuer that sends Users to its pages has them."""
    if pages is None:
        raise ConfigurationError(
            "the embedded issuer has no pages to show: run the Company by an adapter, or hand in "
            "`wire(…, pages=HtmlPages())`",
            rule="issuer.pages",
        )


class RunningEmbedded:
    """A `RunningIssuer`."""

    def __init__(self, configuration: Configuration, parts: IssuerParts) -> None:
        check_pages(parts.pages)
        assert parts.pages is not None
        self.configuration = configuration
        self.grants: GrantStore = parts.tables.grants
        self.clock = parts.clock
        terms = issuer_terms(configuration, parts.offer)
        secret = parts.tables.secret
        gate = Gate(configuration.issuer, parts.clients, parts.clock, configuration.limits)
        self.verifier = OpaqueVerifier(self.grants, parts.tables.clients, parts.clock)
        self.sign_ins = SignIns(configuration, self.grants, parts.clock, parts.ids)
        self._machine = Machine(configuration, terms, gate, self.grants, parts.clock, parts.ids, secret)
        self._desk = Desk(
            configuration=configuration,
            offer=parts.offer,
            terms=terms,
            gate=gate,
            sign_ins=self.sign_ins,
            browsers=Browsers(configuration, derive(secret, "forms"), parts.ids),
            grants=self.grants,
            clock=parts.clock,
            pages=parts.pages,
        )
        metadata = authorization_server_metadata_url(configuration.issuer)
        self._metadata = metadata.removeprefix(origin_of(metadata))
        self._document = strict_json.dumps(server_document(configuration, parts.offer))
        self._hosts = frozenset((configuration.host, *(host.lower() for host in parts.offer.internal_hosts)))
        self._routes = {
            configuration.app_path + path: (path, route)
            for path, route in ROUTES.items()
            if route.needs is None or route.needs in terms.sign_in
        }
        self._assets = configuration.app_path + ASSETS
        self._answers: Mapping[str, Callable[[Incoming], Awaitable[Response]]] = {
            "/token": self._machine.token,
            "/revoke": self._machine.revoke,
            "/device_authorization": self._machine.device_authorization,
        }

    def owns(self, host: str, path: str) -> bool:
        """Whether a request is this issuer's: on its own host, one of its paths."""
        ours = path in self._routes or path == self._metadata or path.startswith(self._assets)
        return ours and _name(host) in self._hosts

    async def answer(self, incoming: Incoming) -> Response:
        """Answer a request that it owns."""
        if incoming.path == self._metadata:
            return self._published(incoming.method)
        if incoming.path.startswith(self._assets):
            return self._asset(incoming)
        found = self._routes.get(incoming.path)
        if found is None:
            return not_found()
        path, route = found
        if incoming.method not in route.methods:
            return forbidden_method(route.methods)
        try:
            if route.kind == "machine":
                return await self._answers[path](incoming)
            return await _PAGES[path](self._desk, incoming)
        except ConfigurationError:
            raise
        except PapaverError as error:
            response = error_response(error) if route.kind == "machine" else self._problem(error)
            self._log(error, response, incoming)
            return response

    async def sweep(self) -> None:
        """Delete what is over."""
        now = self.clock.now()
        await self.grants.sweep(now, forget_before=now - self.configuration.limits.ended_grants)

    def _published(self, method: str) -> Response:
        if method not in ("GET", "HEAD"):
            return forbidden_method(("GET", "HEAD"))
        fields = [
            ("content-type", "application/json"),
            ("cache-control", "public, max-age=300"),
            ("access-control-allow-origin", "*"),
            ("x-content-type-options", "nosniff"),
        ]
        return Response(200, Headers(fields), self._document)

    def _asset(self, incoming: Incoming) -> Response:
        if incoming.method not in ("GET", "HEAD"):
            return forbidden_method(("GET", "HEAD"))
        return self._desk.pages.asset(incoming.path.removeprefix(self._assets)) or not_found()

    def _problem(self, error: PapaverError) -> Response:
        """An error as a page. What a client did wrong is told as that; it is not the User's to repair."""
        status = status_of(error)
        if isinstance(error, (InteractionOver, ForeignForm)):
            title, status = "This sign-in is over", 400 if isinstance(error, InteractionOver) else 403
            text = f"{error.description[:1].upper()}{error.description[1:]}."
        elif status in (429, 503):
            title, text = "Not just now", "This cannot be done right now. Wait a minute, then try again."
        elif isinstance(error, (ProtocolError, PoppyError)):
            title, text = (
                "This request cannot be answered",
                (f"The app that sent you here made a mistake: {error.description}. Nothing was shared with it."),
            )
        else:
            title, text = "Something went wrong here", "Nothing was shared. Please try again later."
        return self._desk.message(title, text, status, *retry_after(error))

    def _log(self, error: PapaverError, response: Response, incoming: Incoming) -> None:
        """One line of JSON, as the Company's own refusals are logged."""
        line: dict[str, object] = {
            "event": "refused",
            "company": self.configuration.issuer,
            "status": response.status,
            "code": error.code,
            "rule": error.rule,
            "detail": error.detail[:LONGEST],
            "method": incoming.method,
            "path": incoming.path,
            "peer": incoming.peer,
        }
        ours = response.status == 500
        usual = logging.DEBUG if isinstance(error, AuthorizationPending) else logging.WARNING
        log.log(logging.ERROR if ours else usual, "%s", json.dumps(line), exc_info=error if ours else None)


_PAGES: Final[Mapping[str, Callable[[Desk, Incoming], Awaitable[Response]]]] = {
    "/authorize": authorize,
    "/device": device,
    "/consent": consent,
    "/connected": connected,
}


def _name(host: str) -> str:
    """A `Host` without its port, in lowercase."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()

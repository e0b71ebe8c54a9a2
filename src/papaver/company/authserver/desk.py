"""What all pages of an issuer share: how agents and scopes are shown, and messages to the User."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from papaver.company.authserver.browser import Browsers
from papaver.company.authserver.configuration import Configuration
from papaver.company.authserver.gate import Gate
from papaver.company.authserver.settings import IssuerLimits
from papaver.company.authserver.sign_ins import SignIns
from papaver.company.authserver.terms import Terms
from papaver.company.incoming import Incoming
from papaver.company.offer import Offer
from papaver.oauth.forms import Form, read_form
from papaver.ports.grants import GrantStore
from papaver.ports.pages import MessageView, Pages, ShownAgent, ShownScope
from papaver.ports.system import Clock
from papaver.protocol.errors import PayloadTooLarge
from papaver.web.messages import Response
from papaver.web.urls import host_of

__all__ = ["Desk", "with_fields"]


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of an issuer that its pages use."""

    configuration: Configuration
    offer: Offer
    terms: Terms
    gate: Gate
    sign_ins: SignIns
    browsers: Browsers
    grants: GrantStore
    clock: Clock
    pages: Pages

    @property
    def limits(self) -> IssuerLimits:
        return self.configuration.limits

    def url(self, path: str) -> str:
        """The public URL of one of our paths: of what is configured, whatever `Host` says (B18)."""
        return self.configuration.root + path

    def query(self, incoming: Incoming) -> Form:
        """Raises InvalidOAuthRequest, PayloadTooLarge."""
        if len(incoming.query) > self.limits.form_bytes:
            raise PayloadTooLarge("the query is too long", rule="limits.body")
        return read_form(incoming.query)

    def agent(self, client_id: str, name: str) -> ShownAgent:
        return ShownAgent(name=name, host=host_of(client_id), client_id=client_id)

    def scopes(self, names: Iterable[str]) -> tuple[ShownScope, ...]:
        """These scopes as the Company describes them (4.7)."""
        known = {scope.name: scope for scope in self.offer.scopes}
        return tuple(
            ShownScope(name, scope.description, scope.changes, scope.personal_data)
            if (scope := known.get(name)) is not None
            else ShownScope(name)
            for name in names
        )

    def message(self, title: str, text: str, status: int = 400, *more: tuple[str, str]) -> Response:
        """A page that only tells something."""
        view = MessageView(self.offer.name, title, text, "done" if status == 200 else "problem")
        return with_fields(self.pages.message(view, status), *more)


def with_fields(response: Response, *more: tuple[str, str]) -> Response:
    """The response with these header fields as well."""
    return replace(response, headers=response.headers.with_(*more)) if more else response

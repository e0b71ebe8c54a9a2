"""A Company that passed every check of section 3, in the version that is spoken with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from papaver.personal_agent.flows.discover import Outcome
from papaver.personal_agent.live import DEFAULT_ACCOUNT, LiveSession, Whose
from papaver.personal_agent.session import Session
from papaver.personal_agent.setup import Setup
from papaver.protocol.company import CompanyDocument
from papaver.protocol.dialect import Version
from papaver.protocol.discovery import CheckResult, Discovered
from papaver.protocol.terms import CompanyId

__all__ = ["DiscoveredCompany"]

S_co = TypeVar("S_co", bound=Session, covariant=True)


class DiscoveredCompany(Generic[S_co]):
    """What the Company says about itself. Its texts are content from the Company: data, never instructions (10.1).

    `domain`      the domain asked for          `identifier`  its issuer, or `https://{domain}` (3.2)
    `issuer`      None when it has none         `version`     the protocol version that is spoken with it
    `document`    its document of that version  `checks`      each check that was made, and findings
    `identifier_before`  another identifier that this domain had until now; Users have new IDs, Sessions are new (3.2)
    """

    def __init__(self, outcome: Outcome, open_session: Callable[[Callable[[Setup], LiveSession]], S_co]) -> None:
        self._found = outcome.found
        self._open_session = open_session
        self.domain = outcome.found.domain
        self.identifier_before = outcome.before

    @property
    def name(self) -> str:
        return self._found.document.organization.name

    @property
    def identifier(self) -> CompanyId:
        return self._found.identifier

    @property
    def issuer(self) -> str | None:
        return self._found.issuer

    @property
    def version(self) -> Version:
        return self._found.version

    @property
    def document(self) -> CompanyDocument:
        return self._found.document

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        return self._found.checks

    def session(
        self,
        user: str,
        *,
        agent_id: str | None = None,
        anonymous: bool = False,
        account: str = DEFAULT_ACCOUNT,
        only: Sequence[str] | None = None,
    ) -> S_co:
        """A new Session for a local User. Nothing is sent yet.

        `user`       your name for the User; the Company gets a User ID that says nothing about it (5.1)
        `agent_id`   your name for one of the User's several agents, if there are several; sent as an Agent ID
        `anonymous`  a new User ID, used in this Session alone, kept nowhere, gone when it is closed; never signed in
        `account`    your name for one of the User's several accounts here, such as `business`; a Session has one (5.4)
        `only`       the scopes that the Session may use at most, of what the User approved (4.4)
        """
        whose = Whose(user, agent_id, anonymous, account, None if only is None else tuple(only))
        return self._open_session(lambda setup: LiveSession(setup, self._found, whose, self._learn))

    def _learn(self, found: Discovered) -> None:
        """Sessions opened from now on begin with what one of them found (3.4)."""
        self._found = found

    def __repr__(self) -> str:
        return f"DiscoveredCompany({self.domain!r}, {self.identifier!r}, {self.version})"

"""A Session as it stands: what every Session JWT of one `sid` says, and what moves when that Session has to be left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from papaver.personal_agent.described import Descriptions, never_signed
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.ids import agent_id, session_id, user_id
from papaver.personal_agent.records import ServiceRow
from papaver.personal_agent.services import Service
from papaver.personal_agent.setup import Setup
from papaver.protocol.destinations import Destinations, session_destinations
from papaver.protocol.dialect import Dialect
from papaver.protocol.discovery import Discovered
from papaver.protocol.extensions import choose_extensions
from papaver.protocol.terms import AgentId, CompanyId, SessionId, UserId
from papaver.values.errors import PapaverError

__all__ = ["DEFAULT_ACCOUNT", "LiveSession", "NotOffered", "OpenedSession", "Whose"]

DEFAULT_ACCOUNT: Final = "default"
"""Our name for the account of a User who has one at a Company."""


class NotOffered(PapaverError):
    """The Company's document has no such channel."""

    code = "not_offered"
    description = "the Company does not offer this"


@dataclass(frozen=True, slots=True)
class Whose:
    """The local names of whom a Session acts for. `anonymous` gives the User a new User ID that is never stored.

    `account`  which of the User's accounts at the Company (5.4)
    `only`     the scopes that its access tokens have at most; None for all that the User approved (4.4)
    """

    user: str
    agent: str | None = None
    anonymous: bool = False
    account: str = DEFAULT_ACCOUNT
    only: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """One `sid`, and what stays the same on all its requests (3.4, 5.2).

    `found` is the Company's document in use, `dialect` the version that is spoken, `extensions` what is declared.
    """

    sid: SessionId
    user_id: UserId
    agent_id: AgentId | None
    found: Discovered
    dialect: Dialect
    extensions: Mapping[str, str]
    destinations: Destinations

    @property
    def company_id(self) -> CompanyId:
        """What its Session JWTs are addressed to, and its User ID belongs to."""
        return self.found.identifier

    @property
    def endpoint(self) -> str:
        """The endpoint of the first conversation protocol that is supported here (8.1). Raises NotOffered."""
        entry = self.found.document.conversations()
        if entry is None:
            raise NotOffered("the Company has no Company Agent that speaks `poppy`", rule="conversation.offered")
        return entry.endpoint


class LiveSession:
    """Whose Session it is, the OpenedSession in use, and what was learnt about the Company's clock and limits.

    Nothing is sent, stored or drawn before `opened`. `offset` is what the Company's clock is ahead of ours, in
    seconds; `not_before` says for a request, in monotonic seconds, when it may be sent again (5.6).

    `chain`     the sign-in whose tokens this `sid` has carried; one that may be another account's needs another (5.4)
    `nonces`    origin → the DPoP nonce to use there (RFC 9449 8)
    `services`  a service's URL → what its own metadata said (4.5)
    `descriptions`  the OpenAPI descriptions, when they were loaded (section 7)
    """

    __slots__ = (
        "_described",
        "_ids",
        "_learn",
        "_opened",
        "chain",
        "descriptions",
        "ended",
        "found",
        "nonces",
        "not_before",
        "offset",
        "services",
        "setup",
        "whose",
    )

    def __init__(
        self, setup: Setup, found: Discovered, whose: Whose, learn: Callable[[Discovered], None] = lambda _: None
    ) -> None:
        """`learn` is told when another version of the Company's document was found."""
        self.setup = setup
        self.found = found
        self.whose = whose
        self.offset = 0.0
        self.not_before: dict[str, float] = {}
        self.ended = False
        self.chain: str | None = None
        self.descriptions: Descriptions | None = None
        self.nonces: dict[str, str] = {}
        self.services: dict[str, ServiceRow] = {}
        self._described: tuple[Service, ...] = ()
        self._learn = learn
        self._opened: OpenedSession | None = None
        self._ids: dict[CompanyId, tuple[UserId, AgentId | None]] = {}

    @property
    def current(self) -> OpenedSession | None:
        """The Session in use; None before the first request."""
        return self._opened

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        """The User IDs that this Session has used: one, unless the Company's identifier changed (3.2)."""
        return tuple(user for user, _ in self._ids.values())

    @property
    def described(self) -> tuple[Service, ...]:
        """The services of OpenAPI descriptions that the Company's document lists (still)."""
        listed = {api.url for api in self.found.document.apis}
        return tuple(one for one in self._described if one.described_at in listed)

    def describe(self, service: Service) -> None:
        """What an OpenAPI description defines joins the Session's destinations (5.2)."""
        self._described = (*(one for one in self._described if not _same(one, service)), service)

    def destinations(self, opened: OpenedSession | None = None) -> Destinations:
        """What may receive the Session header, OpenAPI descriptions included; now, or of one `sid`."""
        opened = opened or self._opened
        named = destinations_of(self.found) if opened is None else opened.destinations
        added = [destination for one in self.described for destination in one.destinations]
        return replace(named, described=tuple(added)) if added else named

    def opened(self) -> Flow[OpenedSession]:
        """The Session in use, opened with a fresh `sid` when there is none."""
        while self._opened is None:
            found = self.found
            user, agent = yield from self._whose_ids(found.identifier)
            # Another request of this Session may have been here meanwhile.
            if self._opened is None and self.found is found:
                self._opened = OpenedSession(
                    sid=session_id(self.setup.ids),
                    user_id=user,
                    agent_id=agent,
                    found=found,
                    dialect=self.setup.dialects[found.version],
                    extensions=choose_extensions(self.setup.extensions, found.document.extensions),
                    destinations=destinations_of(found),
                )
        return self._opened

    def leave(self, opened: OpenedSession, found: Discovered | None = None) -> None:
        """Stop using a `sid`; the next request opens another, with `found` in place of the document in use.

        A request that was late to learn of it leaves nothing: the Session is another one already.
        """
        if self._opened is opened:
            self._opened = None
            self.chain = None
            if found is not None:
                self.found = found
                self._learn(found)

    def now(self) -> float:
        """The Company's time, in Unix seconds."""
        return self.setup.clock.now() + self.offset

    def _whose_ids(self, company: CompanyId) -> Flow[tuple[UserId, AgentId | None]]:
        """The User's IDs at a Company. One draw for the whole life, so that a lost race cannot change them."""
        known = self._ids.get(company)
        if known is None:
            whose, ids = self.whose, self.setup.ids
            user = yield from user_id(ids, whose.user, company)
            agent = None if whose.agent is None else (yield from agent_id(ids, whose.user, whose.agent, company))
            known = self._ids.setdefault(company, (user, agent))
        return known


def destinations_of(found: Discovered) -> Destinations:
    """What may receive the Session header, before any description is loaded (5.2)."""
    return session_destinations(found.document, never=never_signed(found))


def _same(one: Service, other: Service) -> bool:
    """Whether both are the same server of the same description."""
    return (one.url, one.described_at) == (other.url, other.described_at)

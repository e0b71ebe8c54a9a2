"""A Personal Agent: one `client_id`, its Users, and the Companies that it knows. Enter it by an adapter.

`papaver.adapters.httpx2.PersonalAgent` is this class with a network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Generic, Self, TypeVar

from papaver.personal_agent.accounts import known_account
from papaver.personal_agent.anonymous import AnonymousVault
from papaver.personal_agent.delegated import DelegatedKeys
from papaver.personal_agent.discovered import DiscoveredCompany
from papaver.personal_agent.driver import Ports, drive
from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.sign_in import complete
from papaver.personal_agent.identity import Identity
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.records import (
    ACCOUNT,
    COMPANY,
    CONVERSATION,
    DELEGATED_KEY,
    OUTBOX,
    AccountRow,
    CompanyRow,
    ConversationRow,
    DelegatedKeyRow,
    OutboxRow,
    read_row,
)
from papaver.personal_agent.session import Session
from papaver.personal_agent.settings import AgentLimits
from papaver.personal_agent.setup import Setup
from papaver.personal_agent.sign_in import KnownAccount, SignedIn
from papaver.protocol.discovery import Checks
from papaver.protocol.terms import CompanyId
from papaver.values.secret import Secret
from papaver.versions import DIALECTS

__all__ = ["KeyInUse", "KnownCompany", "KnownConversation", "PendingMessage", "PersonalAgent"]

logger = logging.getLogger("papaver.personal_agent")

S_co = TypeVar("S_co", bound=Session, covariant=True)


@dataclass(frozen=True, slots=True)
class KnownCompany:
    """What the last successful discovery of a domain found. `discovered_at` in Unix seconds."""

    domain: str
    name: str
    identifier: CompanyId
    issuer: str | None
    version: str
    discovered_at: float


@dataclass(frozen=True, slots=True)
class KnownConversation:
    """A conversation in the vault. `user` is the local name, `cursor` the last handled event."""

    domain: str
    company: CompanyId
    user: str
    conversation_id: str
    status: str
    responder: str
    cursor: str | None
    started_at: float


@dataclass(frozen=True, slots=True)
class KeyInUse:
    """A delegated key: its thumbprint and when its delegation ends, in Unix seconds."""

    company: CompanyId
    user_id: str
    kid: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A message that is not known to be accepted. Without `conversation_id` it starts a conversation."""

    domain: str
    user: str
    message_id: str
    conversation_id: str | None
    text: str | None
    written_at: float


class PersonalAgent(Generic[S_co]):
    """Discovers Companies and opens Sessions with them.

    `open_session`  makes a Session of the adapter's kind
    `extensions`    the extensions that are implemented, each with its versions, the preferred one first
    """

    def __init__(
        self,
        identity: Identity,
        ports: Ports,
        open_session: Callable[[LiveSession, Ports], S_co],
        *,
        limits: AgentLimits | None = None,
        extensions: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.identity = identity
        self._ports = ports
        self._open_session = open_session
        used = limits or AgentLimits()
        self._setup = Setup(
            identity=identity,
            limits=used,
            clock=ports.clock,
            ids=ports.ids,
            keys=DelegatedKeys(identity, used, ports.ids),
            dialects=DIALECTS,
            extensions=extensions or {},
        )

    async def __aenter__(self) -> Self:
        await self._ports.vault.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._ports.vault.close()

    def documents(self) -> Mapping[str, bytes]:
        """What to publish: URL → body of the client metadata document and the key set (4.1)."""
        return self.identity.documents()

    async def discover(
        self, domain: str, *, uncached: bool = False, checks: Checks | None = None
    ) -> DiscoveredCompany[S_co]:
        """Find the Company of a domain and make every check of section 3. Raises DiscoveryFailed with the broken rule.

        `uncached` asks past every cache. `checks` notes what passed, for whoever wants it after a failure, too.
        """
        outcome = await drive(discover(self._setup, domain, uncached=uncached, checks=checks), self._ports)
        if outcome.before is not None:
            logger.warning(
                "%s is another Company now: %s, before %s; Users have new IDs there",
                outcome.found.domain,
                outcome.found.identifier,
                outcome.before,
            )
        return DiscoveredCompany(outcome, self._session)

    async def complete(self, callback_url: str, *, user: str | None = None) -> SignedIn:
        """A User's browser came back from a Direct Sign-In: exchange its code for tokens, and keep them (4.2).

        `callback_url`  the whole URL that was requested, from any route of any process with the same vault, or pasted
        `user`          your name for the User whose browser it is. On the web always give it: it is checked to be who
                        began, so that nobody can bind their account to somebody else

        It is taken once, and for ten minutes. Raises SignInUnknown, AccessDenied when the User declined, another
        ProtocolError as the Company says, DiscoveryFailed, FetchFailed; what was held before is held still (4.7).
        """
        callback, callback_url = Secret(callback_url), ""  # no frame of ours shows it to whoever reads a traceback
        return await drive(complete(self._setup, callback, user=user), self._ports)

    async def accounts(self, domain: str | None = None, user: str | None = None) -> tuple[KnownAccount, ...]:
        """The accounts in the vault, oldest first, and no secret of theirs; of one domain or User when named."""
        rows = [read_row(AccountRow, value) for _, value in await self._ports.vault.rows(ACCOUNT)]
        return tuple(known_account(row) for row in rows if domain in (None, row.domain) and user in (None, row.user))

    async def companies(self) -> tuple[KnownCompany, ...]:
        """The Companies that were discovered, in the order in which they became known."""
        rows = [read_row(CompanyRow, value) for _, value in await self._ports.vault.rows(COMPANY)]
        return tuple(
            KnownCompany(row.domain, row.name, CompanyId(row.identifier), row.issuer, row.version, row.discovered_at)
            for row in rows
        )

    async def conversations(self, domain: str | None = None, user: str | None = None) -> tuple[KnownConversation, ...]:
        """The conversations in the vault, oldest first; of one domain or User when named."""
        rows = [read_row(ConversationRow, value) for _, value in await self._ports.vault.rows(CONVERSATION)]
        return tuple(
            KnownConversation(
                row.domain,
                CompanyId(row.company),
                row.user,
                row.conversation_id,
                row.status,
                row.responder,
                row.cursor,
                row.started_at,
            )
            for row in rows
            if domain in (None, row.domain) and user in (None, row.user)
        )

    async def delegated_keys(self) -> tuple[KeyInUse, ...]:
        """The delegated keys in the vault, and no secret of theirs."""
        rows = [read_row(DelegatedKeyRow, value) for _, value in await self._ports.vault.rows(DELEGATED_KEY)]
        return tuple(KeyInUse(CompanyId(row.company), row.user_id, row.kid, row.exp) for row in rows)

    async def pending(self) -> tuple[PendingMessage, ...]:
        """What is in the outbox, oldest first."""
        rows = [read_row(OutboxRow, value) for _, value in await self._ports.vault.rows(OUTBOX)]
        return tuple(
            PendingMessage(row.domain, row.user, row.message_id, row.conversation_id, row.text, row.written_at)
            for row in sorted(rows, key=lambda row: row.written_at)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity.client_id!r})"

    def _session(self, live_of: Callable[[Setup], LiveSession]) -> S_co:
        live = live_of(self._setup)
        ports = self._ports
        if live.whose.anonymous:
            ports = replace(ports, vault=AnonymousVault(ports.vault))
        return self._open_session(live, ports)

"""Who acts: one kind of actor for conversations, MCP, APIs and the browser, and the roles that it has."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from papaver.protocol.errors import ConfigurationError
from papaver.protocol.session import VerifiedSession
from papaver.protocol.terms import AccountId, AgentId, ClientId, CompanyId, UserId
from papaver.values import strict_json
from papaver.values.rules import rule

__all__ = [
    "PERSONAL_AGENT",
    "SCOPE",
    "Actor",
    "ActorFor",
    "Principal",
    "actor_of",
    "check_app_roles",
    "default_actor",
    "principal_of",
    "scope_role",
]

PERSONAL_AGENT: Final = "personal_agent"
"""The role of everyone who comes through the protocol."""
SCOPE: Final = "scope:"
"""What the role of a granted scope begins with: no role of an app does, so neither can pose as the other."""
_SIGNED_OUT: Final = "poppy:"


@dataclass(frozen=True, slots=True)
class Actor:
    """Whom something is done as. `roles`: the app's own, then those of granted scopes, then `personal_agent`."""

    id: str
    roles: tuple[str, ...] = ()

    @property
    def personal_agent(self) -> bool:
        """Whether a Personal Agent acts, and no person and no program of the Company."""
        return PERSONAL_AGENT in self.roles


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request or a turn is: what was proven of it (5.3, 5.4).

    `account_id`, `scopes`  of a live access token; None and empty when signed out
    `actor`                 when the app knows already whom it acts as; it is taken as it is, but for the roles that are
                            ours to give
    """

    client_id: ClientId
    user_id: UserId
    agent_id: AgentId | None = None
    account_id: AccountId | None = None
    scopes: frozenset[str] = frozenset()
    version: str = ""
    actor: Actor | None = None

    @property
    def signed_in(self) -> bool:
        return self.account_id is not None


ActorFor = Callable[[Principal, Actor], Actor | Awaitable[Actor]]
"""The app's choice: whom this principal acts as. It is given the default one, and may return that."""


def principal_of(session: VerifiedSession) -> Principal:
    """That of a request to an API of the app, an MCP server or a page: the same as a turn's (5.3)."""
    return Principal(
        session.client_id, session.user_id, session.agent_id, session.account_id, session.scopes, session.version
    )


def scope_role(scope: str) -> str:
    """The role that a granted scope gives."""
    return SCOPE + scope


@rule("actor.app-roles")
def check_app_roles(roles: Iterable[str]) -> None:
    """A role of the app looks like none that only a token or the protocol can give. Raises ConfigurationError."""
    for role in roles:
        if role == PERSONAL_AGENT or role.startswith(SCOPE):
            raise ConfigurationError(
                f"an actor of the app has the role {role!r}; that role is ours to give: choose another name",
                rule="actor.app-roles",
            )


def default_actor(company: CompanyId, principal: Principal) -> Actor:
    """The account; signed out somebody who is the same each time this User comes by this client, and is no account."""
    if principal.account_id is not None:
        return Actor(str(principal.account_id))
    who = strict_json.canonical([company, principal.client_id, principal.user_id])
    return Actor(_SIGNED_OUT + hashlib.sha256(who).hexdigest()[:40])


async def actor_of(company: CompanyId, principal: Principal, actor_for: ActorFor | None = None) -> Actor:
    """Whom a principal acts as: the actor that it brings, else the app's choice, else the default one.

    Whoever that is gets a role for each scope of the token, and last `personal_agent`. Raises ConfigurationError for
    an actor that has such a role already, and whatever `actor_for` raises.
    """
    chosen = principal.actor
    if chosen is None:
        chosen = default_actor(company, principal)
        if actor_for is not None:
            made = actor_for(principal, chosen)
            chosen = await made if inspect.isawaitable(made) else made
    check_app_roles(chosen.roles)
    granted = tuple(scope_role(scope) for scope in sorted(principal.scopes)) if principal.signed_in else ()
    return replace(chosen, roles=(*dict.fromkeys(chosen.roles), *granted, PERSONAL_AGENT))

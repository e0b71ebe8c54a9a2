"""What a Company's agent may do, whom it acts as and in which words: the part that the app decides once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from papaver.company.company_agent.actions import ActionPolicy, AuthorizeAction, FormatAction, format_action
from papaver.company.company_agent.actors import ActorFor
from papaver.company.company_agent.memory import Memory
from papaver.company.company_agent.proposals import Proposals
from papaver.company.company_agent.questions import QuestionPolicy
from papaver.company.company_agent.tools import Tools, check_scopes_offered, idle_hints
from papaver.company.scopes import Scope
from papaver.company.texts import TextsFor
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule

__all__ = ["CompanyAgent", "check_policies"]

log = logging.getLogger("papaver.company")


@dataclass(frozen=True, slots=True)
class CompanyAgent:
    """`Company(company_agent=CompanyAgent(tools))`.

    `tools`             all that the agent can call, for every Personal Agent that comes
    `actions`           who approves an action: the scopes of the User's token, or nobody
    `authorize_action`  the Company's own say, after the scopes
    `format_action`     words one action; `texts_for` finds the sentences of a language
    `actor_for`         whom a principal acts as, in place of the account
    `memory`            what actors remember by; nothing for a Personal Agent unless it says so
    `proposals`         where tools propose what is carried out elsewhere
    `on_question`       who is asked what the agent would ask a person
    """

    tools: Tools = field(default_factory=Tools)
    actions: ActionPolicy = ActionPolicy.APPROVE_BY_SCOPE
    authorize_action: AuthorizeAction | None = None
    format_action: FormatAction = format_action
    texts_for: TextsFor | None = None
    actor_for: ActorFor | None = None
    memory: Memory = field(default_factory=Memory)
    proposals: Proposals | None = None
    on_question: QuestionPolicy = "skip"

    def __post_init__(self) -> None:
        check_policies(self.actions, self.on_question)

    def check(self, scopes: Sequence[Scope]) -> None:
        """That it fits the Company's scopes (4.7). Raises ConfigurationError, and warns of what is doubtful."""
        check_scopes_offered(self.tools, scopes)
        for name in idle_hints(self.tools, scopes):
            log.warning(
                "the tool %s changes something, and each scope that it needs is hinted at as changing nothing: "
                "say changes='reversible' or 'irreversible' for one of them, or give it another scope",
                name,
            )


@rule("configuration.agent-policies")
def check_policies(actions: object, on_question: object) -> None:
    """A policy that is mistyped would be one that nobody chose. Raises ConfigurationError."""
    if not isinstance(actions, ActionPolicy):
        raise ConfigurationError(
            f"actions is {actions!r}, expected ActionPolicy.APPROVE_BY_SCOPE or ActionPolicy.REJECT",
            rule="configuration.agent-policies",
        )
    if on_question not in ("skip", "ask_agent", "request_user"):
        raise ConfigurationError(
            f"on_question is {on_question!r}, expected 'skip', 'ask_agent' or 'request_user'",
            rule="configuration.agent-policies",
        )

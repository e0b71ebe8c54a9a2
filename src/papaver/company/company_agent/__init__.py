"""The Company Agent's side of a turn: tools, actions, actors, and what a model is shown of a conversation."""

from papaver.company.company_agent.actions import (
    ActionFailed,
    ActionOutcome,
    ActionPolicy,
    ActionRejected,
    format_action,
)
from papaver.company.company_agent.actors import (
    PERSONAL_AGENT,
    Actor,
    Principal,
    actor_of,
    principal_of,
    scope_role,
)
from papaver.company.company_agent.agent import CompanyAgent
from papaver.company.company_agent.arguments import ToolError
from papaver.company.company_agent.memory import Memory
from papaver.company.company_agent.proposals import Proposals, ProposalsHere, Proposed
from papaver.company.company_agent.questions import Question
from papaver.company.company_agent.rendering import page_context, render_for_model, render_message
from papaver.company.company_agent.tools import Confirmation, Tool, ToolCall, Tools
from papaver.company.company_agent.turn_tools import TurnTools

__all__ = [
    "PERSONAL_AGENT",
    "ActionFailed",
    "ActionOutcome",
    "ActionPolicy",
    "ActionRejected",
    "Actor",
    "CompanyAgent",
    "Confirmation",
    "Memory",
    "Principal",
    "Proposals",
    "ProposalsHere",
    "Proposed",
    "Question",
    "Tool",
    "ToolCall",
    "ToolError",
    "Tools",
    "TurnTools",
    "actor_of",
    "format_action",
    "page_context",
    "principal_of",
    "render_for_model",
    "render_message",
    "scope_role",
]

"""The Company's side: `Company`, and what its handler is given and returns."""

from papaver.company.app import Company
from papaver.company.authserver import EmbeddedIssuer, InteractionOver, IssuerLimits
from papaver.company.company_agent import (
    ActionPolicy,
    Actor,
    CompanyAgent,
    Confirmation,
    Memory,
    Principal,
    ToolCall,
    ToolError,
    Tools,
)
from papaver.company.external_issuer import ExternalIssuer, Introspection
from papaver.company.hooks import Cancelled, Handoff, HandoffAnswer, HandoffMessage, Nobody
from papaver.company.offer import Mcp, OpenApi
from papaver.company.people import Person
from papaver.company.scopes import Scope
from papaver.company.settings import CompanyLimits
from papaver.company.staff_console import SignInAt, Visit
from papaver.company.texts import Texts
from papaver.company.turn import Handler, Reply, ScopesNeeded, Turn
from papaver.protocol.conversation.people_decide import NotJoined, Taken
from papaver.protocol.negotiation import Retirement
from papaver.protocol.session import VerifiedSession
from papaver.protocol.signed_in import SignedInSession
from papaver.protocol.terms import AccountId

__all__ = [
    "AccountId",
    "ActionPolicy",
    "Actor",
    "Cancelled",
    "Company",
    "CompanyAgent",
    "CompanyLimits",
    "Confirmation",
    "EmbeddedIssuer",
    "ExternalIssuer",
    "Handler",
    "Handoff",
    "HandoffAnswer",
    "HandoffMessage",
    "InteractionOver",
    "Introspection",
    "IssuerLimits",
    "Mcp",
    "Memory",
    "Nobody",
    "NotJoined",
    "OpenApi",
    "Person",
    "Principal",
    "Reply",
    "Retirement",
    "Scope",
    "ScopesNeeded",
    "SignInAt",
    "SignedInSession",
    "Taken",
    "Texts",
    "ToolCall",
    "ToolError",
    "Tools",
    "Turn",
    "VerifiedSession",
    "Visit",
]

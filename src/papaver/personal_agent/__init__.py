"""The Personal Agent's side of the protocol. It needs an adapter: `papaver.adapters.httpx2.PersonalAgent`."""

from __future__ import annotations

from papaver.personal_agent.app import KeyInUse, KnownCompany, KnownConversation, PendingMessage, PersonalAgent
from papaver.personal_agent.content import printable
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.discovered import DiscoveredCompany
from papaver.personal_agent.identity import Identity, IdentityKeys
from papaver.personal_agent.live import NotOffered
from papaver.personal_agent.session import Session
from papaver.personal_agent.settings import AgentLimits

__all__ = [
    "AgentLimits",
    "Conversation",
    "DiscoveredCompany",
    "Identity",
    "IdentityKeys",
    "KeyInUse",
    "KnownCompany",
    "KnownConversation",
    "NotOffered",
    "PendingMessage",
    "PersonalAgent",
    "Session",
    "printable",
]

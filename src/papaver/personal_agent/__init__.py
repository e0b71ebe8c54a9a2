"""The Personal Agent's side of the protocol. It needs an adapter: `papaver.adapters.httpx2.PersonalAgent`."""

from __future__ import annotations

from papaver.personal_agent.app import KeyInUse, KnownCompany, KnownConversation, PendingMessage, PersonalAgent
from papaver.personal_agent.content import printable
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.direct import Agreed, AskUser, Declined
from papaver.personal_agent.discovered import DiscoveredCompany
from papaver.personal_agent.identity import Identity, IdentityKeys
from papaver.personal_agent.live import NotOffered
from papaver.personal_agent.session import Session
from papaver.personal_agent.settings import AgentLimits
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, KnownAccount, SignedIn
from papaver.personal_agent.sign_in_checks import SignInUnavailable, SignInUnknown

__all__ = [
    "AgentLimits",
    "Agreed",
    "AskUser",
    "Conversation",
    "Declined",
    "DeviceSignIn",
    "DirectSignIn",
    "DiscoveredCompany",
    "Identity",
    "IdentityKeys",
    "KeyInUse",
    "KnownAccount",
    "KnownCompany",
    "KnownConversation",
    "NotOffered",
    "PendingMessage",
    "PersonalAgent",
    "Session",
    "SignInUnavailable",
    "SignInUnknown",
    "SignedIn",
    "printable",
]

"""Every identifier of the protocol as its own type. All are plain strings, compared character for character."""

from __future__ import annotations

from typing import NewType

__all__ = [
    "AccountId",
    "AgentId",
    "ClientId",
    "CompanyId",
    "ConversationId",
    "EventId",
    "MessageId",
    "SessionId",
    "TurnId",
    "UserId",
]

CompanyId = NewType("CompanyId", str)
"""The Company's identifier: its issuer, or `https://{domain}` (3.2)."""
ClientId = NewType("ClientId", str)
"""The Personal Agent's `client_id`, an HTTPS URL (4.1)."""
UserId = NewType("UserId", str)
"""The pairwise User ID, `sub` of a Session JWT (5.1)."""
AgentId = NewType("AgentId", str)
"""The optional Agent ID (5.1)."""
AccountId = NewType("AccountId", str)
"""The Company's own id of a User's account; never sent."""
SessionId = NewType("SessionId", str)
"""`sid`, chosen by the Personal Agent (5.2)."""
ConversationId = NewType("ConversationId", str)
"""Chosen by the Company (8.2)."""
EventId = NewType("EventId", str)
"""Chosen by the Company; also a cursor (8.5)."""
MessageId = NewType("MessageId", str)
"""Chosen by the side that writes the message (8.3)."""
TurnId = NewType("TurnId", str)
"""One attempt-independent id of one turn of the handler; its idempotency key."""

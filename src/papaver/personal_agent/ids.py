"""User IDs and Agent IDs (5.1): random, one for each User at each Company, kept in the vault, derived from nothing."""

from __future__ import annotations

from typing import Final

from papaver.personal_agent.flows.effects import Flow, keep
from papaver.personal_agent.records import IdRow, read_row, row_key, write_row
from papaver.ports.system import Ids
from papaver.protocol.terms import AgentId, CompanyId, MessageId, SessionId, UserId

__all__ = ["AGENT_ID", "USER_ID", "agent_id", "message_id", "session_id", "user_id"]

USER_ID: Final = "user-id"
AGENT_ID: Final = "agent-id"


def user_id(ids: Ids, user: str, company: CompanyId) -> Flow[UserId]:
    """The User ID of the local User `user` at a Company: the stored one, or a new one, stored before it is used."""
    return UserId((yield from _stored_id(USER_ID, "usr_", ids, (user,), company)))


def agent_id(ids: Ids, user: str, name: str, company: CompanyId) -> Flow[AgentId]:
    """The Agent ID of the User's agent `name` at a Company, as `user_id`."""
    return AgentId((yield from _stored_id(AGENT_ID, "agt_", ids, (user, name), company)))


def session_id(ids: Ids) -> SessionId:
    """A Session ID that nobody can guess and no other Session has (5.2)."""
    return SessionId(ids.token())


def message_id(ids: Ids) -> MessageId:
    """A message ID, unique for the User because it is unique altogether (8.3)."""
    return MessageId(f"msg_{ids.token()}")


def _stored_id(kind: str, prefix: str, ids: Ids, name: tuple[str, ...], company: CompanyId) -> Flow[str]:
    """The prefix keeps an ID from beginning with `-`; it says nothing about the User."""
    fresh = write_row(IdRow(" / ".join(name), company, prefix + ids.token()))
    value = yield from keep(kind, row_key(*name, company), lambda stored: fresh if stored is None else stored)
    return read_row(IdRow, value or fresh).id

"""How Sessions and receipts lie in columns."""

from __future__ import annotations

from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.state import Receipt
from papaver.protocol.terms import AgentId, ClientId, ConversationId, SessionId, UserId

__all__ = ["SESSION_COLUMNS", "SessionColumns", "read_receipt", "read_session"]

SESSION_COLUMNS = "key, client_id, sid, user_id, agent_id, seen_at, ended_at"
SessionColumns = tuple[str, str, str, str, str | None, float, float | None]


def read_session(row: SessionColumns) -> SessionRow:
    key, client_id, sid, user_id, agent_id, seen_at, ended_at = row
    return SessionRow(
        key,
        ClientId(client_id),
        SessionId(sid),
        UserId(user_id),
        None if agent_id is None else AgentId(agent_id),
        seen_at,
        ended_at,
    )


def read_receipt(row: tuple[str, str, int, str, str]) -> Receipt:
    fingerprint, conversation, accepted_as, status, responder = row
    return Receipt(fingerprint, ConversationId(conversation), accepted_as, Status(status), Responder(responder))

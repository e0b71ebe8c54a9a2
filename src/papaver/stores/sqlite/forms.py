"""How values lie in columns: Sessions, receipts and the digests that stand for long keys."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.state import Receipt
from papaver.protocol.terms import AgentId, ClientId, ConversationId, SessionId, UserId

__all__ = ["SESSION_COLUMNS", "SessionColumns", "digest", "number", "read_receipt", "read_session"]

SESSION_COLUMNS = "key, client_id, sid, user_id, agent_id, seen_at, ended_at"
SessionColumns = tuple[str, str, str, str, str | None, float, float | None]


def digest(*parts: str) -> bytes:
    """16 bytes that stand for these strings; some 2**64 rows before two of them may meet."""
    framed = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(4096)
def number(*parts: str) -> int:
    """The same as a number of 64 bits, for what need not be certain."""
    return int.from_bytes(digest(*parts)[:8], "big", signed=True)


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

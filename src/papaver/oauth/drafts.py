"""The drafts that are followed here, by their exact names: whoever relies on one says which."""

from __future__ import annotations

from typing import Final

__all__ = ["CIMD_DRAFT", "acknowledge_draft"]

CIMD_DRAFT: Final = "draft-ietf-oauth-client-id-metadata-document-02"
"""The draft that client metadata documents follow here (4.1); another one may want other documents. Reports show it."""


def acknowledge_draft(name: str) -> None:
    """Whoever runs either side says by name which draft it relies on (`ack`). ValueError when it is not this one.

    So an update that follows another draft stops at start, and not at somebody's sign-in.
    """
    if name != CIMD_DRAFT:
        raise ValueError(
            f"client metadata documents follow {CIMD_DRAFT} here, not {name}; read what changed, then say so"
        )

"""Draft 0.4 as one value. Only `papaver.versions` imports this."""

from __future__ import annotations

from typing import Final

from papaver.protocol.dialect import Dialect, Version
from papaver.versions.v0_4.conversations import CONVERSATIONS
from papaver.versions.v0_4.documents import DOCUMENTS
from papaver.versions.v0_4.errors import ERRORS
from papaver.versions.v0_4.session import SESSION

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    version=Version(0, 4), documents=DOCUMENTS, session=SESSION, conversations=CONVERSATIONS, errors=ERRORS
)

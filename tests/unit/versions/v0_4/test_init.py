"""Draft 0.4 as one value."""

from __future__ import annotations

from papaver.protocol.dialect import Version
from papaver.versions.v0_4 import DIALECT
from papaver.versions.v0_4.conversations import CONVERSATIONS
from papaver.versions.v0_4.documents import DOCUMENTS
from papaver.versions.v0_4.errors import ERRORS
from papaver.versions.v0_4.session import SESSION


def test_the_dialect_is_made_of_its_own_parts() -> None:
    """Nothing of another version is in it."""
    assert DIALECT.version == Version(0, 4)
    assert (DIALECT.documents, DIALECT.session) == (DOCUMENTS, SESSION)
    assert (DIALECT.conversations, DIALECT.errors) == (CONVERSATIONS, ERRORS)

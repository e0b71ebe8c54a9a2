"""Drafts are relied on by their exact names."""

from __future__ import annotations

import pytest

from papaver.oauth.drafts import CIMD_DRAFT, acknowledge_draft


def test_a_draft_is_acknowledged_by_its_exact_name() -> None:
    """Another number may want other documents, and stops at start."""
    acknowledge_draft(CIMD_DRAFT)
    acknowledge_draft("draft-ietf-oauth-client-id-metadata-document-02")
    with pytest.raises(ValueError, match="read what changed"):
        acknowledge_draft("draft-ietf-oauth-client-id-metadata-document-03")

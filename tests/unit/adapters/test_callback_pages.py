"""The pages at the end of a sign-in may do nothing and hold nothing of anybody."""

from __future__ import annotations

import pytest

from papaver.adapters.callback_pages import DONE, FAILED, NOTHING, OVER, WRONG, Page


@pytest.mark.parametrize("page", [DONE, FAILED, NOTHING, OVER, WRONG], ids=lambda page: page.reason)
def test_a_page_loads_nothing_and_is_kept_by_nobody(page: Page) -> None:
    """No script, no style, no frame, no referrer."""
    fields = dict(page.headers)
    assert fields["Content-Security-Policy"].startswith("default-src 'none'")
    assert fields["Cache-Control"] == "no-store"
    assert fields["Referrer-Policy"] == "no-referrer"
    assert "<script" not in page.document
    assert "{" not in page.document
    assert "close this window" in page.document

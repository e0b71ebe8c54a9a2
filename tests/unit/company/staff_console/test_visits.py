"""A request to the staff console: the place that its path names, and the cookie that says who comes."""

from __future__ import annotations

import pytest

from papaver.company.staff_console import Visit
from papaver.company.staff_console.visits import Place, read_place
from papaver.protocol.terms import ConversationId
from papaver.web.messages import Headers


@pytest.mark.parametrize(
    ("suffix", "place"),
    [
        ("", Place(None, "")),
        ("/news", Place(None, "news")),
        ("/conversations/cnv_1", Place(ConversationId("cnv_1"), "")),
        ("/conversations/cnv_1/news", Place(ConversationId("cnv_1"), "news")),
        ("/conversations/cnv_1/say", Place(ConversationId("cnv_1"), "say")),
        ("/", None),
        ("/say", None),
        ("/conversations", None),
        ("/conversations/", None),
        ("/conversations/cnv_1/", None),
        ("/conversations/cnv_1/nowhere", None),
        ("/conversations/cnv.1", None),
        ("/conversations/cnv_1/say/more", None),
        ("/conversations/" + "c" * 257, None),
        ("/conversations/cnv_1\n", None),
        ("/conversations/%63nv_1", None),
    ],
)
def test_a_path_names_a_place_or_nothing(suffix: str, place: Place | None) -> None:
    """Exactly as it is written."""
    assert read_place(suffix) == place


def test_an_action_is_a_post_and_nothing_else_is() -> None:
    """A link does nothing."""
    assert Place(ConversationId("c"), "take").methods == ("POST",)
    assert Place(ConversationId("c"), "news").methods == Place(None, "").methods == ("GET", "HEAD")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([("cookie", "who=alex; other=1")], "alex"),
        ([("cookie", "a=b"), ("cookie", "who=alex")], "alex"),
        ([("cookie", "who=alex; who=alex")], "alex"),
        ([("cookie", "who=alex; who=kim")], None),
        ([("cookie", "whom=alex")], None),
        ([], None),
    ],
)
def test_a_cookie_is_read_and_a_planted_one_beside_it_is_not_believed(
    fields: list[tuple[str, str]], found: str | None
) -> None:
    """Two that differ are none."""
    visit = Visit("GET", "/poppy/staff", "token=x", Headers(fields), "192.0.2.1")
    assert visit.cookie("who") == found
    assert "token=x" not in repr(visit)

"""Renders the pages of the staff console: they work without script, and go on by themselves with the one of ours."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup, escape

from papaver.ports.staff_pages import ConversationView, NoticeView, QueueView
from papaver.screens.headers import framed_headers, staff_headers
from papaver.screens.pages import hints
from papaver.screens.rendering import Rendering
from papaver.screens.shown import block, moment, name, waited
from papaver.web.messages import Response

__all__ = ["HtmlStaffPages"]


class HtmlStaffPages:
    """The pages of `ports.staff_pages.StaffPages` as HTML."""

    def __init__(self) -> None:
        filters = {"name": name, "moment": moment, "iso_moment": iso_moment, "waited": waited, "block": lines}
        self._rendering = Rendering(("style.css", "icon.svg", "staff.css", "staff.js"), filters, {"hints": hints})

    def queue(self, view: QueueView) -> Response:
        """Who waits, the longest first."""
        return self._page("staff_queue.html", view)

    def queue_news(self, view: QueueView) -> Response:
        """The lists alone."""
        return self._page("staff_queue_news.html", view)

    def conversation(self, view: ConversationView, status: int = 200) -> Response:
        """One conversation, and what can be done in it."""
        return self._page("staff_conversation.html", view, status)

    def news(self, view: ConversationView) -> Response:
        """What is new in it, for the script."""
        return self._page("staff_news.html", view)

    def live(self, view: ConversationView) -> Response:
        """What is new in it, for a frame where there is no script."""
        return self._rendering.page("staff_live.html", 200, framed_headers(), view=view, assets=_assets(view.root))

    def message(self, view: NoticeView, status: int) -> Response:
        """Something is told."""
        return self._page("staff_message.html", view, status)

    def asset(self, path: str) -> Response | None:
        """A style sheet, the script, the icon; None for any other name."""
        return self._rendering.asset(path)

    def _page(self, template: str, view: QueueView | ConversationView | NoticeView, status: int = 200) -> Response:
        return self._rendering.page(template, status, staff_headers(), view=view, assets=_assets(view.root))


def _assets(root: str) -> str:
    return f"{root}/assets"


def iso_moment(seconds: float) -> str:
    """A time for machines."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


def lines(text: str) -> Markup:
    """Text of several lines, escaped, its line ends kept."""
    return escape(block(text))

"""Renders the pages of sign-in with Jinja2: no script, nothing inline, every value cleaned and escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from papaver.ports.pages import ConnectedView, ConsentView, DeviceView, MessageView, ShownScope
from papaver.screens.headers import page_headers
from papaver.screens.rendering import Rendering
from papaver.screens.shown import name, plain_date
from papaver.web.messages import Response

__all__ = ["HtmlPages", "hints", "iso_date"]


class HtmlPages:
    """The pages of `ports.pages.Pages` as HTML that needs no JavaScript.

    `assets` is where the style sheet and the icon are, as seen from the pages; by default the issuer's `assets/`.
    Their links change with their content, so that browsers may keep them.
    """

    def __init__(self, *, assets: str = "assets") -> None:
        self._rendering = Rendering(
            ("style.css", "icon.svg"),
            {"name": name, "plain_date": plain_date, "iso_date": iso_date},
            {"hints": hints, "assets": assets.rstrip("/")},
        )

    def consent(self, view: ConsentView, status: int = 200) -> Response:
        """Shall this agent get these scopes?"""
        return self._page("consent.html", view, status)

    def device(self, view: DeviceView, status: int = 200) -> Response:
        """Which code does the other device show?"""
        return self._page("device.html", view, status)

    def connected(self, view: ConnectedView, status: int = 200) -> Response:
        """Which agents may act for this account?"""
        return self._page("connected.html", view, status)

    def message(self, view: MessageView, status: int = 200) -> Response:
        """Something is told."""
        return self._page("message.html", view, status)

    def asset(self, path: str) -> Response | None:
        """`style.css` or `icon.svg`; None for any other name."""
        return self._rendering.asset(path)

    def _page(self, template: str, view: object, status: int) -> Response:
        return self._rendering.page(template, status, page_headers(), view=view)


def hints(scope: ShownScope) -> tuple[tuple[str, str], ...]:
    """What a scope's hints say (4.7), as (kind for its looks, plain words)."""
    told = [_CHANGES[scope.changes]] if scope.changes else []
    if scope.personal_data is not None:
        told.append(_PERSONAL if scope.personal_data else _NOT_PERSONAL)
    return tuple(told)


def iso_date(seconds: float) -> str:
    """The same day for machines."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


_CHANGES: Final = {
    "none": ("calm", "Only looks, changes nothing"),
    "reversible": ("calm", "Changes can be undone"),
    "irreversible": ("grave", "Changes can’t be undone"),
}
_PERSONAL: Final = ("personal", "Shows or changes personal data")
_NOT_PERSONAL: Final = ("calm", "No personal data")

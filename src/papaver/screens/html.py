"""Views to HTML: Jinja2, escaped everywhere, without script, with the headers that keep a page to itself."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from importlib import resources
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from papaver.ports.pages import ConnectedView, ConsentView, DeviceView, MessageView
from papaver.web.messages import Headers, Response

__all__ = ["HtmlPages", "shown"]

STYLE: Final = "style.css"
MOST: Final = 120
"""Characters of a name or text that somebody else wrote; the rest is left out, and said to be."""

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
    # A form's answer may lead on to the agent's redirect URI, on its host or on loopback, and browsers judge that hop
    # by this too; a policy cannot name [::1].
    "form-action 'self' https: http:"
)
HEADERS: Final = (
    ("content-type", "text/html; charset=utf-8"),
    ("content-security-policy", POLICY),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
    ("referrer-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", "publickey-credentials-get=(), camera=(), microphone=(), geolocation=()"),
)


def shown(text: str, most: int = MOST) -> str:
    """What another party wrote, for people's eyes: one line, bounded, nothing invisible, no change of direction."""
    kept = "".join(
        " " if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else one for one in text
    )
    line = " ".join(kept.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _date(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.day} {when:%B %Y}"


def _machine_date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


class HtmlPages:
    """`Pages` as HTML. Everything that a view holds is escaped; what others wrote is made fit to be seen first."""

    def __init__(self) -> None:
        environment = Environment(
            loader=PackageLoader("papaver.screens"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(shown=shown, date=_date, machine_date=_machine_date)
        self._environment = environment
        style = resources.files("papaver.screens").joinpath("templates", STYLE).read_bytes()
        headers = Headers(
            [
                ("content-type", "text/css; charset=utf-8"),
                ("cache-control", "public, max-age=3600"),
                ("x-content-type-options", "nosniff"),
            ]
        )
        self._assets = {STYLE: Response(200, headers, style)}

    def consent(self, view: ConsentView, status: int = 200) -> Response:
        return self._page("consent.html", view, status)

    def device(self, view: DeviceView, status: int = 200) -> Response:
        return self._page("device.html", view, status)

    def connected(self, view: ConnectedView, status: int = 200) -> Response:
        return self._page("connected.html", view, status)

    def message(self, view: MessageView, status: int = 200) -> Response:
        return self._page("message.html", view, status)

    def asset(self, path: str) -> Response | None:
        return self._assets.get(path)

    def _page(self, name: str, view: object, status: int) -> Response:
        text = self._environment.get_template(name).render(view=view)
        return Response(status, Headers(HEADERS), text.encode("utf-8", "replace"))

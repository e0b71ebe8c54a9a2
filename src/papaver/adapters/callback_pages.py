"""The pages that a User sees when their browser comes back from a sign-in: small, static, without a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DONE", "FAILED", "NOTHING", "OVER", "WRONG", "Page"]

_DOCUMENT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{text}</p></main></body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page. Nothing of a request is in it, so nothing in it can be another party's."""

    status: int
    reason: str
    document: str

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """It may load nothing, be kept and be framed by nobody, and tells nobody where it was."""
        return (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        )


def _page(status: int, reason: str, title: str, text: str = "You can close this window.") -> Page:
    return Page(status, reason, _DOCUMENT.format(title=title, text=text))


DONE: Final = _page(200, "OK", "You can close this window", "Your Personal Agent goes on where you left it.")
OVER: Final = _page(410, "Gone", "This sign-in is over", "Nothing was taken from this page. You can close this window.")
FAILED: Final = _page(200, "OK", "You are not signed in", "Your Personal Agent says why. You can close this window.")
NOTHING: Final = _page(404, "Not Found", "Nothing here")
WRONG: Final = _page(400, "Bad Request", "Not a request")

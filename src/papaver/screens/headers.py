"""The header fields that keep our pages from being framed, cached, scripted or told about to others."""

from __future__ import annotations

from typing import Final

from papaver.web.messages import Headers

__all__ = ["asset_headers", "framed_headers", "page_headers", "staff_headers"]

# Chromium applies `form-action` to every redirect that follows a form. After consent those are the Personal Agent's, on
# hosts that only it knows, or on loopback; a policy cannot name [::1] (ADR 0028).
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self' https: http:",
    )
)
# Staff pages send forms home and nowhere else, run the one script of ours, and show what is new in a frame of ours.
STAFF_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors {framing}",
    )
)
# `same-origin` rather than `no-referrer`: with the latter a browser sends `Origin: null` with our own forms, and a
# forged form could not be told from ours by it. No other origin learns anything either way.
_ALWAYS: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
_PAGE: Final = Headers(
    (
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", POLICY),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        *_ALWAYS,
    )
)


_STAFF: Final = _PAGE.with_(("content-security-policy", STAFF_POLICY.format(framing="'none'")))
_FRAMED: Final = _PAGE.with_(
    ("content-security-policy", STAFF_POLICY.format(framing="'self'")),
    ("x-frame-options", "SAMEORIGIN"),
    ("refresh", "4"),
)


def page_headers() -> Headers:
    """Of every page."""
    return _PAGE


def staff_headers() -> Headers:
    """Of every page of the staff console."""
    return _STAFF


def framed_headers() -> Headers:
    """Of the one page without forms that a page of the console shows in a frame; it reloads itself every 4 seconds."""
    return _FRAMED


def asset_headers(media_type: str) -> Headers:
    """Of a style sheet or an icon, which say nothing of anybody and may be kept for a day."""
    return Headers(
        (
            ("content-type", media_type),
            ("content-security-policy", "default-src 'none'; sandbox"),
            ("cache-control", "public, max-age=86400"),
            *_ALWAYS,
        )
    )

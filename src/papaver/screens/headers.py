"""The header fields that keep our pages from being framed, cached, scripted or told about to others."""

from __future__ import annotations

from typing import Final

from papaver.web.messages import Headers

__all__ = ["asset_headers", "page_headers"]

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


def page_headers() -> Headers:
    """Of every page."""
    return _PAGE


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

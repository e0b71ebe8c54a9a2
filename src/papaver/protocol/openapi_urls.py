"""The URLs of an OpenAPI description: its servers, and the paths below them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import quote

from papaver.protocol.openapi_pointers import Members, members_of
from papaver.web.urls import UrlError, htu, read_url, resolve

__all__ = ["read_path", "read_servers"]

MOST_SERVERS: Final = 10
"""Servers of one list that are read."""
MOST_PLACES: Final = 20
"""`{name}` in one path or server URL."""

PLACE: Final = re.compile(r"\{([^{}/]+)\}")
_BETWEEN: Final = re.compile(r"\{[^{}/]+\}")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_LITERAL: Final = "/!$&'()*+,;=:@%"
"""Beside the unreserved characters, what stands in a path as it is (RFC 3986 3.3)."""

_ANYWHERE: Final = "https://x.example/x"

Found = Callable[[str, str], None]
"""Told of what is left out: (where, a name or a number; what is wrong)."""


def read_servers(listed: object, url: str, found: Found) -> tuple[str, ...] | None:
    """The URLs of a `servers` member: absolute and https, each as it is written but for the slash of an empty path.

    Relative ones are resolved against `url`, where the description was found. Variables stand for their defaults.
    None when there is no such member, or it is empty: then the list above applies.
    """
    if not isinstance(listed, list) or not listed:
        return None
    servers = cast("list[object]", listed)
    if len(servers) > MOST_SERVERS:
        found("", f"only the first {MOST_SERVERS} servers are read")
    bases: dict[str, None] = {}
    for at, server in enumerate(servers[:MOST_SERVERS]):
        base, wrong = _server_url(members_of(server), url)
        if wrong:
            found(str(at), wrong)
        else:
            bases[base] = None
    return tuple(bases)


def read_path(template: str) -> str | None:
    """A path as a request has it, its `{name}` places kept; None for one that can be no path below a server.

    Octets that a URL cannot say are escaped, escapes have their one form (RFC 3986 6.2.2), so that a request's URL
    can be compared with it.
    """
    if not template.startswith("/") or any(mark in template for mark in "?#"):
        return None
    names = PLACE.findall(template)
    if len(names) > MOST_PLACES:
        return None
    literals = _BETWEEN.split(template)
    if any(mark in literal for literal in literals for mark in "{}"):
        return None
    written = [_written(literal) for literal in literals]
    pieces = [written[0]]
    for name, literal in zip(names, written[1:], strict=True):
        pieces += [f"{{{name}}}", literal]
    path = "".join(pieces)
    if any(segment in (".", "..") for segment in path.split("/")):
        return None
    return path


def _written(literal: str) -> str:
    """A part of a path in the form that `htu` gives it."""
    whole = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", literal)
    escaped = quote(whole, safe=_LITERAL, errors="replace")
    return _ESCAPE.sub(lambda match: htu(f"{_ANYWHERE}{match[0]}").removeprefix(_ANYWHERE), escaped)


def _server_url(server: Members, url: str) -> tuple[str, str]:
    """The base URL of one server, or what is wrong with it."""
    template = server.get("url")
    if not isinstance(template, str):
        return "", "a server without a url"
    filled = _filled(template, members_of(server.get("variables")))
    if filled is None:
        return "", "a variable of its url has no default"
    try:
        base = resolve(url, filled)
        parts = read_url(base)
    except UrlError as error:
        return "", f"its url cannot be used: {error.description}"
    if parts.scheme != "https":
        return "", "its url is not https"
    if parts.query is not None or parts.fragment is not None:
        return "", "its url has a query or a fragment"
    return base.removesuffix("/") if parts.path == "/" else base, ""


def _filled(template: str, variables: Members) -> str | None:
    """The template with each variable's default; None when one has none. What is not filled in is no URL."""
    names = PLACE.findall(template)
    if len(names) > MOST_PLACES:
        return None
    for name in names:
        default = members_of(variables.get(name)).get("default")
        if not isinstance(default, str):
            return None
        template = template.replace(f"{{{name}}}", default, 1)
    return template

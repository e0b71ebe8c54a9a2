"""URLs as strings: read strictly, compared by host, normalised in one place, joined without changing a character.

A URL that identifies something stays the `str` it arrived as. What is read here serves to look at a part of it or to
build another string. Only ASCII is a URL; what a browser would repair (white space, backslashes, control characters)
is refused, because two sides that repair differently see two URLs.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = [
    "Url",
    "UrlError",
    "authorization_server_metadata_url",
    "check_https",
    "host_of",
    "host_within",
    "htu",
    "join",
    "origin_of",
    "poppy_json_url",
    "protected_resource_metadata_url",
    "read_domain",
    "read_url",
    "resolve",
    "same_host",
]

MAX_LENGTH: Final = 8192
MAX_HOST: Final = 253
DEFAULT_PORTS: Final = {"https": 443, "http": 80}

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# The last label begins with a letter, so that no spelling of an IPv4 address (127.1, 0x7f000001) passes for a name.
_NAME: Final = rf"(?:{_LABEL}\.)*+(?=[a-z]){_LABEL}"
# All of visible ASCII but what delimits here and `"`, `<`, `>`, `\`: wider than RFC 3986, as browsers send it.
_SEGMENT: Final = r"[!$&-.0-;=@-\[\]-~]"
_AFTER_PATH: Final = r"[!$-;=?-\[\]-~]"
_HEX: Final = r"[0-9a-f]"

_URL: Final = re.compile(
    rf"(?P<authority>(?P<scheme>https?)://(?:\[(?P<v6>[0-9a-f:.]{{2,45}})\]|(?P<v4>[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}})"
    rf"|(?P<name>{_NAME}))(?::(?P<port>[0-9]{{0,5}}))?)"
    rf"(?P<path>(?:/(?:{_SEGMENT}++|%{_HEX}{{2}})*+)*+)"
    rf"(?:\?(?P<query>{_AFTER_PATH}*+))?(?:\#(?P<fragment>{_AFTER_PATH}*+))?",
    re.IGNORECASE | re.ASCII,
)
_NORMAL: Final = re.compile(rf"https://{_NAME}(?:/(?!\.){_SEGMENT}*+)++", re.ASCII)
_DOMAIN: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE | re.ASCII
)
_REFERENCE: Final = re.compile(rf"(?:{_AFTER_PATH}|\#)*+", re.ASCII)
_ANY_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*+:", re.IGNORECASE | re.ASCII)
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class UrlError(PapaverError):
    """A text that is not the URL or the domain that was expected."""

    code = "invalid_url"
    description = "not an acceptable URL"


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of an absolute http or https URL.

    `scheme` and `host` are lowercase, an IPv6 host is compressed and in brackets; `port` is None when it is the
    scheme's own or absent; `path` is as written, perhaps empty; `query` and `fragment` are None when absent and ""
    when only their mark is there.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None
    fragment: str | None

    @property
    def origin(self) -> str:
        """Scheme, host and port, the port only where it is not the scheme's own."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def read_url(url: str) -> Url:
    """The parts of an absolute http or https URL (RFC 3986).

    Raises `UrlError` for another scheme, userinfo, an empty or odd host (a trailing dot, a zone, not ASCII, an
    address in an old spelling), port 0 or above 65535, a broken escape in the path, white space, control characters,
    backslashes, and more than 8192 characters.
    """
    match, host = _read(url)
    scheme = match["scheme"].lower()
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    return Url(
        scheme=scheme,
        host=host,
        port=None if port == DEFAULT_PORTS[scheme] else port,
        path=match["path"],
        query=match["query"],
        fragment=match["fragment"],
    )


@rule("web.https-only")
def check_https(url: str) -> None:
    """Refuse what is not an absolute https URL (section 3). Raises `UrlError`."""
    if read_url(url).scheme != "https":
        raise UrlError("the URL is not https", rule="web.https-only")


def host_of(url: str) -> str:
    """The lowercase host of a URL, without its port. Raises `UrlError`."""
    return _read(url)[1]


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, the port only where it is not the scheme's own. Raises `UrlError`."""
    return read_url(url).origin


def same_host(a: str, b: str) -> bool:
    """Whether two URLs have one host, compared ignoring ASCII case; ports may differ. Raises `UrlError`."""
    return host_of(a) == host_of(b)


def host_within(host: str, domain: str) -> bool:
    """Whether `host` is `domain` or a name below it, on label boundaries and ignoring ASCII case."""
    host, domain = host.lower(), domain.lower()
    return host == domain or (domain != "" and host.endswith(f".{domain}"))


def read_domain(text: str) -> str:
    """The lowercase form of a bare ASCII host name (readings 13, 53): A-labels, no port, no address, no trailing dot.

    Raises `UrlError`.
    """
    if len(text) > MAX_HOST or _DOMAIN.fullmatch(text) is None:
        raise UrlError("not a bare ASCII host name")
    return text.lower()


def htu(url: str) -> str:
    """The one form of a request's URL that both sides compare: `htu` of RFC 9449 4.2, without query and fragment.

    Syntax and scheme normalisation of RFC 3986 6.2.2 and 6.2.3: lowercase scheme and host, the default port dropped,
    an empty path is "/", escapes of unreserved characters decoded, the others in uppercase, dot segments removed (after
    decoding, as clients do before they send). A trailing slash stays what it is. Raises `UrlError`.
    """
    if len(url) <= MAX_HOST and _NORMAL.fullmatch(url) is not None:
        return url
    parts = read_url(url)
    path = _ESCAPE.sub(_normal_escape, parts.path) if "%" in parts.path else parts.path
    return parts.origin + (_without_dots(path) or "/")


def authorization_server_metadata_url(issuer: str) -> str:
    """Where an issuer's metadata is (RFC 8414 3.1): the well-known path between host and path. Raises `UrlError`."""
    match = _identifier(issuer)
    if match["query"] is not None:
        raise UrlError("an issuer has no query")
    return f"{match['authority']}/.well-known/oauth-authorization-server{match['path'].removesuffix('/')}"


def protected_resource_metadata_url(resource: str) -> str:
    """Where a resource's metadata is (RFC 9728 3.1): the well-known path between host and path. Raises `UrlError`.

    Only the slash that follows the host is dropped; a longer path and the query stay as they are.
    """
    match = _identifier(resource)
    path = "" if match["path"] == "/" else match["path"]
    query = "" if match["query"] is None else f"?{match['query']}"
    return f"{match['authority']}/.well-known/oauth-protected-resource{path}{query}"


def poppy_json_url(domain: str) -> str:
    """Where a domain's `poppy.json` is (section 3). Raises `UrlError` when it is not a domain."""
    return f"https://{read_domain(domain)}/.well-known/poppy.json"


def join(endpoint: str, suffix: str) -> str:
    """`suffix` appended to an endpoint as it is: nothing stripped, nothing escaped."""
    return endpoint + suffix


def resolve(base: str, location: str) -> str:
    """The absolute URL that `location` means beside `base` (RFC 3986 5.2), for redirects and references.

    Raises `UrlError` when either is unacceptable or the result is neither http nor https; whether it has to be https
    is the caller's question.
    """
    if _REFERENCE.fullmatch(location) is None:
        raise UrlError("not an acceptable reference")
    match, _ = _read(base)
    authority, path = match["authority"], match["path"]
    if _ANY_SCHEME.match(location) is not None:
        target = location
    elif location.startswith("//"):
        target = f"{match['scheme']}:{location}"
    elif location.startswith("/"):
        target = authority + location
    elif location.startswith("?"):
        target = authority + path + location
    elif location.startswith("#") or location == "":
        query = "" if match["query"] is None else f"?{match['query']}"
        target = authority + path + query + location
    else:
        target = authority + (path[: path.rfind("/") + 1] or "/") + location
    found, _ = _read(target)
    return found["authority"] + _without_dots(found["path"]) + target[found.end("path") :]


def _read(url: str) -> tuple[re.Match[str], str]:
    """The match of an acceptable URL, and its host in the one form."""
    match = _URL.fullmatch(url) if len(url) <= MAX_LENGTH else None
    if match is None and not url.lower().startswith(("https://", "http://")):
        raise UrlError("the URL has to begin with https://")
    if match is None:
        raise UrlError
    if match["port"] and not 0 < int(match["port"]) <= 65535:
        raise UrlError("the URL's port is out of range")
    return match, _host(match)


def _host(match: re.Match[str]) -> str:
    name = match["name"]
    if name is not None:
        if len(name) > MAX_HOST:
            raise UrlError("the URL's host is too long")
        return name.lower()
    try:
        if match["v4"] is not None:
            return str(ipaddress.IPv4Address(match["v4"]))
        return f"[{ipaddress.IPv6Address(match['v6'])}]"
    except ipaddress.AddressValueError:
        raise UrlError("the URL's host is no address and no name") from None


def _identifier(url: str) -> re.Match[str]:
    """The match of an https URL that can identify an issuer or a resource: without a fragment."""
    check_https(url)
    match, _ = _read(url)
    if match["fragment"] is not None:
        raise UrlError("an identifier has no fragment")
    return match


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """`path` without its "." and ".." segments (RFC 3986 5.2.4); it is empty or begins with a slash."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)

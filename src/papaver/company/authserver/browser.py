"""Browsers at our own pages: which one it is, by a cookie, and whether a form is our own (RFC 9700 4.7)."""

from __future__ import annotations

import hmac
import re
from typing import Final, Literal, Protocol

from papaver.ports.system import Ids
from papaver.values.base64url import encode
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.secret import SecretBytes
from papaver.web.messages import Headers

__all__ = ["Browsers", "Cookie", "ForeignForm", "Site", "check_csrf", "check_same_origin"]

Cookie = Literal["browser", "connected", "staff"]
_VALUE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII).fullmatch


class Site(Protocol):
    """Where our pages are: the origin, and the path below which all of them are, as browsers see it."""

    @property
    def path(self) -> str: ...

    @property
    def origin(self) -> str: ...


class ForeignForm(PapaverError):
    """A form that did not come from our own page."""

    code = "foreign_form"
    description = "this form did not come from this page; open the page again"


@rule("page.same-origin")
def check_same_origin(headers: Headers, origin: str) -> None:
    """A form of ours is sent from our own origin; browsers say where it came from, and no page can change that.

    `Origin` is "null" where a page keeps its address to itself, and says nothing then; `Sec-Fetch-Site` still does.
    """
    site, said = headers.all("sec-fetch-site"), headers.all("origin")
    elsewhere = any(one not in ("same-origin", "none") for one in site)
    if elsewhere or any(one != origin and not (one == "null" and site) for one in said):
        raise ForeignForm(rule="page.same-origin", detail=f"sec-fetch-site {site!r:.80}, origin {said!r:.300}")


@rule("page.csrf")
def check_csrf(found: str | None, expected: str) -> None:
    """Each form carries what only this page, in this browser, knows. Compared in constant time."""
    if found is None or not hmac.compare_digest(found.encode("utf-8", "surrogatepass"), expected.encode()):
        raise ForeignForm(rule="page.csrf", detail="no csrf token, or another one")


class Browsers:
    """Cookies and form tokens of one site, such as an issuer.

    The cookies are sent to it alone: `__Host-` where it has its host for itself, else limited to its path.
    """

    def __init__(self, site: Site, key: SecretBytes, ids: Ids) -> None:
        self._path, self._origin = site.path, site.origin
        self._key, self._ids = key, ids

    def name(self, cookie: Cookie) -> str:
        return f"{'__Secure-' if self._path else '__Host-'}papaver-{cookie}"

    def find(self, headers: Headers, cookie: Cookie) -> str | None:
        """The cookie's value; None when there is none, or two that differ: then one was planted."""
        name = self.name(cookie)
        pairs = (pair.strip().partition("=") for field in headers.all("cookie") for pair in field.split(";"))
        values = {value for key, _, value in pairs if key == name}
        value = values.pop() if len(values) == 1 else ""
        return value if _VALUE(value) is not None else None

    def fresh(self) -> str:
        return self._ids.token(32)

    def set(self, cookie: Cookie, value: str, seconds: int) -> tuple[str, str]:
        """The header field that sets it. Lax: the User comes from elsewhere, and back from the sign-in page."""
        kept = f"Max-Age={seconds}; Path={self._path or '/'}; Secure; HttpOnly; SameSite=Lax"
        return "set-cookie", f"{self.name(cookie)}={value}; {kept}"

    def csrf(self, page: str, value: str) -> str:
        """The token of a page's form in the browser that has this cookie."""
        return encode(hmac.digest(self._key.reveal(), f"{page} {value}".encode(), "sha256"))

    def check_form(self, headers: Headers, found: str | None, page: str, value: str) -> None:
        """Raises ForeignForm."""
        check_same_origin(headers, self._origin)
        check_csrf(found, self.csrf(page, value))

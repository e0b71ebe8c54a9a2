"""A User and their browser on the wire of a pair: they open links, type codes and approve at an embedded issuer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from papaver.company.authserver import EmbeddedIssuer
from papaver.protocol.terms import AccountId
from papaver.testing.pair import Pair
from papaver.web.messages import Headers, Request, Response

__all__ = ["User"]


class User:
    """`name` is the account at the Company that this User signs in to. Everything goes over the wire, as `browser`."""

    def __init__(self, both: Pair, issuer: EmbeddedIssuer, name: str = "acct_dana") -> None:
        self._both, self._issuer = both, issuer
        self.account = AccountId(name)
        self._cookies: dict[str, str] = {}

    async def approve(self, url: str, scopes: Sequence[str] | None = None) -> str:
        """Open an authorization URL, sign in, approve → the URL that the browser is sent back to."""
        asked = parse_qs(urlsplit(url).query)["scope"][0].split()
        return await self._decide(await self._send("GET", url), asked if scopes is None else scopes)

    async def decline(self, url: str) -> str:
        """Open an authorization URL and decline → the URL that the browser is sent back to."""
        return await self._issuer.decline(_interaction(await self._send("GET", url)))

    async def type_code(self, page: str, user_code: str, scopes: Sequence[str]) -> None:
        """Open the device page, type the code, sign in, approve."""
        shown = (await self._send("GET", page)).body.decode()
        csrf = re.search(r'name="csrf" value="([^"]*)"', shown)
        action = re.search(r'<form[^>]*action="([^"]*)"', shown)
        assert csrf is not None, shown
        target = page if action is None else urljoin(page, unescape(action[1]))
        form = urlencode({"csrf": unescape(csrf[1]), "user_code": user_code})
        await self._decide(await self._send("POST", target, form.encode()), scopes)

    async def _decide(self, answer: Response, scopes: Sequence[str]) -> str:
        return await self._issuer.approve(_interaction(answer), self.account, scopes=scopes)

    async def _send(self, method: str, url: str, body: bytes = b"") -> Response:
        headers = [("host", urlsplit(url).netloc), ("cookie", "; ".join(f"{k}={v}" for k, v in self._cookies.items()))]
        if body:
            origin = "/".join(url.split("/")[:3])
            headers += [("content-type", "application/x-www-form-urlencoded"), ("content-length", str(len(body)))]
            headers += [("origin", origin), ("sec-fetch-site", "same-origin")]
        answer = await self._both.wire.answer("browser", Request(method, url, Headers(headers), body), asyncio.Event())
        for field in answer.headers.all("set-cookie"):
            name, _, value = field.partition(";")[0].partition("=")
            self._cookies[name] = value
        return answer


def _interaction(answer: Response) -> str:
    """The interaction that the browser takes to the Company's sign-in page."""
    assert answer.status == 303, (answer.status, answer.body)
    return parse_qs(urlsplit(answer.headers.first("location") or "").query)["interaction"][0]

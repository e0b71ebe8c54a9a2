"""A window of the staff console without a screen: it keeps its cookies and sends the forms of its page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Final
from urllib.parse import urlencode

from papaver.company.app import Company
from papaver.company.incoming import Incoming
from papaver.company.people import Person
from papaver.company.staff_console import SignInAt, Visit
from papaver.protocol.conversation.model import Author
from papaver.protocol.errors import PayloadTooLarge
from papaver.web.messages import Headers, Response

__all__ = ["ALEX", "CONSOLE", "KIM", "StaffWindow", "by_cookie", "words"]

CONSOLE: Final = "/poppy/staff"
ALEX: Final = Person("aut_alex", "Alex")
KIM: Final = Person("aut_kim", "Kim")
_PEOPLE: Final[Mapping[str, Author | SignInAt]] = {"alex": ALEX, "kim": KIM, "new": SignInAt("https://example.com/in")}


async def by_cookie(visit: Visit) -> Author | SignInAt | None:
    """Who it is: the app's own cookie `who` says so."""
    return _PEOPLE.get(visit.cookie("who") or "")


def words(response: Response) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.body.decode())).split())


@dataclass
class StaffWindow:
    """`who` is signed in at the app. `page` is the newest answer; a redirect within the console was followed."""

    company: Company
    who: str = "alex"
    origin: str = "https://api.example.com"
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    page: Response = field(default_factory=lambda: Response(0))

    @property
    def csrf(self) -> str:
        """The token of the page that is open; empty when it has no form."""
        found = re.search(r'name="csrf" value="([^"]*)"', self.page.body.decode())
        return "" if found is None else unescape(found[1])

    async def open(self, path: str = "", query: str = "", method: str = "GET") -> Response:
        """A page of the console; `path` is below it."""
        self.page = await self.send(method, f"{CONSOLE}{path}", query)
        return self.page

    async def conversation(self, conversation: str) -> Response:
        return await self.open(f"/conversations/{conversation}")

    async def act(self, conversation: str, action: str, fields: Sequence[tuple[str, str]] = ()) -> Response:
        """Send a form of the page that is open: to that action, with its token."""
        token = [("csrf", self.csrf)] if self.csrf else []
        return await self.post(f"/conversations/{conversation}/{action}", [*token, *fields])

    async def post(
        self, path: str, fields: Sequence[tuple[str, str]], headers: Sequence[tuple[str, str]] | None = None
    ) -> Response:
        usual = [("origin", self.origin), ("sec-fetch-site", "same-origin")]
        type = ("content-type", "application/x-www-form-urlencoded")
        body = urlencode(fields).encode()
        self.page = await self.send(
            "POST", f"{CONSOLE}{path}", body=body, headers=[type, *(usual if headers is None else headers)]
        )
        if self.page.status == 303:
            there, _, query = (self.page.headers.first("location") or "").partition("#")[0].partition("?")
            self.page = await self.send("GET", there, query)
        return self.page

    async def send(
        self,
        method: str,
        path: str,
        query: str = "",
        *,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        gone: asyncio.Event | None = None,
    ) -> Response:
        """One request as it is given, with the cookies."""
        sent = {**self.cookies, "who": self.who}
        cookie = ("cookie", "; ".join(f"{name}={value}" for name, value in sent.items()))

        async def read(limit: int) -> bytes:
            if len(body) > limit:
                raise PayloadTooLarge(rule="limits.body")
            return body

        async def left() -> None:
            await (gone or asyncio.Event()).wait()

        fields = Headers([cookie, *headers])
        response = await self.company.handle(
            Incoming(method, path, query, "api.example.com", fields, "192.0.2.9", read, left)
        )
        assert isinstance(response, Response)
        for one in response.headers.all("set-cookie"):
            name, _, value = one.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response

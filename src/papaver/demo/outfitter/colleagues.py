"""The outfitter's colleagues: how they sign in for the staff console, which asks who somebody is at each request."""

from __future__ import annotations

import html
import secrets
from string import Template
from typing import Annotated, Final

from fastapi import FastAPI, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from papaver.company import Person, SignInAt, Visit
from papaver.demo.outfitter.sign_in_page import HEADERS
from papaver.protocol.conversation.model import Author

__all__ = ["COLLEAGUE", "Colleagues", "add_colleagues"]

COLLEAGUE: Final = "Kim"
PATH: Final = "/colleagues/sign-in"
COOKIE: Final = "__Host-outfitter-colleague"
PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Colleagues \u2013 The Outfitter</title>
<link rel="stylesheet" href="/sign-in.css">
</head>
<body>
<main>
<h1>For colleagues</h1>
$problem
<form method="post" action="/colleagues/sign-in">
<label for="password">Password</label>
<input type="password" id="password" name="password" autocomplete="current-password" required>
<button type="submit">Sign in</button>
</form>
</main>
</body>
</html>
""")


class Colleagues:
    """Everybody who knows the password is Kim, in each browser with a cookie of its own, until the shop ends."""

    def __init__(self, password: str, console: str) -> None:
        self.console, self._password, self._sessions = console, password, set[str]()

    def sign_in(self, password: str) -> str | None:
        """The cookie of a new session; None for a wrong password."""
        if not secrets.compare_digest(password.encode(), self._password.encode()):
            return None
        session = secrets.token_urlsafe(32)
        self._sessions.add(session)
        return session

    async def who(self, visit: Visit) -> Author | SignInAt:
        """Whom the staff console lets in."""
        if visit.cookie(COOKIE) in self._sessions:
            return Person("aut_kim", COLLEAGUE)
        return SignInAt(PATH)


def add_colleagues(app: FastAPI, colleagues: Colleagues) -> None:
    """GET shows the form; POST checks it and leads to the console. Works without JavaScript."""

    @app.get(PATH, include_in_schema=False)
    def show() -> Response:
        return _page()

    @app.post(PATH, include_in_schema=False)
    def sign_in(password: Annotated[str, Form()] = "") -> Response:
        session = colleagues.sign_in(password)
        if session is None:
            return _page("The password is wrong.", 400)
        response = RedirectResponse(colleagues.console, 303)
        response.set_cookie(COOKIE, session, path="/", secure=True, httponly=True, samesite="strict")
        return response


def _page(problem: str = "", status: int = 200) -> Response:
    told = f'<p role="alert"><strong>{html.escape(problem)}</strong></p>' if problem else ""
    return HTMLResponse(PAGE.substitute(problem=told), status, HEADERS)

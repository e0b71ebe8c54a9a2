"""The outfitter's own sign-in page: plugged into its issuer by one call, `issuer.signed_in` (section 4).

The library never sees a password. The page keeps nothing: each sign-in asks for one.
"""

from __future__ import annotations

import asyncio
import html
import secrets
from string import Template
from typing import Annotated

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from papaver.company import AccountId, EmbeddedIssuer, InteractionOver
from papaver.demo.outfitter.accounts import TooManyTries, Users

__all__ = ["SIGN_IN_PAGE", "add_sign_in_page"]

SIGN_IN_PAGE = "/sign-in"
COOKIE = "__Host-outfitter-form"
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in \u2013 The Outfitter</title>
<link rel="stylesheet" href="/sign-in.css">
</head>
<body>
<main>
<h1>Sign in to The Outfitter</h1>
$problem
<form method="post" action="/sign-in">
<input type="hidden" name="interaction" value="$interaction">
<input type="hidden" name="csrf" value="$csrf">
<label for="email">E-mail address</label>
<input type="email" id="email" name="email" value="$email" autocomplete="username" required>
<label for="password">Password</label>
<input type="password" id="password" name="password" autocomplete="current-password" required>
<button type="submit">Sign in</button>
</form>
<form method="post" action="/sign-in/decline">
<input type="hidden" name="interaction" value="$interaction">
<input type="hidden" name="csrf" value="$csrf">
<button type="submit">Do not sign in</button>
</form>
</main>
</body>
</html>
""")
STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
label { display: block; margin-top: 1rem; font-weight: 600; }
input { display: block; width: 100%; box-sizing: border-box; padding: 0.6rem; font: inherit; }
button { margin-top: 1.25rem; padding: 0.65rem 1.4rem; font: inherit; }
:focus-visible { outline: 3px solid #a3262e; outline-offset: 2px; }
"""


def add_sign_in_page(app: FastAPI, issuer: EmbeddedIssuer, users: Users) -> None:
    """GET shows the form; POST checks it and leads on to the consent page. Works without JavaScript."""

    @app.get(SIGN_IN_PAGE, include_in_schema=False)
    def show(interaction: str) -> Response:
        return _page(interaction, secrets.token_urlsafe(32))

    @app.get("/sign-in.css", include_in_schema=False)
    def style() -> Response:
        return Response(STYLE, media_type="text/css", headers={"cache-control": "public, max-age=3600"})

    @app.post(SIGN_IN_PAGE, include_in_schema=False)
    async def sign_in(
        request: Request,
        interaction: Annotated[str, Form()],
        csrf: Annotated[str, Form()],
        email: Annotated[str, Form()] = "",
        password: Annotated[str, Form()] = "",
    ) -> Response:
        if not _ours(request, csrf):
            return _page(interaction, secrets.token_urlsafe(32), email, "This page was open for long. Try again.", 403)
        try:
            account = await asyncio.to_thread(users.check, email, password)
        except TooManyTries:
            return _page(interaction, csrf, email, "Too many tries. Wait a minute.", 429)
        if account is None:
            return _page(interaction, csrf, email, "The address or the password is wrong.", 400)
        try:
            url = await issuer.signed_in(interaction, AccountId(account), name=email)
        except InteractionOver as error:
            return _page(interaction, csrf, email, f"{error.description.capitalize()}.", 400)
        return RedirectResponse(url, 303)

    @app.post(f"{SIGN_IN_PAGE}/decline", include_in_schema=False)
    async def decline(request: Request, interaction: Annotated[str, Form()], csrf: Annotated[str, Form()]) -> Response:
        if not _ours(request, csrf):
            return _page(interaction, secrets.token_urlsafe(32), "", "This page was open for long. Try again.", 403)
        try:
            return RedirectResponse(await issuer.decline(interaction), 303)
        except InteractionOver as error:
            return _page(interaction, csrf, "", f"{error.description.capitalize()}.", 400)


def _ours(request: Request, csrf: str) -> bool:
    """Whether the form is the one that this browser was given."""
    return secrets.compare_digest(request.cookies.get(COOKIE, "").encode(), csrf.encode()) and len(csrf) > 20


def _page(interaction: str, csrf: str, email: str = "", problem: str = "", status: int = 200) -> Response:
    told = f'<p role="alert"><strong>{html.escape(problem)}</strong></p>' if problem else ""
    text = PAGE.substitute(
        interaction=html.escape(interaction), csrf=html.escape(csrf), email=html.escape(email), problem=told
    )
    response = HTMLResponse(text, status, HEADERS)
    response.set_cookie(COOKIE, csrf, max_age=3600, path="/", secure=True, httponly=True, samesite="strict")
    return response

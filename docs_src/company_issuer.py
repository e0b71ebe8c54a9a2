from hmac import compare_digest
from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from papaver import AccountId, Company, EmbeddedIssuer, Poppy, Scope, SignedInSession, SqliteStore, Turn
from papaver.adapters.httpx2 import NetworkSettings
from papaver.company import OpenApi

issuer = EmbeddedIssuer("https://shop.example/account", sign_in_page="https://shop.example/login")
company = Company(
    domain="shop.example",
    name="Example Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("poppy.db"),
    sign_in=issuer,
    scopes=[Scope("orders:read", "See your orders", changes="none", personal_data=True)],
    apis=[OpenApi("https://shop.example/openapi.json", "Your orders")],
)
app = FastAPI(servers=[{"url": "https://shop.example"}])
poppy = Poppy(app, company, network=NetworkSettings.from_environment())


@company.conversation
async def answer(turn: Turn) -> str:
    if "order" not in turn.text.lower():
        return "We are open from nine to five."
    account = turn.require("orders:read")  # without it: the User is asked to sign in, then this runs again
    return f"{account} has one order: a jacket, on its way."


@app.get("/orders", operation_id="listOrders")
async def orders(session: Annotated[SignedInSession, poppy.signed_in("orders:read")]) -> list[str]:
    return [f"a jacket for {session.account_id}"]


PASSWORDS = {"dana@example.com": "correct horse"}  # yours: your users, hashed, and your own page


@app.get("/login", include_in_schema=False)
async def login(interaction: str) -> HTMLResponse:
    return HTMLResponse(
        f'<form method="post"><input type="hidden" name="interaction" value="{escape(interaction)}">'
        '<label>E-mail <input name="email"></label> <label>Password <input name="password" type="password"></label>'
        "<button>Sign in</button></form>"
    )


@app.post("/login", include_in_schema=False)
async def logged_in(request: Request) -> Response:
    form = parse_qs((await request.body()).decode())
    email, password = form.get("email", [""])[0], form.get("password", [""])[0]
    if not compare_digest(PASSWORDS.get(email, "").encode(), password.encode()) or email not in PASSWORDS:
        return HTMLResponse("<p>The address or the password is wrong.</p>", 400)
    # The one call that plugs your page in: it leads on to the consent page, and then back to the Personal Agent.
    url = await issuer.signed_in(form["interaction"][0], AccountId(f"acct {email}"), name=email)
    return RedirectResponse(url, 303)

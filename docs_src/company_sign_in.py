from typing import Annotated

from fastapi import FastAPI

from papaver import Company, ExternalIssuer, Poppy, Scope, SignedInSession, SqliteStore
from papaver.company import OpenApi
from papaver.protocol.signed_in import OAuthCaller

company = Company(
    domain="shop.example",
    domains=["shop.no"],  # one Company: the same Users, Sessions and sign-ins
    name="Example Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("poppy.db"),
    sign_in=ExternalIssuer("https://auth.shop.example"),
    scopes=[
        Scope("orders:read", "See your orders", changes="none", personal_data=True),
        Scope("orders:write", "Exchange and return what you ordered", changes="reversible", personal_data=True),
    ],
    apis=[OpenApi("https://shop.example/openapi.json", "Orders")],
    conversations=False,
)
app = FastAPI()
poppy = Poppy(app, company)


@app.get("/orders")
async def orders(session: Annotated[SignedInSession, poppy.signed_in("orders:read")]) -> dict[str, str]:
    return {"orders_of": session.account_id}  # by the access token; session.user_id is by the Session header


@app.get("/products")
async def products(caller: Annotated[OAuthCaller, poppy.unverified()]) -> dict[str, bool]:
    return {"your_prices": caller.account_id is not None}  # no Session here, and none to be had

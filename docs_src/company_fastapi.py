from typing import Annotated

from fastapi import FastAPI

from papaver import Company, Poppy, SqliteStore, VerifiedSession
from papaver.company import OpenApi

company = Company(
    domain="shop.example",
    name="Example Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("poppy.db"),
    apis=[OpenApi("https://shop.example/openapi.json", "Carts")],
    conversations=False,
)
app = FastAPI()
poppy = Poppy(app, company)


@app.get("/cart")
async def cart(session: Annotated[VerifiedSession, poppy.session()]) -> dict[str, str]:
    return {"cart_of": session.user_id}  # verified; without it the route is not reached, and section 7 answers

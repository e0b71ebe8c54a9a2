from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from papaver import Company, SqliteStore
from papaver.adapters.starlette import Poppy
from papaver.company import OpenApi

company = Company(
    domain="shop.example",
    name="Example Shop",
    base_url="https://api.shop.example/v1/poppy",  # as the world sees it, behind TLS
    local_path="/poppy",  # as this app sees it: the proxy strips /v1
    store=SqliteStore("poppy.db"),
    apis=[OpenApi("https://api.shop.example/v1/openapi.json", "Carts")],
    conversations=False,
)


async def cart(request: Request) -> JSONResponse:
    session = await poppy.session(request)  # verified, or refused as section 7 says
    return JSONResponse({"cart_of": session.user_id})


app = Starlette(routes=[Route("/cart", cart)])
poppy = Poppy(app, company)

from fastapi import FastAPI

from papaver import Company, Poppy, SqliteStore, Turn
from papaver.adapters.httpx2 import NetworkSettings

company = Company(
    domain="shop.example",
    name="Example Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("poppy.db"),
)
app = FastAPI()
# Adds discovery and conversations to the app; turns run in its lifespan.
# `network` is for local work: PAPAVER_RESOLVE and PAPAVER_CA_FILE.
poppy = Poppy(app, company, network=NetworkSettings.from_environment())


@company.conversation
async def answer(turn: Turn) -> str:
    return f"You asked: {turn.text}"

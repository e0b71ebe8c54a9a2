import os

from papaver import Company, Turn
from papaver.stores.postgres import PostgresStore

company = Company(
    domain="shop.example",
    name="Shop",
    base_url="https://shop.example/poppy",
    store=PostgresStore(
        os.environ["DATABASE_URL"],  # postgresql://papaver@db.internal/shop
        schema="papaver",  # its own tables; another name lets two Companies share a database
        redis=os.environ.get("REDIS_URL"),  # None: NOTIFY alone
    ),
)


@company.conversation
async def answer(turn: Turn) -> str:
    return f"You said: {turn.text}"

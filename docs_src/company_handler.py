from collections.abc import AsyncIterator

from papaver import Company, Reply, SqliteStore, Turn

shop = Company(domain="shop.example", name="Shop", base_url="https://shop.example/poppy", store=SqliteStore("shop.db"))
bakery = Company(
    domain="bakery.example", name="Bakery", base_url="https://bakery.example/poppy", store=SqliteStore("bakery.db")
)


async def reserve(key: str) -> str:
    return f"reservation {key[:4]}"


@shop.conversation
async def with_details(turn: Turn) -> Reply:
    async def call() -> object:
        return await reserve(turn.id)  # the same id, however often a crash makes the turn start again

    reservation = await turn.once("reserve", call)  # journaled: not called again once it has returned
    asked = [message.text for message in turn.messages]
    return Reply(text="I have reserved it.", data={"reservation": reservation, "asked": asked, "locale": turn.locale})


@bakery.conversation
async def in_pieces(turn: Turn) -> AsyncIterator[str]:
    yield f"So far we said {len(turn.transcript)} thing. "
    yield "Anything else?"

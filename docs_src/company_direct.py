from collections.abc import AsyncIterator

from papaver import Company, SqliteStore, Turn
from papaver.protocol.conversation.model import AuthorType

company = Company(
    domain="shop.example", name="Shop", base_url="https://shop.example/poppy", store=SqliteStore("shop.db")
)


@company.conversation
async def answer(turn: Turn) -> AsyncIterator[str]:
    if turn.opening:  # the User has come and said nothing yet: the Company speaks first
        yield "Hello! What shall the gift card say?"
    elif turn.direct and turn.author_type is AuthorType.HUMAN:
        yield f"The card will say: {turn.text}"
        turn.close()  # back to the Personal Agent, in the conversation before it
    elif "gift" in turn.text:
        yield "The card is written by the User."
        turn.request_user("What shall the gift card say?")  # shown to the User, who says yes or no
    else:
        yield f"You said: {turn.text}"

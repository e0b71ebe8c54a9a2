from papaver import Company, SqliteStore, Turn
from papaver.company import Handoff, HandoffAnswer, HandoffMessage, Nobody, Person
from papaver.protocol.terms import ConversationId

company = Company(
    domain="shop.example", name="Shop", base_url="https://shop.example/poppy", store=SqliteStore("shop.db")
)
desk: list[tuple[str, str]] = []  # the chat program that your colleagues use
opened = True


@company.conversation
async def answer(turn: Turn) -> str:
    return f"You said: {turn.text}"


@company.hooks.handoff
async def find(asked: Handoff) -> HandoffAnswer:
    if not opened:
        return Nobody("My colleagues are back at nine.")
    desk.append((asked.conversation_id, "somebody asks for you"))
    return "queued"  # or the Person who joins at once


@company.hooks.message
async def forward(said: HandoffMessage) -> None:
    for message in said.messages:  # at least once and in order, so the desk knows a message by its id
        desk.append((said.conversation_id, message.text or ""))


async def typed_at_the_desk(conversation: ConversationId, name: str, text: str, key: str) -> None:
    person = Person(f"aut_{name.lower()}", name)
    await company.people.human_joined(conversation, person)
    await company.people.post(conversation, text, author=person, key=key)  # said once, however often it is called

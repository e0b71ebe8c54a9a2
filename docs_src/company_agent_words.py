from papaver.company import Actor, CompanyAgent, Memory, Principal, Texts, ToolCall, Tools, Turn

tools = Tools()

GERMAN = Texts(
    action_succeeded="{title}: erledigt.",
    action_failed="{title}: Das ging nicht. {error}",
    action_rejected="{title}: Das wurde nicht gemacht. {error}",
)


def texts_for(locale: str) -> Texts | None:
    return GERMAN if locale.partition("-")[0] == "de" else None


def actor_for(principal: Principal, actor: Actor) -> Actor:
    """The account in this app's own names; signed out it stays nobody's."""
    return Actor(f"customer-{actor.id}", ("customer",)) if principal.signed_in else actor


async def during_office_hours(turn: Turn, call: ToolCall) -> bool | str:
    return True if turn.context.get("office") == "open" else "Our office has to be open for this."


agent = CompanyAgent(
    tools,
    authorize_action=during_office_hours,
    texts_for=texts_for,
    actor_for=actor_for,
    memory=Memory(scopes=lambda actor: [f"notes:{actor.id}"]),  # for people; for Personal Agents: nothing
    on_question="request_user",
)


@tools.tool(scopes={"orders:write"}, action=True)
async def wrap_gift(call: ToolCall, number: int) -> None:
    """Wraps an order as a gift."""


@tools.tool(roles={"customer"})
async def ask_the_user(call: ToolCall, questions: list[str]) -> str:
    """Ask what only a person can answer."""
    return await call.turn.tools.ask(*questions)


async def answer(turn: Turn) -> str:
    if "gift" in turn.text:
        await turn.tools.call("wrap_gift", {"number": 7})
        return "Of course."
    return str(await turn.tools.call("ask_the_user", {"questions": ["Which paper would you like?"]}))

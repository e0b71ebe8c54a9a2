from collections.abc import Mapping

from papaver.company import CompanyAgent, Confirmation, ToolCall, ToolError, Tools, Turn

tools = Tools()


@tools.tool(public=True)
async def opening_hours(call: ToolCall) -> str:
    """When the shop is open."""
    return "Monday to Friday, nine to five."


@tools.tool(scopes={"orders:read"})
async def find_order(call: ToolCall, number: int) -> dict[str, object]:
    """How an order of the account is."""
    return {"number": number, "of": call.account_id, "status": "packed"}


def worded(given: Mapping[str, object]) -> Confirmation:
    return Confirmation(f"Cancel order {given['number']}", "The payment is returned.")


@tools.tool(scopes={"orders:read", "orders:write"}, action=True, confirmation=worded)
async def cancel_order(call: ToolCall, number: int) -> str:
    """Cancels an order that was not sent yet."""
    if number == 7:
        raise ToolError("It was sent already.")
    return f"cancelled under {call.key.rpartition(':')[2]}"  # call.key: the other system's idempotency key


agent = CompanyAgent(tools)


async def answer(turn: Turn) -> str:
    if "cancel" in turn.text:
        number = turn.text.split()[-1]
        if not number.isdecimal():
            return "Which order shall I cancel?"
        await turn.tools.call("cancel_order", {"number": int(number)})
        return "I have taken care of it."
    return str(await turn.tools.call("opening_hours"))

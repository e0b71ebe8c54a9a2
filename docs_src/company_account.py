from papaver import Turn


async def cancel(account: str, key: str) -> str:
    return f"Order 1042 of {account} is cancelled."


async def with_the_account(turn: Turn) -> str:
    if "cancel" not in turn.text.lower():
        return "We are open from nine to five."
    account = turn.require("orders:read", "orders:write")  # before anything is changed
    return await cancel(account, turn.id)

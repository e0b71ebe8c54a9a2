from asyncio import to_thread

from papaver import AuthorizationNeeded, MessageAdded
from papaver.adapters.httpx2.personal_agent import HttpSession
from papaver.personal_agent import DeviceSignIn, DirectSignIn


async def ask_the_user(sign_in: DirectSignIn | DeviceSignIn) -> None:
    """Only the User signs in. Show it in their own interface, never to a model and never in a message."""
    print(f"{sign_in.company_name} ({sign_in.domain}) is asked for: {', '.join(sign_in.scopes)}")
    if isinstance(sign_in, DirectSignIn):
        print(f"Open {sign_in.url}")
        await sign_in.complete(await to_thread(input, "Then paste the address that your browser ended at: "))
    else:
        print(f"Open {sign_in.verification_uri} and type {sign_in.user_code}")
        await sign_in.wait()


async def where_is_my_order(session: HttpSession) -> list[str | None]:
    conversation = await session.ask("Where is my order?")
    said: list[str | None] = []
    async for event in conversation.events():
        if isinstance(event, MessageAdded):
            said.append(event.message.text)
        elif isinstance(event, AuthorizationNeeded):
            need = await conversation.need_of(event)
            if need is not None and not need.only_if_asked:
                await ask_the_user(await session.sign_in(*need.scope.split()))
    return said

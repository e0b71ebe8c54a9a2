import asyncio

from papaver import KeyFile, MessageAdded, PersonalAgent, SqliteVault
from papaver.adapters.httpx2 import NetworkSettings


async def main() -> None:
    async with PersonalAgent(
        "https://agent.example/agent.json",
        keys=KeyFile("keys.json"),
        vault=SqliteVault("agent.db"),
        network=NetworkSettings.from_environment(),
    ) as agent:
        known = await agent.conversations("shop.example", user="dana")
        if not known:
            return  # the first sample has not been run in this folder
        company = await agent.discover("shop.example")
        async with company.session(user="dana") as session:
            conversation = await session.resume(known[-1].conversation_id)  # goes on after the last handled event
            await conversation.say("And when will it arrive?")
            async for event in conversation.events():
                if isinstance(event, MessageAdded):
                    print(f"{event.message.role}: {event.message.text}")
            await conversation.close()
            print(conversation.status)


if __name__ == "__main__":
    asyncio.run(main())

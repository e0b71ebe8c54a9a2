import asyncio

from papaver import KeyFile, MessageAdded, PersonalAgent, SqliteVault, StateChanged
from papaver.adapters.httpx2 import NetworkSettings


async def main() -> None:
    async with PersonalAgent(
        "https://agent.example/agent.json",
        keys=KeyFile("keys.json"),
        vault=SqliteVault("agent.db"),
        network=NetworkSettings.from_environment(),  # for local work: PAPAVER_RESOLVE and PAPAVER_CA_FILE
    ) as agent:
        company = await agent.discover("shop.example")
        session = company.session(user="dana")  # a User ID for this Company alone; nothing is sent yet
        conversation = await session.ask("Where is my order?", locale="en-US")
        async for event in conversation.events():  # in order, each once; ends when the Company is idle
            match event:
                case MessageAdded(message=message):
                    print(f"{message.role}: {message.text}")
                case StateChanged(status=status):
                    print(f"({status})")
                case _:
                    pass


if __name__ == "__main__":
    asyncio.run(main())

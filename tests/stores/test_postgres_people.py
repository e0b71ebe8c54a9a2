"""People at a Company of two replicas over PostgreSQL: one seat, news from the other replica, hooks told once."""

from __future__ import annotations

import asyncio

import pytest

from papaver.company.people import Person
from papaver.protocol.conversation.people_decide import Taken
from papaver.stores.postgres import PostgresStore
from papaver.testing.company import company_bench
from tests.house.desk import Desk, events_of, handed_off
from tests.house.staff_window import KIM, StaffWindow, by_cookie, words
from tests.stores.postgres import DSN

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres"), pytest.mark.timeout(60)]


def made(schema: str) -> PostgresStore:
    return PostgresStore(DSN, schema=schema, connections=4, timeout=5)


@pytest.mark.requirement("papaver-146", "ca-70", "8.9-03")
async def test_people_at_two_replicas(schema: str) -> None:
    """Messages reach one desk in order and once; of ten who join one has it; the other replica's page shows it."""
    desk = Desk()
    companies = [desk.company(made(schema)) for _ in range(2)]
    for company in companies:
        company.staff_console(authenticate=by_cookie)
    async with company_bench(companies[0]) as here, company_bench(companies[1], agent=here.agent) as there:
        conversation = await handed_off(here)
        for number in range(6):
            message = here.message(f"message {number}")
            said = await (here, there)[number % 2].send("POST", f"/{conversation}/messages", {"message": message})
            assert said.status == 202
        await desk.until(*(f"message {number}" for number in range(6)))
        colleagues = [KIM, *(Person(f"aut_{number}") for number in range(9))]
        ends = await asyncio.gather(
            *(
                (here, there)[number % 2].company.people.human_joined(conversation, who)
                for number, who in enumerate(colleagues)
            ),
            return_exceptions=True,
        )
        [winner] = [who for who, end in zip(colleagues, ends, strict=True) if end is None]
        assert [end.person for end in ends if isinstance(end, Taken)] == [winner] * 9
        assert (await events_of(here, conversation)).count("idle/human") == 1
        window = StaffWindow(there.company)
        after = len(await events_of(here, conversation))
        held = asyncio.create_task(window.open(f"/conversations/{conversation}/news", f"after={after}"))
        await there.held(1)
        await here.company.people.post(conversation, "Seen from elsewhere.", author=winner)
        assert "Seen from elsewhere." in words(await held)

"""The samples about people do what their page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs_src import company_desk, company_people
from papaver.protocol.terms import ConversationId
from papaver.testing.company import company_bench
from tests.house.desk import events_of, handed_off
from tests.house.in_app import ask

pytestmark = pytest.mark.anyio
CONSOLE = "https://shop.example/poppy/staff"


async def test_the_console_knows_colleagues_and_sends_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has no session signs in at the app's own page; an unknown session stays out; the queue shows who waits."""
    monkeypatch.chdir(tmp_path)
    async with company_bench(company_people.company) as bench:
        await bench.idle((await bench.start("Hello")).json["conversation_id"])
        conversation = (await bench.start("A person, please")).json["conversation_id"]
        while not await bench.company.staff.queue():
            await bench.tick()
        unknown = await ask(company_people.app, "GET", CONSOLE)
        assert (unknown.status_code, unknown.headers["location"]) == (303, "https://shop.example/staff/sign-in")
        assert (await ask(company_people.app, "GET", CONSOLE, cookie="staff_session=x")).status_code == 403
        page = await ask(company_people.app, "GET", CONSOLE, cookie="staff_session=a1b2c3")
        assert conversation in page.text
        assert "You are <bdi>Alex</bdi>" in page.text


async def test_a_desk_of_ones_own_is_told_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the User's side says reaches it, what is typed there is said once; closed, nobody comes, with the reason."""
    monkeypatch.chdir(tmp_path)
    async with company_bench(company_desk.company) as bench:
        conversation = await handed_off(bench)
        assert (conversation, "somebody asks for you") in company_desk.desk
        await bench.say(conversation, "My order is late.")
        while (conversation, "My order is late.") not in company_desk.desk:
            await bench.tick()
        for _ in range(2):
            await company_desk.typed_at_the_desk(ConversationId(conversation), "Alex", "I look into it.", "k1")
        assert (await events_of(bench, conversation))[-2:] == ["idle/human", "company human: I look into it."]
        monkeypatch.setattr(company_desk, "opened", False)
        closed = await handed_off(bench)
        assert "company agent: My colleagues are back at nine." in await events_of(bench, closed)

"""The samples about Direct Conversations and replicas do what their pages say."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from docs_src import company_direct
from papaver.company import Company
from papaver.personal_agent.direct import Agreed
from papaver.protocol.conversation.model import DirectClosed, MessageAdded, UserRequested
from papaver.testing.pair import pair
from tests.house.pairing import replies

pytestmark = pytest.mark.anyio


async def test_the_user_comes_writes_the_card_and_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Company speaks first; the card has the User's own words; the conversation before it goes on."""
    monkeypatch.chdir(tmp_path)

    async def yes(event: UserRequested) -> Agreed:
        assert event.reason == "What shall the gift card say?"
        return Agreed()

    async with pair(company_direct.company) as both:
        session = (await both.agent.discover("shop.example")).session("dana")
        conversation = await session.ask("Please wrap it as a gift.")
        [asked] = [event async for event in conversation.events() if isinstance(event, UserRequested)]
        direct = await conversation.answer_request(asked, yes)
        assert direct is not None
        assert await replies(direct) == ["Hello! What shall the gift card say?"]
        await direct.say_as_user("For Ada")
        assert await replies(direct) == ["The card will say: For Ada"]
        later = [event async for event in conversation.events()]
        assert any(isinstance(event, DirectClosed) for event in later)
        assert not any(isinstance(event, MessageAdded) for event in later)
        await conversation.say("Thanks")
        assert await replies(conversation) == ["You said: Thanks"]


def test_a_replica_is_a_company_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its store connects when the Company runs, and not before."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://papaver@db.internal/shop")
    monkeypatch.delenv("REDIS_URL", raising=False)
    assert isinstance(importlib.import_module("docs_src.company_replicas").company, Company)

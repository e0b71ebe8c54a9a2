"""Several Companies that one provider runs: each speaks on its own domain, for itself, and is known apart."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company.app import Company
from papaver.company.turn import Reply, Turn
from papaver.personal_agent import printable
from papaver.protocol.conversation.model import Author, AuthorType, MessageAdded, Role
from papaver.protocol.errors import DiscoveryFailed
from papaver.stores.memory import MemoryStore
from papaver.testing.company import company_bench
from papaver.testing.pair import echoing, pair
from tests.house.pairing import POPPY_JSON, claims, signed

pytestmark = pytest.mark.anyio

PROVIDER = "provider.example"


@pytest.mark.requirement("3-09")
async def test_a_provider_s_documents_appear_on_the_companies_own_domains() -> None:
    """The provider's host carries the endpoints; the documents are the Companies', each on its own host."""
    shops = [echoing(f"{name}.example", base_url=f"https://{PROVIDER}/{name}") for name in ("shop", "store")]
    async with pair(*shops) as both:
        for shop in shops:
            domain = shop.offer.domain
            found = await both.agent.discover(domain)
            assert found.document.organization.domain == domain
            answered = both.wire.sent("agent", domain)[0]
            assert answered.place == f"GET https://{domain}{POPPY_JSON}"
            assert answered.response is not None
            assert answered.response.status == 200
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover(PROVIDER)
        assert caught.value.rule == "discovery.document-served"


@pytest.mark.requirement("3.2-32")
async def test_a_provider_s_companies_are_two_and_take_nothing_for_each_other() -> None:
    """Under one roof and in one store, each has an identifier of its own, and that is what a Session JWT is for."""
    store = MemoryStore()
    shops = [
        Company(domain=f"{name}.example", name=name, base_url=f"https://{PROVIDER}/{name}", store=store)
        for name in ("shop", "store")
    ]
    for shop in shops:

        @shop.conversation
        async def echo(turn: Turn) -> str:
            return f"You said: {turn.text}"

    assert len({shop.id for shop in shops}) == 2
    async with company_bench(shops[0]) as bench:
        refused = await bench.start("Hello", aud=shops[1].id)
        assert (refused.status, refused.error) == (400, "invalid_session")
        assert "aud" in refused.json["error_description"]
        assert (await bench.start("Hello")).status == 201


@pytest.mark.requirement("3.2-32", "5.1-10")
async def test_a_personal_agent_is_another_user_at_each_company_of_a_provider() -> None:
    """Nothing that it sends lets the two be joined: audience, User ID, Session and key differ."""
    shops = [echoing(f"{name}.example", base_url=f"https://{PROVIDER}/{name}") for name in ("shop", "store")]
    async with pair(*shops) as both:
        said: list[dict[str, Any]] = []
        for shop in shops:
            both.wire.sites[PROVIDER] = both.wire.sites[shop.offer.domain]
            await (await both.agent.discover(shop.offer.domain)).session("dana").ask("Hi")
            said.append(claims(signed(both)[-1]))
        for name in ("aud", "sub", "sid", "jti"):
            assert said[0][name] != said[1][name]


@pytest.mark.requirement("8.4-27", "8.4-23")
async def test_what_a_company_calls_its_author_is_its_own_word() -> None:
    """Name and picture arrive as content: the name is cleaned for a terminal, and the picture is not fetched."""
    shop = Company(domain="example.com", name="Example", base_url="https://api.example.com/poppy", store=MemoryStore())

    @shop.conversation
    async def answer(turn: Turn) -> Reply:
        author = Author(AuthorType.HUMAN, "n1", "\x1b]0;owned\x07Nina\x1b[2K\r", "https://pictures.example/nina.png")
        return Reply("Hello", author=author)

    async with pair(shop) as both:
        conversation = await (await both.agent.discover("example.com")).session("dana").ask("Hi")
        said = [event.message async for event in conversation.events() if isinstance(event, MessageAdded)]
        authors = [message.author for message in said if message.role is Role.COMPANY]
        assert [author.type for author in authors] == [AuthorType.HUMAN]
        name = authors[0].name
        assert name is not None
        assert printable(name) == "Nina"
        assert both.wire.sent("agent", "pictures.example") == []

"""The cache of clients' documents, where the wire does not show it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from papaver.company.client_documents import Admission, CachePolicy, DocumentCache
from papaver.ports.company import DocumentRow
from papaver.ports.system import FetchFault
from papaver.protocol.errors import InvalidSession, RateLimited, TemporarilyUnavailable
from papaver.protocol.terms import CompanyId
from papaver.stores.memory import MemoryStore
from papaver.testing.clock import ManualClock
from papaver.testing.company import Documents

pytestmark = pytest.mark.anyio

URL = "https://agent.example/doc.json"
POLICY = CachePolicy(fresh=(60, 3600), age_most=600, failure_kept=30, reload_every=30, kept=3, kept_bytes=1000)


def admitted() -> None:
    pass


def refused() -> None:
    raise RateLimited(7)


KNOWN, STRANGER, TOO_MANY = Admission(True, admitted), Admission(False, admitted), Admission(False, refused)


class World:
    """A cache with its store, clock and network."""

    def __init__(self, tables: Any) -> None:
        self.store = tables.clients
        self.clock = ManualClock(1000)
        self.documents = Documents()
        self.documents.bodies[URL] = b'{"n": 1}'
        self.cache: DocumentCache[object] = DocumentCache(
            "document", self._read, POLICY, fetcher=self.documents, store=self.store, clock=self.clock
        )

    @staticmethod
    def _read(url: str, document: object) -> object:
        return document


@pytest.fixture
async def world() -> World:
    """With an empty store."""
    store = MemoryStore()
    await store.open()
    return World(await store.tables(CompanyId("https://example.com")))


@pytest.mark.parametrize(
    "row",
    [
        DocumentRow(URL, b"rubbish", 990.0, 2000.0),
        DocumentRow(URL, b'{"n": 0}', 300.0, 2000.0),
        DocumentRow(URL, b'{"n": 0}', 990.0, 999.0),
    ],
    ids=["unreadable", "too old", "not fresh"],
)
async def test_a_stored_copy_that_will_not_do_is_fetched_anew(world: World, row: DocumentRow) -> None:
    """It is no fault of the request."""
    await world.store.keep_document(row)
    assert (await world.cache.load(URL, KNOWN)).value == {"n": 1}
    assert world.documents.asked == [URL]
    assert (await world.store.load_document(URL)).body == b'{"n": 1}'


async def test_a_stored_copy_that_is_stale_serves_while_the_host_is_down(world: World) -> None:
    """Up to its longest age, counted from when it was fetched."""
    await world.store.keep_document(DocumentRow(URL, b'{"n": 0}', 900.0, 950.0))
    world.documents.failing[URL] = FetchFault.UNREACHABLE
    assert (await world.cache.load(URL, STRANGER)).value == {"n": 0}
    world.clock.advance(500)
    with pytest.raises(TemporarilyUnavailable):
        await world.cache.load(URL, STRANGER)


async def test_who_may_not_fetch_uses_what_there_is(world: World) -> None:
    """A stale copy, or the refusal; a forced reload brings nothing then."""
    with pytest.raises(RateLimited):
        await world.cache.load(URL, TOO_MANY)
    await world.cache.load(URL, STRANGER)
    assert await world.cache.reload(URL, TOO_MANY) is None
    world.clock.advance(61)
    assert (await world.cache.load(URL, TOO_MANY)).value == {"n": 1}
    assert world.documents.asked == [URL]


async def test_a_document_is_fresh_no_longer_than_it_may_be_used_at_all(world: World) -> None:
    """However the settings are combined."""
    found = await world.cache.load(URL, STRANGER)
    assert found.row.fresh_until == 1060
    policy = CachePolicy((3600, 3600), 600, 30, 30, 3, 1000)
    cache: DocumentCache[object] = DocumentCache(
        "document",
        lambda url, document: document,
        policy,
        fetcher=world.documents,
        store=world.store,
        clock=world.clock,
    )
    assert (await cache.load(URL, STRANGER)).row.fresh_until == 1600


async def test_what_a_stranger_publishes_is_stored_when_it_is_kept(world: World) -> None:
    """And not before; keeping what is not there does nothing."""
    await world.cache.keep(URL)
    await world.cache.load(URL, STRANGER)
    assert await world.store.load_document(URL) is None
    await world.cache.keep(URL)
    assert (await world.store.load_document(URL)).body == b'{"n": 1}'


async def test_memory_is_bounded_by_number_and_by_size(world: World) -> None:
    """One that is larger than everything together is used, and not kept."""
    world.documents.bodies[URL] = b'"' + b"x" * 2000 + b'"'
    await world.cache.load(URL, STRANGER)
    assert world.cache.fresh(URL) is None
    for n in range(4):
        world.documents.bodies[f"{URL}?{n}"] = b"1"
        await world.cache.load(f"{URL}?{n}", STRANGER)
    assert world.cache.fresh(f"{URL}?0") is None
    assert world.cache.fresh(f"{URL}?3") is not None


async def test_a_definite_fault_that_a_reload_finds_is_the_answer(world: World) -> None:
    """At once and until its time is over; no further reload asks in between."""
    await world.cache.load(URL, KNOWN)
    world.documents.failing[URL] = 404
    with pytest.raises(InvalidSession, check=lambda error: error.rule == "client.document-status"):
        await world.cache.reload(URL, KNOWN)
    assert await world.cache.reload(URL, KNOWN) is None
    with pytest.raises(InvalidSession):
        await world.cache.load(URL, KNOWN)
    assert len(world.documents.asked) == 2


async def test_b2_a_slow_host_holds_up_one_request_of_its_client(world: World) -> None:
    """The others use the stale copy while that one asks; without a copy they wait and share what it brings."""
    asked, go = asyncio.Event(), asyncio.Event()
    fetch = world.documents.fetch

    async def slow(*arguments: Any) -> Any:
        asked.set()
        await go.wait()
        return await fetch(*arguments)

    documents: Any = world.documents
    documents.fetch = slow
    first = [asyncio.create_task(world.cache.load(URL, STRANGER)) for _ in range(3)]
    await asked.wait()
    go.set()
    assert len({id(found) for found in await asyncio.gather(*first)}) == 1
    world.clock.advance(61)
    asked.clear()
    go.clear()
    world.documents.bodies[URL] = b'{"n": 2}'
    asking = asyncio.create_task(world.cache.load(URL, STRANGER))
    await asked.wait()
    assert (await world.cache.load(URL, STRANGER)).value == {"n": 1}
    go.set()
    assert (await asking).value == {"n": 2}
    assert world.documents.asked == [URL, URL]

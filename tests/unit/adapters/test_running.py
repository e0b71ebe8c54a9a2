"""`running(company)`: what it opens it closes, and what ends a process ends what is held first."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from papaver.adapters import running as adapter
from papaver.adapters.running import running
from papaver.company import Company
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from papaver.stores.faults import StoreFailed
from papaver.stores.memory import MemoryStore
from papaver.stores.sqlite import SqliteStore
from tests.unit.adapters.asgi_calls import call, message, outside, shop, signed

pytestmark = pytest.mark.anyio

ENDPOINT = "https://api.example.com/poppy/conversations"


async def held_open(company: Company) -> None:
    """Return once a request is held."""
    while not company.held:
        await checkpoint()


async def test_it_opens_and_closes_and_may_run_again() -> None:
    """The very first request after the start may be a message (C40)."""
    company, world = shop(), outside()
    for n in range(2):
        async with running(company, **world) as app:
            fields = signed(company, "POST", ENDPOINT)
            answer = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message(id=f"m{n}")])
            assert answer.status == 201
            assert company.store.is_open
        assert not company.store.is_open


async def test_one_company_runs_once_at_a_time() -> None:
    """A second block would share nothing but the name."""
    company = shop()
    async with running(company, **outside()):
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.runs-once"):
            async with running(company, **outside()):
                pass
        assert company.store.is_open


async def test_c3_two_companies_run_on_one_store() -> None:
    """It stays open until the one that opened it ends."""
    store = MemoryStore()
    one, two = shop(store=store), shop(store=store, domain="two.example")
    async with running(one, **outside()):
        async with running(two, **outside()):
            pass
        assert store.is_open
        await store.probe()
    assert not store.is_open


async def test_a_company_that_does_not_start_leaves_nothing_open() -> None:
    """Whatever step fails."""

    class Failing(MemoryStore):
        async def tables(self, company: Any) -> Any:
            raise StoreFailed("no tables")

    company = shop(store=Failing())
    handlers = signal.getsignal(signal.SIGTERM)
    with pytest.raises(StoreFailed):
        async with running(company, **outside()):
            pass
    assert not company.store.is_open
    assert signal.getsignal(signal.SIGTERM) is handlers


async def test_without_turns_messages_wait_for_another_process() -> None:
    """And what is held ends with the block."""
    company = shop()
    options = outside()
    async with running(company, turns=False, **options) as app:
        started = await call(
            app, "POST", "/poppy/conversations", headers=signed(company, "POST", ENDPOINT), chunks=[message()]
        )
        path = f"/{started.json['conversation_id']}/events"
        page = await call(app, "GET", f"/poppy/conversations{path}", headers=signed(company, "GET", ENDPOINT + path))
        assert len(page.json["events"]) == 1
        fields = signed(company, "GET", ENDPOINT + path)
        query = f"wait=25&cursor={page.json['cursor']}"
        held = asyncio.create_task(call(app, "GET", f"/poppy/conversations{path}", query=query, headers=fields))
        await held_open(company)
        company.stop()
        assert (await held).json["events"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_what_is_held_and_goes_on_to_who_had_it_before(number: signal.Signals) -> None:
    """The server's own handler, which then waits for its connections; afterwards it is the handler again."""
    told: list[int] = []

    def before(got: int, frame: FrameType | None) -> None:
        told.append(got)

    kept = signal.signal(number, before)
    try:
        company = shop()
        async with running(company, turns=False, **outside()) as app:
            started = await call(
                app, "POST", "/poppy/conversations", headers=signed(company, "POST", ENDPOINT), chunks=[message()]
            )
            path = f"/{started.json['conversation_id']}/events"
            page = await call(
                app, "GET", f"/poppy/conversations{path}", headers=signed(company, "GET", ENDPOINT + path)
            )
            query = f"wait=25&cursor={page.json['cursor']}"
            fields = signed(company, "GET", ENDPOINT + path)
            held = asyncio.create_task(call(app, "GET", f"/poppy/conversations{path}", query=query, headers=fields))
            await held_open(company)
            os.kill(os.getpid(), number)
            assert (await held).status == 200
            assert told == [number]
        assert signal.getsignal(number) is before
    finally:
        signal.signal(number, kept)


async def test_an_ignored_signal_stays_ignored() -> None:
    """What is held ends all the same: nobody ignores SIGTERM to keep polls open."""
    kept = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        company = shop()
        async with running(company, **outside()):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, kept)


async def test_the_default_action_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a handler before, the process ends as if we had not been there."""
    raised: list[int] = []
    kept = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        async with running(shop(), **outside()):
            handler: Any = signal.getsignal(signal.SIGTERM)
            monkeypatch.setattr(adapter.signal, "raise_signal", raised.append)
            handler(signal.SIGTERM, None)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert raised == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, kept)


async def test_another_thread_has_no_signals_and_needs_none() -> None:
    """As in a test client's portal."""
    ended: list[bool] = []
    handler = signal.getsignal(signal.SIGTERM)

    async def there() -> None:
        async with running(shop(), **outside()):
            assert signal.getsignal(signal.SIGTERM) is handler

    def run() -> None:
        asyncio.run(there())
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert ended == [True]


async def test_the_guarded_fetcher_is_the_default() -> None:
    """And the clock and randomness are the system's; nothing is asked of the network before a client comes."""
    company = shop()
    async with running(company) as app:
        assert (await call(app, "GET", "/poppy/healthz", headers={"host": "api.example.com"})).status == 200
        missing = await call(app, "GET", "/poppy/conversations/x/events", headers={"host": "api.example.com"})
        assert missing.json["error"] == "invalid_session"


async def test_c3_two_companies_share_one_sqlite_file_and_no_row(tmp_path: Path) -> None:
    """Each has its Sessions, conversations, clients and secret; one's message id is free for the other."""
    store = SqliteStore(tmp_path / "poppy.db")
    one = shop(store=store)
    two = shop(store=store, domain="two.example", base_url="https://two.example/poppy")
    async with running(one, **outside()) as first, running(two, **outside()) as second:
        ids: list[str] = []
        for company, app in ((one, first), (two, second)):
            fields = signed(company, "POST", f"{company.offer.base_url}/conversations")
            answer = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message(company.id)])
            assert answer.status == 201
            ids.append(answer.json["conversation_id"])
        await one.clients.judge(ClientId("https://agent.example/agent.json"), "blocked")
        path = f"/{ids[0]}/events"
        crossed = signed(two, "GET", f"https://two.example/poppy/conversations{path}")
        page = await call(second, "GET", f"/poppy/conversations{path}", headers=crossed)
        # Ids are made by one clock and one source of randomness each, so both Companies drew the same.
        assert (ids[0] == ids[1], page.json["events"][0]["message"]["text"]) == (True, "https://two.example")
        refused = await call(first, "GET", f"/poppy/conversations{path}", headers=signed(one, "GET", ENDPOINT + path))
        assert refused.json["error"] == "invalid_session"

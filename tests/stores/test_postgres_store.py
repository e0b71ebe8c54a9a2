"""The store in PostgreSQL: restarts and cuts are survived, lost hints are made up for, faults say what to do."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from papaver.ports.company import CompanyTables
from papaver.ports.deltas import Delta
from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey
from papaver.protocol.errors import ConversationClosed
from papaver.protocol.terms import ClientId, ConversationId, MessageId, SessionId
from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.postgres import PostgresStore
from papaver.testing.stores import SHARED_STORE_CONTRACT, StoreCase
from papaver.testing.stores.samples import (
    CLIENT,
    COMPANY,
    NOW,
    SID,
    answer,
    begin,
    code_of,
    lease,
    opened,
    receipt_key,
    say,
    session,
    speak,
    tables,
    texts,
)
from tests.stores.postgres import DSN, query
from tests.stores.redis_server import URL, own_redis
from tests.stores.way import way

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres"), pytest.mark.timeout(30)]
A, B = ConversationId("cnv_a"), ConversationId("cnv_b")


def _name(case: StoreCase) -> str:
    return getattr(case, "__name__", "case")


def made(schema: str, *, dsn: str = DSN, redis: str | None = None) -> PostgresStore:
    return PostgresStore(dsn, schema=schema, redis=redis, connections=4, timeout=5)


async def _said(own: CompanyTables, conversation: ConversationId) -> list[str | None]:
    found = await own.log.read(conversation, 0, 99)
    return [] if found is None else texts(found.events)


@pytest.mark.requirement("ca-102")
@pytest.mark.needs("redis")
@pytest.mark.parametrize("case", SHARED_STORE_CONTRACT, ids=_name)
async def test_two_replicas_with_redis(case: StoreCase, schema: str) -> None:
    """Wake-ups that go through Redis keep the same contract."""
    await case(lambda: made(schema, redis=URL))


@pytest.mark.requirement("ca-109")
@pytest.mark.needs("redis")
async def test_pieces_of_text_reach_the_other_replica(schema: str) -> None:
    """With Redis: the piece, and a wake-up of whoever waits for the conversation."""
    async with opened(lambda: made(schema, redis=URL)) as one, opened(lambda: made(schema, redis=URL)) as other:
        here, there = await one.tables(COMPANY), await other.tables(COMPANY)
        with there.deltas.listen(A) as feed, there.log.watch(A) as watch:
            taken: tuple[Delta, ...] = ()
            while not taken:
                # A subscription is in force a moment later than it is made, and nothing says when.
                here.deltas.publish(A, Delta(MessageId("msg_1"), "Hel", 0))
                await watch.wait(0.05)
                taken = feed.take()
            assert taken[0] == Delta(MessageId("msg_1"), "Hel", 0)


async def test_what_others_notify_is_left(schema: str) -> None:
    """It is not ours, whatever its form; the replica that hears it has no fault to tell of."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with opened(lambda: made(schema)) as one:
        own = await one.tables(COMPANY)
        with own.log.watch(A) as watch:
            for said in (
                "[" * 7_000,
                "",
                "{}",
                "7",
                '["x"]',
                '["x", 7]',
                '["x", [1, [[], "a"]]]',
                f'["x", [[1, "{A}"]]]',
            ):
                await query("SELECT pg_notify($1, $2)", f"papaver_{schema}", said)
            assert await watch.wait(20)
    assert faults == []


@pytest.mark.requirement("papaver-124")
@pytest.mark.needs("redis")
async def test_without_redis_the_net_wakes_in_its_stead(schema: str, tmp_path: Path) -> None:
    """It was never there: what one replica commits the other one still learns of."""
    async with own_redis(tmp_path) as redis, AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(opened(lambda: made(schema, redis=redis.url))) for _ in range(2)]
        here, there = await one.tables(COMPANY), await other.tables(COMPANY)
        await speak(here.log, A)
        with there.log.watch(A) as watch:
            assert await _said(there, A) == ["hello"]
            await speak(here.log, A, "again")
            assert await watch.wait(20)
            assert await _said(there, A) == ["hello", "again"]


@pytest.mark.requirement("papaver-123")
async def test_a_restart_of_the_server_is_survived(schema: str) -> None:
    """Every session of both replicas ends; both go on, hear each other, and neither is believed dead."""
    async with way() as through, AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(opened(lambda: made(schema, dsn=through.dsn))) for _ in range(2)]
        here, there = await one.tables(COMPANY), await other.tables(COMPANY)
        await speak(here.log, A)
        turn = await lease(here.log, holder=one.holder, lasts=3600)
        assert turn is not None
        await through.restart()
        await asyncio.gather(*(speak(own.log, B, f"{n}") for n, own in enumerate((here, there) * 4)))
        assert sorted(await _said(here, B), key=str) == [f"{n}" for n in range(8)]
        with there.log.watch(A) as watch:
            assert await _said(there, A) == ["hello"]
            await speak(here.log, A, "again")
            assert await watch.wait(20)
        assert await there.log.turns_held(NOW + 1) == 1
        await answer(here.log, turn)
        assert await _said(there, A) == ["hello", "again", "hi"]


@pytest.mark.requirement("papaver-122")
async def test_a_connection_lost_before_commit_is_made_up_for(schema: str) -> None:
    """Nothing was committed: it is done again, once."""
    async with way() as through, tables(lambda: made(schema, dsn=through.dsn)) as own:
        decided = 0

        def decide(loaded: Loaded) -> Change[int]:
            nonlocal decided
            decided += 1
            if decided == 1:
                through.cut()
            return say(A, receipt=True)(loaded)

        assert await own.log.apply(Keys(receipt=receipt_key("msg_1")), decide) == 1
        assert (decided, await _said(own, A)) == (2, ["hello"])


@pytest.mark.requirement("papaver-122")
async def test_a_connection_lost_in_commit_is_said_and_not_made_up_for(schema: str) -> None:
    """Nobody knows whether it was done: the same message, sent again, finds its receipt or not."""
    slow = "BEGIN PERFORM pg_sleep(60); RETURN NULL; END"
    in_commit = "FROM pg_stat_activity WHERE query = 'COMMIT;' AND wait_event = 'PgSleep'"
    async with tables(lambda: made(schema)) as own:
        await query(f"CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS '{slow}'")
        await query(
            f"CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {schema}.receipts"
            f" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"
        )
        beginning = asyncio.create_task(begin(own.log, A, "msg_1"))
        while not await query(f"SELECT {in_commit}"):
            pass
        await query(f"SELECT pg_terminate_backend(pid) {in_commit}")
        with pytest.raises(StoreFailed) as caught:
            await beginning
        assert "done or not" in caught.value.detail
        await query(f"DROP TRIGGER slow ON {schema}.receipts")
        assert await begin(own.log, A, "msg_1") == 1


@pytest.mark.requirement("papaver-122")
async def test_a_server_that_is_away_is_said_and_comes_back(schema: str) -> None:
    """Every change, look and lease is temporarily unavailable, with no word of PostgreSQL for the other party."""
    async with way() as through, tables(lambda: made(schema, dsn=through.dsn)) as own:
        await speak(own.log, A)
        await through.close()
        for attempt in (
            speak(own.log, A),
            own.log.read(A, 0, 1),
            lease(own.log),
            own.sessions.load(CLIENT, SID),
            own.clients.verdict(CLIENT),
            own.sessions.open(session(), forget_before=0),
        ):
            assert await code_of(attempt) == StoreFailed.code
        await through.open()
        assert await speak(own.log, A, "again") == 2
        assert await lease(own.log) is not None


@pytest.mark.requirement("papaver-124")
async def test_a_lost_hint_is_made_up_for_by_the_net(schema: str) -> None:
    """Who waits for a conversation, for turns or for what is to be told looks again, though nobody was notified."""
    async with tables(lambda: made(schema)) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        await answer(own.log, turn)
        with own.log.watch(A) as watch, own.log.watch_turns() as turns, own.log.watch_notes() as notes:
            assert await own.log.read(A, 0, 1) is not None
            assert not await watch.wait(1.2)
            assert not await turns.wait(0)
            await query(f"UPDATE {schema}.conversations SET last_seq = last_seq + 1, due_since = $1", NOW)
            await query(
                f"INSERT INTO {schema}.notes (company, conversation, kind, seq, first_seq)"
                f" SELECT company, 'cnv_a', 'message', 1, 1 FROM {schema}.companies"
            )
            assert await watch.wait(20)
            assert await turns.wait(20)
            assert await notes.wait(20)


async def test_the_fault_of_one_change_is_its_own(schema: str) -> None:
    """Those that are committed with it are, whether it is refused or cannot be stored."""

    def refuse(_: Loaded) -> Change[None]:
        raise ConversationClosed(rule="conversation.closed")

    def unstorable(loaded: Loaded) -> Change[int]:
        return say("cnv_\0")(loaded)

    def broken(_: Loaded) -> Change[None]:
        raise StopIteration("a fault of decide")

    async with tables(lambda: made(schema)) as own:
        done = await asyncio.gather(
            speak(own.log, A, "1"),
            own.log.apply(Keys(A), refuse),
            own.log.apply(Keys(receipt=receipt_key("msg_1")), unstorable),
            own.log.apply(Keys(ConversationId("cnv_\0")), refuse),
            own.log.apply(Keys(A), broken),
            speak(own.log, A, "2"),
            return_exceptions=True,
        )
        faults = [type(one) for one in done[1:5]]
        assert (done[0], done[5]) == (1, 2)
        assert faults == [ConversationClosed, StoreFailed, ConversationClosed, RuntimeError]
        assert await _said(own, A) == ["1", "2"]
        assert await own.log.read(ConversationId("cnv_\0"), 0, 1) is None
        assert await own.log.read_back(ConversationId("cnv_\ud800"), 9, 1) == ()


@pytest.mark.requirement("papaver-121")
async def test_two_replicas_use_a_replay_key_and_a_receipt_once(schema: str) -> None:
    """All at once, again and again: one of each pair is first, and the other one sees what it wrote."""

    async def start(own: CompanyTables, n: int, by: str) -> bool:
        keys = Keys(receipt=receipt_key(f"msg_{n}"), replay=ReplayKey(CLIENT, f"jti_{n}", NOW + 60))

        def decide(loaded: Loaded) -> Change[bool]:
            if loaded.receipt is not None:
                assert loaded.replayed
                return Change(False)
            assert not loaded.replayed
            change = say(f"cnv_{n}_{by}", receipt=True)(loaded)
            return Change(True, change.heads, change.events, change.receipt)

        return await own.log.apply(keys, decide)

    async with opened(lambda: made(schema)) as one, opened(lambda: made(schema)) as other:
        here, there = await one.tables(COMPANY), await other.tables(COMPANY)
        made_here = asyncio.gather(*(start(here, n, "here") for n in range(60)))
        made_there = asyncio.gather(*(start(there, n, "there") for n in reversed(range(60))))
        first, second = await made_here, list(reversed(await made_there))
        assert [a != b for a, b in zip(first, second, strict=True)] == [True] * 60


@pytest.mark.requirement("papaver-120")
async def test_changes_of_crossing_heads_never_wait_for_each_other(schema: str) -> None:
    """Two replicas, each with both heads of a pair, named in either order."""

    async def touch(own: CompanyTables, one: ConversationId, other: ConversationId) -> int:
        return await own.log.apply(Keys(one, parent=other), say(one))

    async with opened(lambda: made(schema)) as first, opened(lambda: made(schema)) as second:
        here, there = await first.tables(COMPANY), await second.tables(COMPANY)
        await asyncio.gather(speak(here.log, A), speak(here.log, B))
        for _ in range(20):
            await asyncio.gather(*(touch(own, *pair) for own in (here, there) for pair in ((A, B), (B, A))))
        assert [len(await _said(here, name)) for name in (A, B)] == [41, 41]


async def test_ids_that_are_over_are_forgotten(schema: str) -> None:
    """By the clock of those who write, now and then; those that count are kept."""
    async with tables(lambda: made(schema)) as own:
        for n in range(300):
            keys = Keys(A, replay=ReplayKey(CLIENT, f"jti_{n}", NOW + n))
            if n % 50 == 49:
                await own.log.apply(keys, say(A, when=200))
            else:
                await own.log.apply(keys, lambda _: Change(None))
        ((least, count),) = await query(f"SELECT min(until), count(*) FROM {schema}.replays")
        assert least >= NOW + 200
        assert count <= 101


async def test_what_is_asked_for_at_once_is_one_look(schema: str) -> None:
    """Each gets its own answer, and one who gives up takes nobody with him."""
    async with tables(lambda: made(schema)) as own:
        await own.sessions.open(session(), forget_before=0)
        await own.clients.judge(CLIENT, "blocked")
        quitter = asyncio.ensure_future(own.sessions.load(CLIENT, SID))
        looks = asyncio.gather(
            own.sessions.load(CLIENT, SID),
            own.sessions.load(CLIENT, SessionId("sid_2")),
            own.clients.verdict(CLIENT),
            own.clients.verdict(ClientId("https://other.example/agent.json")),
            own.clients.verdict(ClientId("\0")),
        )
        await asyncio.sleep(0)
        quitter.cancel()
        assert await looks == [session(), None, "blocked", None, None]


async def test_tables_of_a_later_version_are_left_alone(schema: str) -> None:
    """Opening says so; nothing is changed."""
    async with opened(lambda: made(schema)):
        pass
    await query(f"INSERT INTO {schema}.store_migrations (number) VALUES (99)")
    with pytest.raises(StoreUnusable, match="later version"):
        await made(schema).open()


async def test_a_store_says_how_it_is_opened(schema: str) -> None:
    """A second opening, a closed one, an unreachable server, and names that are no schema's."""
    store = made(schema)
    assert not store.is_open
    for attempt in (store.tables(COMPANY), store.probe()):
        assert await code_of(attempt) == StoreFailed.code
    async with opened(lambda: store):
        assert store.is_open
        await store.probe()
        assert await code_of(store.open()) == StoreFailed.code
        with pytest.raises(TypeError):
            pickle.dumps(store)
    with pytest.raises(StoreUnusable, match="start the server"):
        await PostgresStore("postgresql://papaver:secret@127.0.0.1:1/papaver", timeout=5).open()
    for name in ("Papaver", "", "a" * 49, 'x"; DROP SCHEMA public'):
        with pytest.raises(ValueError, match="schema"):
            PostgresStore(DSN, schema=name)
    with pytest.raises(ValueError, match="connections"):
        PostgresStore(DSN, connections=1)
    assert "secret" not in repr(PostgresStore("postgresql://papaver:secret@127.0.0.1/papaver"))


async def test_a_message_id_of_two_starts_is_one_conversation_across_a_restart(schema: str) -> None:
    """What was told is there when the store is opened again, and the same message finds its receipt."""
    async with tables(lambda: made(schema)) as own:
        await begin(own.log, A, "msg_1", jti="jti_1")
    async with tables(lambda: made(schema)) as own:
        loaded = await own.log.apply(Keys(receipt=receipt_key("msg_1")), lambda loaded: Change(loaded))
        assert loaded.receipt is not None
        assert loaded.head is not None
        assert loaded.head.id == A

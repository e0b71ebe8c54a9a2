"""Redis between replicas: what one publishes the others get, counts are added up, and an outage costs hints alone."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from papaver.ports.deltas import Delta
from papaver.protocol.terms import ConversationId, MessageId
from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.notify import WatchRegistry
from papaver.stores.redis import RedisCounts, RedisRelay, RelayedDeltas
from papaver.stores.redis.relay import MOST_CHARACTERS, MOST_TOPICS, Piece
from tests.stores.redis_server import URL, own_redis

pytestmark = [pytest.mark.anyio, pytest.mark.needs("redis"), pytest.mark.timeout(60)]
SECRET, OTHER_SECRET = bytes(range(32)), bytes(32)
A = ConversationId("cnv_a")


class Pauses:
    """Notes how long it was asked to sleep, and returns as soon as the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.go = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.go.wait()
        await asyncio.sleep(0.01)


class Heard(asyncio.Queue[Piece]):
    """What was delivered, piece by piece; `messages`: in how many messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = 0

    def __call__(self, pieces: Sequence[Piece]) -> None:
        self.messages += 1
        for piece in pieces:
            self.put_nowait(piece)


@pytest.fixture
def prefix() -> str:
    """A name of this test's own, so that runs beside each other never meet."""
    return f"papaver-test-{secrets.token_hex(8)}"


@asynccontextmanager
async def opened(*relays: RedisRelay) -> AsyncGenerator[None]:
    for relay in relays:
        await relay.open()
    try:
        yield
    finally:
        for relay in relays:
            await relay.close()


@pytest.fixture
async def pair(prefix: str) -> AsyncIterator[tuple[RedisRelay, RedisRelay]]:
    """Two replicas."""
    one, two = RedisRelay(URL, prefix=prefix), RedisRelay(URL, prefix=prefix)
    async with opened(one, two):
        await one.settled()
        await two.settled()
        yield one, two


async def subscribers(relay: RedisRelay, topic: str) -> int:
    """How many processes the server knows to be subscribed."""
    (((_, count),),) = await relay.server.pipeline().pubsub_numsub(f"{relay.prefix}:{topic}").execute()
    return count


async def test_what_one_replica_publishes_the_others_get(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """In order, on its topic, and never the one that published it."""
    one, two = pair
    heard, own, other = Heard(), Heard(), Heard()
    two.subscribe("a", heard)
    two.subscribe("b", other)
    one.subscribe("a", own)
    await one.settled()
    await two.settled()
    for n in range(50):
        one.publish("a", ("é\ud800", n))
    assert [await heard.get() for _ in range(50)] == [["é\ud800", n] for n in range(50)]
    two.publish("a", ("back",))
    assert await own.get() == ["back"]
    assert (own.messages, other.messages) == (1, 0)


async def test_what_waits_is_sent_at_once(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """Of many wake-ups one is left."""
    one, two = pair
    heard = Heard()
    two.subscribe("a", heard)
    await two.settled()
    for n in range(1000):
        one.publish("a")
        one.publish("a", (n,))
    assert [await heard.get() for _ in range(1001)] == [None, *([n] for n in range(1000))]
    assert heard.messages == 1


async def test_a_topic_ends_with_its_last_subscription(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """The server is asked once for each topic, however many listen here."""
    one, two = pair
    heard = Heard()
    first, second = two.subscribe("a", heard), two.subscribe("a", heard)
    await two.settled()
    first.end()
    first.end()
    one.publish("a", (1,))
    assert await heard.get() == [1]
    assert (heard.messages, await subscribers(one, "a")) == (1, 1)
    second.end()
    again = two.subscribe("b", heard)
    await two.settled()
    while await subscribers(one, "a"):
        pass
    again.end()
    two.subscribe("a", heard)
    await two.settled()
    one.publish("a", (2,))
    assert await heard.get() == [2]


async def test_what_waits_is_bounded(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """What is too much is dropped; a wake-up of a topic that waits costs nothing."""
    one, two = pair
    heard = Heard()
    two.subscribe("0", heard)
    await two.settled()
    for n in range(MOST_TOPICS + 10):
        one.publish(str(n), ("x" * (MOST_CHARACTERS // 2),))
        one.publish(str(n))
    assert [await heard.get() for _ in range(2)] == [["x" * (MOST_CHARACTERS // 2)], None]
    assert await subscribers(one, str(MOST_TOPICS + 1)) == 0
    one.publish("0", ("y",))
    assert await heard.get() == ["y"]


async def test_what_others_write_into_a_channel_is_left(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """It is not ours."""
    one, two = pair
    heard = Heard()
    two.subscribe("a", heard)
    await two.settled()
    commands = one.server.pipeline()
    for foreign in (b"\xff", b"{}", b"7", b"[1]", b'["x", 7]', b'{"a": 1, "b": 2}', b"[" * 100_000):
        commands.publish(f"{one.prefix}:a", foreign)
    await commands.execute()
    one.publish("a", ("ours",))
    assert await heard.get() == ["ours"]


async def test_whatever_goes_wrong_it_listens_again(
    pair: tuple[RedisRelay, RedisRelay], caplog: pytest.LogCaptureFixture
) -> None:
    """What a message brought could not be taken: that is said, and the next one comes."""
    one, two = pair
    heard = Heard()

    def fail(pieces: Sequence[Piece]) -> None:
        failing.end()
        raise ArithmeticError(str(pieces))

    failing = two.subscribe("a", fail)
    two.subscribe("b", heard)
    await two.settled()
    with caplog.at_level(logging.ERROR, "papaver.stores.redis"):
        one.publish("a", (1,))
        while two.is_connected:
            one.publish("c")
            await asyncio.sleep(0.001)
    await two.settled()
    one.publish("b", (2,))
    assert await heard.get() == [2]
    assert [record.exc_info is not None for record in caplog.records] == [True]


@pytest.mark.requirement("papaver-126")
async def test_an_outage_loses_hints_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, prefix: str
) -> None:
    """Nobody waits meanwhile, it is said once, and afterwards everything flows as before."""
    pauses, returned = Pauses(), list[bool]()
    async with own_redis(tmp_path) as server:
        one = RedisRelay(server.url, prefix=prefix, sleep=pauses)
        two = RedisRelay(server.url, prefix=prefix, sleep=pauses, returned=lambda: returned.append(True))
        with caplog.at_level(logging.INFO, "papaver.stores.redis"):
            await server.start()
            async with opened(one, two):
                heard = Heard()
                two.subscribe("a", heard)
                for _ in range(2):
                    await one.settled()
                    await two.settled()
                    one.publish("a", (1,))
                    assert await heard.get() == [1]
                    pauses.go.clear()
                    await server.stop()
                    for _ in range(5000):
                        one.publish("a", ("x" * 1000,))
                    while one.is_connected or two.is_connected:
                        one.publish("a", (0,))
                        await asyncio.sleep(0.001)
                    two.subscribe("b", heard)
                    pauses.go.set()
                    await server.start()
                await one.settled()
                await two.settled()
                one.publish("b", (2,))
                assert await heard.get() == [2]
        said = [record.getMessage().partition(" (")[0].rpartition(" ")[2] for record in caplog.records]
    assert (said, len(returned)) == (["away", "away", "back", "back"] * 2, 3)


async def test_a_server_that_comes_later_is_waited_for(tmp_path: Path, prefix: str) -> None:
    """A Company starts without it; the pauses between two tries grow up to five seconds."""
    pauses = Pauses()
    pauses.go.set()
    async with own_redis(tmp_path) as server:
        relay = RedisRelay(server.url, prefix=prefix, sleep=pauses)
        async with opened(relay):
            relay.publish("a")
            while len(pauses.asked) < 9:
                await asyncio.sleep(0.001)
                assert not relay.is_connected
            assert pauses.asked[:9] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
            await server.start()
            await relay.settled()


async def test_a_server_that_says_nothing_any_more_is_left(tmp_path: Path, prefix: str) -> None:
    """Its connection is still there, and no answer comes: asked once, then it is away until it answers."""
    pauses = Pauses()
    async with own_redis(tmp_path) as server:
        await server.start()
        relay = RedisRelay(server.url, prefix=prefix, sleep=pauses, timeout=0.1, heartbeat=0.1)
        async with opened(relay):
            await relay.settled()
            server.hold()
            while relay.is_connected:
                relay.publish("a", (1,))
                await asyncio.sleep(0.001)
            server.go_on()
            pauses.go.set()
            await relay.settled()
            assert pauses.asked


async def test_a_quiet_server_is_kept(tmp_path: Path, prefix: str) -> None:
    """Its answer is enough."""
    pauses, heard = Pauses(), Heard()
    async with own_redis(tmp_path) as server:
        await server.start()
        one = RedisRelay(server.url, prefix=prefix, sleep=pauses, heartbeat=0.02)
        two = RedisRelay(server.url, prefix=prefix)
        async with opened(one, two):
            one.subscribe("a", heard)
            await one.settled()
            await two.settled()
            await asyncio.sleep(0.2)
            two.publish("a", (1,))
            assert await heard.get() == [1]
        assert pauses.asked == []


@pytest.mark.parametrize("url", ["localhost:6379", "redis://:pass@word@host:port/0"], ids=["scheme", "port"])
async def test_a_url_that_cannot_be_read_is_said(url: str) -> None:
    """Before anything starts, and without the password."""
    with pytest.raises(StoreUnusable, match="has the form redis://") as caught:
        await RedisRelay(url).open()
    assert "pass" not in str(caught.value).replace("password", "")


def test_a_password_is_not_shown() -> None:
    """Neither by the relay nor by its server."""
    relay = RedisRelay("redis://me:canary@redis.example:6380/0")
    assert repr(relay) == "<RedisRelay through <RedisServer redis.example:6380>>"


@pytest.mark.requirement("papaver-126")
async def test_pieces_of_text_reach_the_readers_of_every_replica(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """They wake who watches the conversation; no other Company gets any."""
    one, two = pair
    registry = WatchRegistry()
    here = RelayedDeltas(1, WatchRegistry(), one, SECRET)
    there = RelayedDeltas(7, registry, two, SECRET)
    stranger = RelayedDeltas(1, WatchRegistry(), two, OTHER_SECRET)
    pieces = [Delta(MessageId("msg_1"), text, at) for text, at in (("Hé", 0), ("llo\n", 2))]
    with (
        here.listen(A) as near,
        there.listen(A) as far,
        there.listen(A) as farther,
        stranger.listen(A) as foreign,
        registry.watch((7, A)) as watch,
    ):
        await one.settled()
        await two.settled()
        for piece in pieces:
            here.publish(A, piece)
        assert near.take() == tuple(pieces)
        assert await watch.wait(20)
        assert far.take() == tuple(pieces)
        assert farther.take() == tuple(pieces)
        assert (near.take(), foreign.take()) == ((), ())
    topic = f"text:*:{A}"
    assert await subscribers(one, topic) == 0


async def test_readers_of_the_same_process_need_no_redis(prefix: str) -> None:
    """Nor do those who begin and leave while it is away."""
    deltas = RelayedDeltas(1, WatchRegistry(), RedisRelay("redis://127.0.0.1:1", prefix=prefix), SECRET)
    piece = Delta(MessageId("msg_1"), "x", 0)
    with deltas.listen(A) as feed:
        deltas.publish(A, piece)
        assert feed.take() == (piece,)


async def test_pieces_of_a_later_version_are_left(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """Those that are understood come."""
    one, two = pair
    here, there = (
        RelayedDeltas(1, WatchRegistry(), one, SECRET),
        RelayedDeltas(1, registry := WatchRegistry(), two, SECRET),
    )
    with there.listen(A) as feed, registry.watch((1, A)) as watch:
        await two.settled()
        (topic,) = two.topics
        for piece in (("msg_1", "0", "x"), (1,), None):
            one.publish(topic, piece)
        here.publish(A, Delta(MessageId("msg_1"), "y", 0))
        assert await watch.wait(20)
        assert feed.take() == (Delta(MessageId("msg_1"), "y", 0),)


async def test_counts_of_the_replicas_are_added_up(pair: tuple[RedisRelay, RedisRelay]) -> None:
    """Each window by itself, with the one before it; another Company's are its own."""
    one, two = (RedisCounts(relay, SECRET) for relay in pair)
    other = RedisCounts(pair[0], OTHER_SECRET)
    assert await one.exchange(7, {"a": 3, "b": 1}) == {"a": (3, 0), "b": (1, 0)}
    assert await two.exchange(7, {"a": 2}) == {"a": (5, 0)}
    assert await two.exchange(8, {"c": 1, "a": 4}) == {"c": (1, 0), "a": (4, 5)}
    assert await other.exchange(7, {"a": 1}) == {"a": (1, 0)}
    assert await one.exchange(7, {}) == {}
    many = {f"{n}\ud800": n for n in range(700)}
    assert await one.exchange(7, many) == {name: (n, 0) for name, n in many.items()}
    keys = await pair[0].server.pipeline().keys(f"{pair[0].prefix}:*").execute()
    lives = [await pair[0].server.pipeline().ttl(key).execute() for key in keys[0]]
    assert len(lives) == 3
    assert all(0 < life <= 180 for (life,) in lives)


async def test_counts_of_a_server_that_is_away_are_an_error(tmp_path: Path, prefix: str) -> None:
    """Whoever counts goes on alone."""
    async with own_redis(tmp_path) as server:
        relay = RedisRelay(server.url, prefix=prefix)
        counts = RedisCounts(relay, SECRET)
        with pytest.raises(StoreFailed):
            await counts.exchange(7, {"a": 1})
        async with opened(relay):
            with pytest.raises(StoreFailed):
                await counts.exchange(7, {"a": 1})
            await server.start()
            assert await counts.exchange(7, {"a": 1}) == {"a": (1, 0)}

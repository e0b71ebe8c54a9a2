"""The contract of `ConversationLog`: changes, receipts, replay keys, reading and waking."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import ConversationClosed
from papaver.protocol.terms import ClientId, ConversationId, MessageId, UserId
from papaver.stores.faults import StoreMisused
from papaver.testing.stores.samples import (
    CLIENT,
    NOW,
    SID,
    USER,
    StoreMaker,
    at,
    begin,
    code_of,
    receipt_key,
    say,
    session,
    speak,
    tables,
    texts,
)

__all__ = ["LOG_CASES"]

A, B = ConversationId("cnv_a"), ConversationId("cnv_b")


def _refuse(_: Loaded) -> Change[None]:
    raise ConversationClosed(rule="conversation.closed")


def _look(loaded: Loaded) -> Change[Loaded]:
    return Change(loaded)


async def a_change_is_read_as_it_was_written(make: StoreMaker) -> None:
    async with tables(make) as own:
        assert await speak(own.log, A, "hello") == 1
        found = await own.log.read(A, 0, 100)
        assert found is not None
        assert (texts(found.events), found.more, found.head.last_seq) == (["hello"], False, 1)
        assert (found.head.changed_at, found.head.status) == (at(), Status.WORKING)


async def what_was_written_is_there_after_a_restart(make: StoreMaker) -> None:
    async with tables(make) as own:
        await begin(own.log, A, "msg_1", jti="jti_1")
    async with tables(make) as own:
        replay = ReplayKey(CLIENT, "jti_1", NOW + 60)
        loaded = await own.log.apply(Keys(A, receipt=receipt_key("msg_1"), replay=replay), _look)
        assert loaded.head is not None
        assert loaded.receipt is not None
        assert (loaded.head.last_seq, loaded.receipt.conversation_id, loaded.replayed) == (1, A, True)


async def changes_of_one_head_never_interleave(make: StoreMaker) -> None:
    async with tables(make) as own:
        seqs = await asyncio.gather(*(speak(own.log, A, f"{n}") for n in range(40)))
        found = await own.log.read(A, 0, 100)
        assert found is not None
        assert sorted(seqs) == list(range(1, 41))
        assert [int(text or "") for text in texts(found.events)] == sorted(range(40), key=lambda n: seqs[n])


async def two_starts_with_one_message_id_make_one_conversation(make: StoreMaker) -> None:
    async def start(conversation: ConversationId) -> ConversationId:
        def decide(loaded: Loaded) -> Change[ConversationId]:
            if loaded.receipt is not None:
                return Change(loaded.receipt.conversation_id)
            made = say(conversation, receipt=True)(loaded)
            return Change(conversation, made.heads, made.events, made.receipt)

        return await own.log.apply(Keys(receipt=receipt_key("msg_1")), decide)

    async with tables(make) as own:
        first, second = await asyncio.gather(start(A), start(B))
        assert first == second
        assert [await own.log.read(id, 0, 1) is None for id in (A, B)] == [first != A, first != B]


async def a_receipt_brings_its_head_with_it(make: StoreMaker) -> None:
    async with tables(make) as own:
        await begin(own.log, A, "msg_1")
        loaded = await own.log.apply(Keys(receipt=receipt_key("msg_1")), _look)
        assert loaded.head is not None
        assert loaded.head.id == A


async def c12_the_same_message_id_of_another_user_is_another_receipt(make: StoreMaker) -> None:
    async with tables(make) as own:
        await begin(own.log, A, "msg_1")
        for key in (
            (CLIENT, UserId("usr_robin"), MessageId("msg_1")),
            (ClientId("https://other.example/a"), USER, MessageId("msg_1")),
            (CLIENT, UserId(USER + "msg"), MessageId("_1")),
        ):
            assert (await own.log.apply(Keys(receipt=key), _look)).receipt is None


async def a_refused_change_leaves_nothing(make: StoreMaker) -> None:
    async with tables(make) as own:
        replay = ReplayKey(CLIENT, "jti_1", NOW + 60)
        assert await code_of(own.log.apply(Keys(A, replay=replay), _refuse)) == "conversation_closed"
        assert await own.log.read(A, 0, 1) is None
    async with tables(make) as own:
        seen = [(await own.log.apply(Keys(replay=replay), _look)).replayed for _ in range(2)]
        assert seen == [False, True], "its replay key is free until a change is made with it"


async def a_refusal_does_not_undo_its_neighbours(make: StoreMaker) -> None:
    def break_down(_: Loaded) -> Change[None]:
        raise LookupError("a fault of decide")

    async with tables(make) as own:
        outcomes = await asyncio.gather(
            speak(own.log, A),
            own.log.apply(Keys(A), _refuse),
            speak(own.log, B),
            own.log.apply(Keys(A), break_down),
            speak(own.log, A),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [int, ConversationClosed, int, LookupError, int]
        assert outcomes[4] == 2


async def a_replay_key_belongs_to_its_client(make: StoreMaker) -> None:
    async with tables(make) as own:
        seen = [
            (await own.log.apply(Keys(replay=ReplayKey(ClientId(client), jti, NOW + 60)), _look)).replayed
            for client, jti in (("https://a.example", "1"), ("https://b.example", "1"), ("https://a.example", "1"))
        ]
        assert seen == [False, False, True]


async def one_replay_key_used_at_once_is_new_once(make: StoreMaker) -> None:
    async with tables(make) as own:
        keys = Keys(replay=ReplayKey(CLIENT, "jti_1", NOW + 60))
        loaded = await asyncio.gather(*(own.log.apply(keys, _look) for _ in range(10)))
        assert [one.replayed for one in loaded].count(False) == 1


async def replay_keys_that_still_count_are_never_pruned(make: StoreMaker) -> None:
    async with tables(make) as own:
        for n in range(60):
            keys = [Keys(A, replay=ReplayKey(CLIENT, f"jti_{n}_{i}", NOW + (60 if i else -60) + n)) for i in range(50)]
            await asyncio.gather(*(own.log.apply(key, say(A, when=n)) for key in keys))
        replayed = [
            (await own.log.apply(Keys(replay=ReplayKey(CLIENT, f"jti_{n}_{i}", NOW)), _look)).replayed
            for n in range(59)
            for i in (1, 49)
        ]
        assert all(replayed)


async def a_change_sees_the_session_as_it_is_now(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.sessions.open(session(), forget_before=NOW - 60)
        assert await own.sessions.end(CLIENT, SID, NOW + 1)
        loaded = await own.log.apply(Keys(session=(CLIENT, SID)), _look)
        found = await own.log.read(A, 0, 1, session=(CLIENT, SID))
        assert loaded.session is not None
        assert (loaded.session.ended_at, found) == (NOW + 1, None)


async def two_heads_change_together(make: StoreMaker) -> None:
    def direct(loaded: Loaded) -> Change[None]:
        made = say(B)(replace(loaded, head=None))
        assert loaded.parent is not None
        return Change(None, (*made.heads, replace(loaded.parent, open_direct=B)), made.events)

    async with tables(make) as own:
        await speak(own.log, A)
        await own.log.apply(Keys(parent=A), direct)
        loaded = await own.log.apply(Keys(B, parent=A), _look)
        assert loaded.head is not None
        assert loaded.parent is not None
        assert (loaded.head.last_seq, loaded.parent.open_direct) == (1, B)


async def a_broken_change_is_refused_whole(make: StoreMaker) -> None:
    def gap(loaded: Loaded) -> Change[int]:
        made = say(A)(loaded)
        return replace(made, events=tuple((id, seq + 1, event) for id, seq, event in made.events))

    def uncounted(loaded: Loaded) -> Change[int]:
        return replace(say(A)(loaded), events=())

    def twice(loaded: Loaded) -> Change[int]:
        return say(A, receipt=True)(loaded)

    def ending(loaded: Loaded) -> Change[int]:
        return replace(say(A)(loaded), ended=True)

    async with tables(make) as own:
        await begin(own.log, A, "msg_1")
        keys = Keys(A, receipt=receipt_key("msg_1"))
        for broken in (gap, uncounted, twice, ending):
            assert await code_of(own.log.apply(keys, broken)) == StoreMisused.code
        found = await own.log.read(A, 0, 10)
        assert found is not None
        assert (found.head.last_seq, len(found.events)) == (1, 1)


async def a_caller_that_leaves_undoes_nothing(make: StoreMaker) -> None:
    async with tables(make) as own:
        leaving = asyncio.create_task(speak(own.log, A, "kept"))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await speak(own.log, A, "next") == 2


async def c16_events_are_read_in_pages(make: StoreMaker) -> None:
    async with tables(make) as own:
        await asyncio.gather(*(speak(own.log, A, f"{n}") for n in range(105)))
        first = await own.log.read(A, 0, 100)
        rest = await own.log.read(A, 100, 100)
        empty = await own.log.read(A, 105, 100)
        assert first is not None
        assert rest is not None
        assert empty is not None
        assert [(len(page.events), page.more) for page in (first, rest, empty)] == [(100, True), (5, False), (0, False)]
        assert len({event.id for event in first.events + rest.events}) == 105


async def a_tail_is_read_backwards_in_order(make: StoreMaker) -> None:
    async with tables(make) as own:
        for n in range(1, 8):
            await speak(own.log, A, f"{n}")
        assert texts(await own.log.read_back(A, 8, 3)) == ["5", "6", "7"]
        assert texts(await own.log.read_back(A, 3, 300)) == ["1", "2"]
        assert await own.log.read_back(A, 1, 3) == ()
        assert await own.log.read_back(B, 9, 3) == ()


async def a_page_has_a_limit_of_octets(make: StoreMaker) -> None:
    """Nobody's answer is larger than its reader takes, however long each message was."""
    async with tables(make) as own:
        for n in range(6):
            await speak(own.log, A, "é" * (5_000 if n == 3 else 1_000))
        pages: list[tuple[int, bool]] = []
        after = 0
        for _ in range(4):
            found = await own.log.read(A, after, 100, max_bytes=8_000)
            assert found is not None
            pages.append((len(found.events), found.more))
            after += len(found.events)
        assert pages == [(3, True), (1, True), (2, False), (0, False)]


async def a_tail_has_a_limit_of_octets(make: StoreMaker) -> None:
    """The newest come first; those that have to be there are there."""
    async with tables(make) as own:
        for n in range(5):
            await speak(own.log, A, f"{n}" * 300_000)
        read = [
            [(text or "")[0] for text in texts(await own.log.read_back(A, before, limit, **bounds))]
            for before, limit, bounds in (
                (6, 9, {"max_bytes": 700_000}),
                (6, 9, {"max_bytes": 700_000, "at_least": 4}),
                (6, 3, {"max_bytes": 10_000_000}),
                (4, 9, {"max_bytes": 1}),
                (4, 9, {"max_bytes": 100_000_000, "at_least": 9}),
                (4, 2000, {"max_bytes": 310_000}),
            )
        ]
        assert ["".join(one) for one in read] == ["34", "1234", "234", "2", "012", "2"]


async def idle_conversations_are_found_oldest_first(make: StoreMaker) -> None:
    def close(loaded: Loaded) -> Change[None]:
        assert loaded.head is not None
        return Change(None, (replace(loaded.head, status=Status.CLOSED),))

    async with tables(make) as own:
        for when, name in ((5, "c"), (-86_400, "b"), (-90_000, "d"), (-200_000, "a")):
            await speak(own.log, f"cnv_{name}", when=when)
        await own.log.apply(Keys(ConversationId("cnv_d")), close)
        assert await own.log.conversations(idle_since=NOW, limit=9) == ("cnv_a", "cnv_b")
        assert await own.log.conversations(idle_since=NOW + 5, limit=9) == ("cnv_a", "cnv_b", "cnv_c")
        assert await own.log.conversations(idle_since=NOW + 5, limit=1) == ("cnv_a",)
        await speak(own.log, "cnv_a", when=6)
        assert await own.log.conversations(idle_since=NOW + 5, limit=9) == ("cnv_b", "cnv_c")


async def a_change_wakes_whoever_watches_that_conversation(make: StoreMaker) -> None:
    async with tables(make) as own:
        with own.log.watch(A) as watch, own.log.watch(A) as second, own.log.watch(B) as other:
            waiting = asyncio.create_task(watch.wait(20))
            await asyncio.sleep(0)
            await speak(own.log, A)
            assert await waiting
            assert await second.wait(0), "a wake-up before the wait is not lost"
            assert not await second.wait(0), "one wake-up is told once"
            assert not await other.wait(0.01)
        assert await speak(own.log, A) == 2, "nobody watches any more"


async def a_waiter_that_is_cancelled_is_forgotten(make: StoreMaker) -> None:
    async with tables(make) as own:
        with own.log.watch(A) as watch:
            waiting = asyncio.create_task(watch.wait(20))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await speak(own.log, A)
            assert await watch.wait(20)


async def a_head_without_events_changes_too(make: StoreMaker) -> None:
    def bind(loaded: Loaded) -> Change[Head]:
        assert loaded.head is not None
        head = replace(loaded.head, context={"locale": "en-US", "cart": {"items": [1, 2]}})
        return Change(head, (head,))

    async with tables(make) as own:
        await speak(own.log, A)
        head = await own.log.apply(Keys(A), bind)
        found = await own.log.read(A, 0, 1)
        assert found is not None
        assert found.head == head


LOG_CASES = (
    a_change_is_read_as_it_was_written,
    what_was_written_is_there_after_a_restart,
    changes_of_one_head_never_interleave,
    two_starts_with_one_message_id_make_one_conversation,
    a_receipt_brings_its_head_with_it,
    c12_the_same_message_id_of_another_user_is_another_receipt,
    a_refused_change_leaves_nothing,
    a_refusal_does_not_undo_its_neighbours,
    a_replay_key_belongs_to_its_client,
    one_replay_key_used_at_once_is_new_once,
    replay_keys_that_still_count_are_never_pruned,
    a_change_sees_the_session_as_it_is_now,
    two_heads_change_together,
    a_broken_change_is_refused_whole,
    a_caller_that_leaves_undoes_nothing,
    c16_events_are_read_in_pages,
    a_tail_is_read_backwards_in_order,
    a_page_has_a_limit_of_octets,
    a_tail_has_a_limit_of_octets,
    idle_conversations_are_found_oldest_first,
    a_change_wakes_whoever_watches_that_conversation,
    a_waiter_that_is_cancelled_is_forgotten,
    a_head_without_events_changes_too,
)

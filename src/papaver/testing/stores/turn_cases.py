"""The contract of `ConversationLog`'s turns: who may run one, for how long, and what a late holder can still do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from papaver.ports.company import ConversationLog, Share
from papaver.protocol.conversation.change import Change, Keys, Loaded
from papaver.protocol.conversation.model import Responder
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, ConversationId, UserId
from papaver.stores.faults import StoreMisused
from papaver.testing.stores.samples import (
    CLIENT,
    NOW,
    USER,
    StoreMaker,
    answer,
    code_of,
    lease,
    reply,
    say,
    speak,
    tables,
    texts,
)

__all__ = ["TURN_CASES"]

A, B = ConversationId("cnv_a"), ConversationId("cnv_b")


def _look(loaded: Loaded) -> Change[Loaded]:
    return Change(loaded)


async def _change_head(log: ConversationLog, change: Callable[[Head], Head]) -> None:
    def decide(loaded: Loaded) -> Change[None]:
        assert loaded.head is not None
        return Change(None, (change(loaded.head),))

    await log.apply(Keys(A), decide)


async def nothing_is_due_in_an_empty_store(make: StoreMaker) -> None:
    async with tables(make) as own:
        assert await lease(own.log) is None
        assert await own.log.turns_pending(NOW) == (0, NOW)


async def a_turn_is_leased_with_what_it_answers(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        await speak(own.log, A)
        turn = await lease(own.log, "trn_1", holder="one", lasts=30)
        assert turn is not None
        assert (turn.lease.conversation_id, turn.lease.turn_id, turn.lease.holder) == (A, "trn_1", "one")
        assert (turn.lease.until, turn.until_seq, turn.journal) == (NOW + 30, 2, {})
        assert turn.head.failures == 1, "begun and not ended"


async def the_turn_that_waited_longest_comes_first(make: StoreMaker) -> None:
    async with tables(make) as own:
        for when, name in ((3, "c"), (1, "a"), (2, "b")):
            await speak(own.log, f"cnv_{name}", when=when)
        await speak(own.log, "cnv_a", when=9)
        assert await own.log.turns_pending(NOW + 10) == (3, NOW + 1)
        leased = [await lease(own.log, when=10) for _ in range(4)]
        assert [turn and turn.lease.conversation_id for turn in leased] == ["cnv_a", "cnv_b", "cnv_c", None]


async def a_held_turn_is_nobody_elses(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        leased = await asyncio.gather(*(lease(own.log, f"trn_{n}", holder=f"runner {n}") for n in range(8)))
        assert [turn is not None for turn in leased].count(True) == 1
        assert await own.log.turns_pending(NOW + 1) == (0, NOW + 1)


async def one_user_and_one_client_have_their_share_of_the_turns(make: StoreMaker) -> None:
    """Also of those that are leased at once; what waits lets others go first, and comes as soon as one has ended."""
    robin, other = UserId("usr_robin"), ClientId("https://other.example/a")
    whose = {"a": (CLIENT, USER), "b": (CLIENT, robin), "c": (other, USER)}
    share = Share(user=2, client=3)
    async with tables(make) as own:
        for when, name in enumerate(("a1", "a2", "a3", "a4", "b1", "b2", "c1")):
            where = ConversationId(f"cnv_{name}")
            await own.log.apply(Keys(where), say(where, when=when, whose=whose[name[0]]))
        found = await asyncio.gather(*(lease(own.log, f"trn_{n}", when=9, share=share) for n in range(8)))
        leased = {turn.lease.conversation_id: turn for turn in found if turn is not None}
        assert sorted(leased) == ["cnv_a1", "cnv_a2", "cnv_b1", "cnv_c1"]
        assert await lease(own.log, "trn_8", when=9, share=share) is None
        assert (await own.log.turns_held(NOW + 9), (await own.log.turns_pending(NOW + 9))[0]) == (4, 3)
        elsewhere = await lease(own.log, "trn_9", holder="another", when=9, share=share)
        assert elsewhere is not None
        assert elsewhere.lease.conversation_id == "cnv_a3", "each process has shares of its own"
        await answer(own.log, leased[ConversationId("cnv_a1")], when=10)
        following = await lease(own.log, "trn_10", when=10, share=share)
        assert following is not None
        assert following.lease.conversation_id == "cnv_a4"
        assert await own.log.turns_held(NOW + 99) == 0, "whose lease is over holds nothing"


async def an_ended_turn_is_over(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        assert await own.log.journal(turn.lease, "step", b"1")
        assert await answer(own.log, turn) == 3
        assert await lease(own.log, when=1) is None
        assert not await own.log.renew(turn.lease, NOW + 60)
        assert not await own.log.journal(turn.lease, "step", b"2")
        await speak(own.log, A, when=2)
        following = await lease(own.log, "trn_2", when=2)
        assert following is not None
        assert (following.lease.turn_id, following.until_seq, following.journal) == ("trn_2", 4, {})
        assert following.lease.token > turn.lease.token


async def what_is_said_during_a_turn_is_the_next_one(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A, when=1)
        turn = await lease(own.log, when=1)
        assert turn is not None
        await speak(own.log, B, when=2)
        await speak(own.log, A, "and", when=3)
        await answer(own.log, turn, when=4)
        first, second = await lease(own.log, "trn_2", when=5), await lease(own.log, "trn_3", when=5)
        assert first is not None
        assert second is not None
        assert (first.lease.conversation_id, second.lease.conversation_id) == (B, A), "nobody is kept from their turn"
        assert second.until_seq == 2


async def a_lease_that_is_over_is_taken_by_another(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        first = await lease(own.log, "trn_1", holder="one", lasts=30)
        assert first is not None
        assert await own.log.journal(first.lease, "step", b"done")
        await speak(own.log, A, "more")
        assert await lease(own.log, "trn_2", when=29) is None
        second = await lease(own.log, "trn_2", holder="two", when=30)
        assert second is not None
        assert (second.lease.turn_id, second.until_seq) == ("trn_1", 1), "its id and its question stay"
        assert (dict(second.journal), second.head.failures) == ({"step": b"done"}, 2)
        assert second.lease.token > first.lease.token


async def c78_a_paused_writer_that_comes_back_changes_nothing(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        late = await lease(own.log, holder="one")
        now = await lease(own.log, holder="two", when=31)
        assert late is not None
        assert now is not None
        keys = Keys(A, lease=late.lease)
        assert (await own.log.apply(keys, _look)).lease_lost
        assert await code_of(own.log.apply(keys, reply(late, "twice"))) == StoreMisused.code
        assert not await own.log.renew(late.lease, NOW + 99)
        assert not await own.log.journal(late.lease, "step", b"late")
        await own.log.release(late.lease)
        assert not (await own.log.apply(Keys(A, lease=now.lease), _look)).lease_lost
        await answer(own.log, now, "once")
        found = await own.log.read(A, 0, 9)
        assert found is not None
        assert texts(found.events) == ["hello", "once", "StateChanged"]


async def a_lease_that_is_over_but_still_the_newest_may_end_its_turn(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log, lasts=1)
        assert turn is not None
        assert await own.log.renew(turn.lease, NOW + 2)
        assert await answer(own.log, turn, when=60) == 3


async def a_renewed_lease_lasts_longer(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log, lasts=30)
        assert turn is not None
        assert await own.log.renew(turn.lease, NOW + 60)
        assert await lease(own.log, when=59) is None
        assert await lease(own.log, when=60) is not None


async def a_turn_given_back_is_due_at_once_and_not_counted(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        first = await lease(own.log, "trn_1", holder="one")
        assert first is not None
        assert await own.log.journal(first.lease, "step", b"done")
        with own.log.watch_turns() as watch:
            await own.log.release(first.lease)
            assert await watch.wait(20)
        assert not await own.log.renew(first.lease, NOW + 60)
        second = await lease(own.log, "trn_2", holder="two")
        assert second is not None
        assert (second.lease.turn_id, second.head.failures, dict(second.journal)) == ("trn_1", 1, {"step": b"done"})


async def a_message_wakes_the_runners(make: StoreMaker) -> None:
    async with tables(make) as own:
        with own.log.watch_turns() as watch:
            assert not await watch.wait(0.01)
            await speak(own.log, A)
            assert await watch.wait(20)
            turn = await lease(own.log)
            assert turn is not None
            await speak(own.log, A)
            await watch.wait(0)
            await answer(own.log, turn)
            assert await watch.wait(20), "the end of a turn leaves another one due"


async def what_a_person_answered_is_not_done_again(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log, "trn_1")
        assert turn is not None
        assert await own.log.journal(turn.lease, "step", b"done")
        await _change_head(own.log, lambda head: replace(head, responder=Responder.HUMAN, answered_seq=1))
        assert await lease(own.log, "trn_2", when=40) is None, "a person talks"
        await _change_head(own.log, lambda head: replace(head, responder=Responder.AGENT))
        await speak(own.log, A, "something new", when=41)
        following = await lease(own.log, "trn_2", when=41)
        assert following is not None
        assert (following.lease.turn_id, following.until_seq, following.journal) == ("trn_2", 2, {})


async def a_handoff_nobody_has_seen_to_is_due(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        await answer(own.log, turn)
        await _change_head(own.log, lambda head: replace(head, handoff_pending=True))
        again = await lease(own.log, "trn_2", when=2)
        assert again is not None
        assert again.head.handoff_pending


async def a_turn_may_end_without_a_word(make: StoreMaker) -> None:
    def end(_: Loaded) -> Change[None]:
        return Change(None, ended=True)

    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        await own.log.apply(Keys(A, lease=turn.lease), end)
        again = await lease(own.log, "trn_2", when=1)
        assert again is not None
        assert again.lease.turn_id == "trn_2"


async def an_unknown_conversations_lease_is_lost(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        unknown = replace(turn.lease, conversation_id=B)
        assert (await own.log.apply(Keys(B, lease=unknown), _look)).lease_lost
        assert not await own.log.renew(unknown, NOW + 99)


TURN_CASES = (
    nothing_is_due_in_an_empty_store,
    a_turn_is_leased_with_what_it_answers,
    the_turn_that_waited_longest_comes_first,
    a_held_turn_is_nobody_elses,
    one_user_and_one_client_have_their_share_of_the_turns,
    an_ended_turn_is_over,
    what_is_said_during_a_turn_is_the_next_one,
    a_lease_that_is_over_is_taken_by_another,
    c78_a_paused_writer_that_comes_back_changes_nothing,
    a_lease_that_is_over_but_still_the_newest_may_end_its_turn,
    a_renewed_lease_lasts_longer,
    a_turn_given_back_is_due_at_once_and_not_counted,
    a_message_wakes_the_runners,
    what_a_person_answered_is_not_done_again,
    a_handoff_nobody_has_seen_to_is_due,
    a_turn_may_end_without_a_word,
    an_unknown_conversations_lease_is_lost,
)

"""The contract of a Company's outbox: told in each conversation's order, at least once, and by one at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from papaver.ports.company import ConversationLog, LeasedNote
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, NoteKind
from papaver.protocol.errors import ConversationClosed
from papaver.protocol.terms import ConversationId
from papaver.stores.faults import StoreMisused
from papaver.testing.stores.samples import (
    COMPANY,
    NOW,
    OTHER_COMPANY,
    StoreMaker,
    answer,
    code_of,
    lease,
    opened,
    say,
    speak,
    tables,
)

__all__ = ["OUTBOX_CASES", "SHARED_OUTBOX_CASES"]

A, B = ConversationId("cnv_a"), ConversationId("cnv_b")


async def _tell(log: ConversationLog, *notes: Note) -> None:
    await log.apply(Keys(A), lambda _: Change(None, notes=notes))


def _note(conversation: ConversationId, seq: int, kind: NoteKind = NoteKind.MESSAGE) -> Note:
    return Note(kind, conversation, seq, seq)


async def _take(
    log: ConversationLog, *, holder: str = "teller", when: float = 0, lasts: float = 30
) -> LeasedNote | None:
    return await log.take_note(holder, now=NOW + when, until=NOW + when + lasts)


async def _taken(log: ConversationLog, *, holder: str = "teller", when: float = 0, lasts: float = 30) -> LeasedNote:
    found = await _take(log, holder=holder, when=when, lasts=lasts)
    assert found is not None
    return found


async def a_note_is_taken_as_it_was_written(make: StoreMaker) -> None:
    notes = [Note(kind, ConversationId(f"cnv_{kind.value}"), seq, seq // 2) for seq, kind in enumerate(NoteKind, 2)]
    async with tables(make) as own:
        assert await _take(own.log) is None
        await _tell(own.log, *notes)
    async with tables(make) as own:
        taken = [await _taken(own.log) for _ in notes]
        assert [one.note for one in taken] == notes
        assert [one.attempts for one in taken] == [1] * len(notes)
        assert [one.n for one in taken] == sorted({one.n for one in taken})
        assert await _take(own.log) is None, "each of them is held"


async def notes_come_with_the_change_that_tells_them(make: StoreMaker) -> None:
    """With a message or a turn's end, and not at all when the change is refused."""

    def refused(_: Loaded) -> Change[None]:
        raise ConversationClosed(rule="conversation.closed")

    async with tables(make) as own:
        said = say(A)
        await own.log.apply(Keys(A), lambda loaded: replace(said(loaded), notes=(_note(A, 1),)))
        assert await code_of(own.log.apply(Keys(A), refused)) == ConversationClosed.code
        found = await _taken(own.log)
        assert found.note == _note(A, 1)
        await own.log.done_note(found)
        assert await _take(own.log, when=99) is None


async def a_turn_that_lost_its_lease_tells_nothing(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        await answer(own.log, turn)
        late = own.log.apply(Keys(A, lease=turn.lease), lambda _: Change(None, notes=(_note(A, 1),)))
        assert await code_of(late) == StoreMisused.code
        assert await _take(own.log) is None


async def a_conversation_is_told_of_in_its_order(make: StoreMaker) -> None:
    """The next one may be taken when the one before is done; of another conversation at once."""
    async with tables(make) as own:
        await _tell(own.log, _note(A, 1), _note(A, 2), _note(B, 1))
        await _tell(own.log, _note(A, 3))
        first, other = await _taken(own.log), await _taken(own.log)
        assert (first.note, other.note) == (_note(A, 1), _note(B, 1))
        assert await _take(own.log) is None
        for seq in (2, 3):
            await own.log.done_note(first)
            first = await _taken(own.log)
            assert first.note == _note(A, seq)
        await own.log.done_note(first)
        assert await _take(own.log) is None
        assert await _taken(own.log, when=31) == replace(other, attempts=2)


async def a_note_that_is_not_done_is_taken_again(make: StoreMaker) -> None:
    """At least once: when the hold is over, with the same number and one attempt more."""
    async with tables(make) as own:
        await _tell(own.log, _note(A, 1), _note(A, 2))
        first = await _taken(own.log, holder="one", lasts=30)
        assert await _take(own.log, holder="two", when=29) is None
        again = await _taken(own.log, holder="two", when=30)
        assert again == replace(first, attempts=2)
        await own.log.done_note(first)
        assert (await _taken(own.log, when=30)).note == _note(A, 2), "it was told, whoever held it"


async def a_note_that_is_put_off_holds_its_conversation_up(make: StoreMaker) -> None:
    async with tables(make) as own:
        await _tell(own.log, _note(A, 1), _note(A, 2), _note(B, 1))
        first = await _taken(own.log)
        await own.log.later_note(first, NOW + 90)
        assert (await _taken(own.log)).note == _note(B, 1)
        assert (await _taken(own.log, when=60)).note == _note(B, 1), "only its own hold was over"
        assert await _take(own.log, when=89) is None
        assert await _taken(own.log, when=90) == replace(first, attempts=2)


async def a_note_is_put_off_only_as_long_as_it_says(make: StoreMaker) -> None:
    """Also to an earlier time than its hold would last."""
    async with tables(make) as own:
        await _tell(own.log, _note(A, 1))
        await own.log.later_note(await _taken(own.log, lasts=3600), NOW + 5)
        assert await _take(own.log, when=4) is None
        assert (await _taken(own.log, when=5)).attempts == 2


async def what_is_done_stays_done(make: StoreMaker) -> None:
    """A late `done` or `later` of a row that is gone touches no other row, not even one that came after."""
    async with tables(make) as own:
        await _tell(own.log, _note(A, 1))
        gone = await _taken(own.log)
        for _ in range(2):
            await own.log.done_note(gone)
        await _tell(own.log, _note(A, 2))
        await own.log.done_note(gone)
        await own.log.later_note(gone, NOW + 3600)
        found = await _taken(own.log)
        assert (found.note, found.attempts) == (_note(A, 2), 1)
        assert found.n > gone.n


async def each_note_is_one_takers(make: StoreMaker) -> None:
    """Sixteen who take at once."""
    async with tables(make) as own:
        await _tell(own.log, *(_note(ConversationId(f"cnv_{n}"), seq) for n in range(8) for seq in (1, 2)))
        taken = await asyncio.gather(*(_take(own.log, holder=f"teller {n}") for n in range(16)))
        assert sorted(one.note.conversation for one in taken if one) == [f"cnv_{n}" for n in range(8)]
        assert {one.note.seq for one in taken if one} == {1}


async def a_note_wakes_whoever_tells(make: StoreMaker) -> None:
    """Not those who wait for turns or for the conversation: it has not changed."""
    async with tables(make) as own:
        with own.log.watch_notes() as notes, own.log.watch_turns() as turns, own.log.watch(A) as watch:
            await _tell(own.log, _note(A, 1))
            assert await notes.wait(20)
            assert not await turns.wait(0.06)
            assert not await watch.wait(0)
            await speak(own.log, A)
            assert await turns.wait(20)
            assert not await notes.wait(0.06)


async def two_companies_have_two_outboxes(make: StoreMaker) -> None:
    async with opened(make) as store:
        own, other = await store.tables(COMPANY), await store.tables(OTHER_COMPANY)
        with other.log.watch_notes() as watch:
            await _tell(own.log, _note(A, 1))
            assert not await watch.wait(0.06)
        assert await _take(other.log) is None
        await _tell(other.log, _note(A, 5))
        mine, theirs = await _taken(own.log), await _taken(other.log)
        assert (mine.note.seq, theirs.note.seq) == (1, 5)
        await other.log.done_note(theirs)
        await own.log.later_note(mine, NOW)
        assert await _taken(own.log) == replace(mine, attempts=2)


OUTBOX_CASES = (
    a_note_is_taken_as_it_was_written,
    notes_come_with_the_change_that_tells_them,
    a_turn_that_lost_its_lease_tells_nothing,
    a_conversation_is_told_of_in_its_order,
    a_note_that_is_not_done_is_taken_again,
    a_note_that_is_put_off_holds_its_conversation_up,
    a_note_is_put_off_only_as_long_as_it_says,
    what_is_done_stays_done,
    each_note_is_one_takers,
    a_note_wakes_whoever_tells,
    two_companies_have_two_outboxes,
)


async def a_note_wakes_the_other_store(make: StoreMaker) -> None:
    async with tables(make) as one, tables(make) as two:
        with two.log.watch_notes() as watch:
            await _tell(one.log, _note(A, 1))
            assert await watch.wait(20)
            assert (await _taken(two.log)).note == _note(A, 1)


async def a_note_is_held_against_the_other_store(make: StoreMaker) -> None:
    """And goes on where the other one was, once that is closed: its holder does not live any more."""
    async with opened(make) as second:
        two = await second.tables(COMPANY)
        async with opened(make) as first:
            one = await first.tables(COMPANY)
            await _tell(one.log, _note(A, 1), _note(A, 2))
            held = await _taken(one.log, holder=first.holder, lasts=3600)
            assert await _take(two.log, holder=second.holder) is None
        again = await _taken(two.log, holder=second.holder, lasts=3600)
        assert again == replace(held, attempts=2)
        assert await _take(two.log, holder=second.holder) is None, "it lives"


async def two_stores_tell_each_note_once(make: StoreMaker) -> None:
    """Four tellers in each of two stores, in the order of each conversation."""
    told: list[tuple[ConversationId, int]] = []

    async def teller(log: ConversationLog, holder: str) -> None:
        while len(told) < 40:
            found = await _take(log, holder=holder, lasts=3600)
            if found is None:
                await asyncio.sleep(0)
                continue
            told.append((found.note.conversation, found.note.seq))
            await log.done_note(found)

    async with opened(make) as first, opened(make) as second:
        one, two = await first.tables(COMPANY), await second.tables(COMPANY)
        names = [ConversationId(f"cnv_{n}") for n in range(8)]
        await _tell(one.log, *(_note(name, seq) for seq in range(1, 6) for name in names))
        tellers = [teller(own.log, store.holder) for own, store in ((one, first), (two, second)) for _ in range(4)]
        async with asyncio.timeout(60):
            await asyncio.gather(*tellers)
    assert len(told) == 40
    for name in names:
        assert [seq for conversation, seq in told if conversation == name] == [1, 2, 3, 4, 5]


SHARED_OUTBOX_CASES = (
    a_note_wakes_the_other_store,
    a_note_is_held_against_the_other_store,
    two_stores_tell_each_note_once,
)

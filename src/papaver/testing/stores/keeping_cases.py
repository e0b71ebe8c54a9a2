"""The contract of lists, pruning and erasure: who waits, what may go one day, and that what has gone is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from papaver.ports.company import CompanyTables, ConversationLog, Erased
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, NoteKind
from papaver.protocol.conversation.model import Author, AuthorType, Responder, Status
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.terms import ClientId, ConversationId, EventId, SessionId, UserId
from papaver.stores.faults import StoreMisused
from papaver.testing.stores.samples import (
    CLIENT,
    COMPANY,
    NOW,
    OTHER_COMPANY,
    SID,
    USER,
    StoreMaker,
    answer,
    at,
    begin,
    code_of,
    lease,
    opened,
    receipt_key,
    reply,
    say,
    session,
    speak,
    tables,
    texts,
)

__all__ = ["KEEPING_CASES"]

A, B = ConversationId("cnv_a"), ConversationId("cnv_b")
ROBIN, OTHER = UserId("usr_robin"), ClientId("https://other.example/a")
PERSON = Author(AuthorType.HUMAN, "per_1", "Robin")


def _look(loaded: Loaded) -> Change[Loaded]:
    return Change(loaded)


async def _change(log: ConversationLog, id: str, change: Callable[[Head], Head], *, prune: bool = False) -> None:
    def decide(loaded: Loaded) -> Change[None]:
        assert loaded.head is not None
        return Change(None, (change(loaded.head),), prune=prune)

    await log.apply(Keys(ConversationId(id)), decide)


async def _prune(log: ConversationLog, id: str, first_seq: int, *, kept_from: float = 0) -> None:
    await _change(log, id, lambda head: replace(head, first_seq=first_seq, kept_from=at(kept_from)), prune=True)


async def who_waits_longest_comes_first(make: StoreMaker) -> None:
    """Then those who have somebody; whoever is closed, or was given back, needs nobody."""

    def queued(since: float) -> Callable[[Head], Head]:
        return lambda head: replace(head, status=Status.QUEUED, queued_at=at(since))

    async with tables(make) as own:
        assert await own.log.attention(9) == ()
        for name in ("a", "b", "c", "d", "e"):
            await speak(own.log, f"cnv_{name}")
        await _change(own.log, "cnv_a", lambda head: replace(head, responder=Responder.HUMAN, person=PERSON))
        await _change(own.log, "cnv_b", queued(30))
        await _change(own.log, "cnv_c", queued(10.5))
        await _change(own.log, "cnv_d", queued(20))
        await speak(own.log, "cnv_d", when=40)
    async with tables(make) as own:
        heads = await own.log.attention(9)
        assert [head.id for head in heads] == ["cnv_c", "cnv_d", "cnv_b", "cnv_a"]
        assert (heads[1].last_seq, heads[3].person, heads[0].queued_at) == (2, PERSON, at(10.5))
        assert [head.id for head in await own.log.attention(2)] == ["cnv_c", "cnv_d"]
        await _change(own.log, "cnv_d", lambda head: replace(head, queued_at=None, person=PERSON))
        await _change(own.log, "cnv_c", lambda head: replace(head, status=Status.CLOSED))
        await _change(own.log, "cnv_a", lambda head: replace(head, person=None))
        assert [head.id for head in await own.log.attention(9)] == ["cnv_b", "cnv_d"]


async def a_turn_leaves_those_who_wait_in_their_place(make: StoreMaker) -> None:
    """Leases, answers and messages beside it change neither the list nor its order."""
    async with tables(make) as own:
        await speak(own.log, A)
        await _change(own.log, A, lambda head: replace(head, queued_at=at(5)))
        turn = await lease(own.log)
        assert turn is not None
        await own.log.release(turn.lease)
        turn = await lease(own.log, "trn_2")
        assert turn is not None
        await answer(own.log, turn)
        (head,) = await own.log.attention(9)
        assert (head.id, head.queued_at, head.last_seq) == (A, at(5), 3)


async def conversations_are_listed_by_their_ids(make: StoreMaker) -> None:
    """All of them, a client's, one User's; page by page."""
    whose = {"a": (CLIENT, USER), "b": (CLIENT, ROBIN), "c": (OTHER, USER), "d": (CLIENT, USER), "e": (CLIENT, USER)}
    async with tables(make) as own:
        for name in ("d", "b", "e", "a", "c"):
            where = ConversationId(f"cnv_{name}")
            await own.log.apply(Keys(where), say(where, whose=whose[name]))

        async def ids(
            client: ClientId | None = None, user: UserId | None = None, after: str | None = None, limit: int = 100
        ) -> str:
            start = None if after is None else ConversationId(after)
            heads = await own.log.listed(client_id=client, user_id=user, after=start, limit=limit)
            return "".join(head.id[-1] for head in heads)

        assert await ids() == "abcde"
        assert (await ids(CLIENT), await ids(OTHER), await ids(CLIENT, USER)) == ("abde", "c", "ade")
        assert (await ids(user=USER), await ids(CLIENT, UserId("usr_none"))) == ("acde", "")
        assert (await ids(limit=2), await ids(after="cnv_b", limit=2), await ids(after="cnv_e")) == ("ab", "cd", "")
        assert (await ids(CLIENT, USER, "cnv_a", 1), await ids(CLIENT, limit=3)) == ("d", "abd")
        (head,) = await own.log.listed(client_id=OTHER)
        assert (head.client_id, head.last_seq) == (OTHER, 1)


async def what_may_go_one_day_is_found_oldest_first(make: StoreMaker) -> None:
    """Of whom only the newest event is left nothing may go."""
    async with tables(make) as own:
        for when, name in ((3, "c"), (1, "a"), (2, "b")):
            await speak(own.log, f"cnv_{name}", when=when)
        assert await own.log.prunable(before=NOW + 99, limit=9) == ()
        for name in ("a", "b", "c"):
            await speak(own.log, f"cnv_{name}", when=50)
        assert await own.log.prunable(before=NOW + 99, limit=9) == ("cnv_a", "cnv_b", "cnv_c")
        assert await own.log.prunable(before=NOW + 99, limit=2) == ("cnv_a", "cnv_b")
        assert await own.log.prunable(before=NOW + 3, limit=9) == ("cnv_a", "cnv_b")
        await speak(own.log, "cnv_a", when=60)
        await _prune(own.log, "cnv_a", 2, kept_from=50)
        await _prune(own.log, "cnv_b", 2, kept_from=50)
        assert await own.log.prunable(before=NOW + 50, limit=9) == ("cnv_c",)
        assert await own.log.prunable(before=NOW + 51, limit=9) == ("cnv_c", "cnv_a")
        await speak(own.log, "cnv_b", when=70)
        assert await own.log.prunable(before=NOW + 51, limit=9) == ("cnv_c", "cnv_a", "cnv_b")


async def what_is_pruned_is_never_read_again(make: StoreMaker) -> None:
    """Reading begins with the oldest one that is kept; the numbers of the others stay."""
    async with tables(make) as own:
        for n in range(1, 7):
            await speak(own.log, A, f"{n}", when=n)
        await _prune(own.log, A, 4, kept_from=4)
        for n in (7, 8):
            await speak(own.log, A, f"{n}", when=n)
        await _prune(own.log, A, 5, kept_from=5)
    async with tables(make) as own:
        for after, limit, expected, more in (
            (0, 99, ["5", "6", "7", "8"], False),
            (0, 2, ["5", "6"], True),
            (3, 1, ["5"], True),
            (4, 1, ["5"], True),
            (5, 99, ["6", "7", "8"], False),
            (8, 9, [], False),
        ):
            found = await own.log.read(A, after, limit)
            assert found is not None
            assert (texts(found.events), found.more) == (expected, more), f"after {after}, at most {limit}"
        for before, limit, expected in ((9, 99, ["5", "6", "7", "8"]), (9, 2, ["7", "8"]), (6, 9, ["5"]), (5, 9, [])):
            assert texts(await own.log.read_back(A, before, limit)) == expected, f"before {before}, at most {limit}"


async def pruning_touches_no_other_conversation(make: StoreMaker) -> None:
    """And a head in the same change that keeps all of its events keeps them."""
    async with tables(make) as own:
        for name in (A, B, A, B):
            await speak(own.log, name, name)

        def decide(loaded: Loaded) -> Change[None]:
            assert loaded.head is not None
            assert loaded.parent is not None
            return Change(None, (replace(loaded.head, first_seq=2), loaded.parent), prune=True)

        await own.log.apply(Keys(A, parent=B), decide)
        found = await own.log.read(A, 0, 9), await own.log.read(B, 0, 9)
        assert [one and len(one.events) for one in found] == [1, 2]


async def an_event_is_pruned_in_the_change_that_follows_it(make: StoreMaker) -> None:
    """Messages and prunings of one conversation, all at once: the newest ones are there in the end."""
    async with tables(make) as own:
        await speak(own.log, A, "0")

        def prune(loaded: Loaded) -> Change[None]:
            assert loaded.head is not None
            return Change(None, (replace(loaded.head, first_seq=loaded.head.last_seq),), prune=True)

        changes = [(say(A, f"{n}"), prune) for n in range(1, 20)]
        await asyncio.gather(*(own.log.apply(Keys(A), change) for pair in changes for change in pair))
        found = await own.log.read(A, 0, 99)
        assert found is not None
        kept = found.head.last_seq - found.head.first_seq + 1
        assert (found.head.last_seq, len(found.events), found.more) == (20, kept, False)
        assert texts(await own.log.read_back(A, 99, 99)) == texts(found.events)


async def pruning_goes_forward_and_says_so(make: StoreMaker) -> None:
    """Never the newest event, never back, and not unsaid."""
    async with tables(make) as own:
        for n in range(4):
            await speak(own.log, A, f"{n}")
        await _prune(own.log, A, 3)
        for first_seq, prune in ((5, True), (2, True), (2, False), (4, False)):
            change = _change(own.log, A, lambda head, to=first_seq: replace(head, first_seq=to), prune=prune)
            assert await code_of(change) == StoreMisused.code, f"first_seq {first_seq}, prune {prune}"
        found = await own.log.read(A, 0, 9)
        assert found is not None
        assert texts(found.events) == ["2", "3"]


async def _everything_of_a_user(own: CompanyTables, name: str, client: ClientId, user: UserId, message: str) -> None:
    """A Session, two conversations with a receipt, an acceptance and a note."""
    sid = SessionId(f"sid_{name}")
    await own.sessions.open(replace(session(key=name, sid=sid), client_id=client, user_id=user), forget_before=0)
    one, two = ConversationId(f"cnv_{name}1"), ConversationId(f"cnv_{name}2")
    key = (client, user, receipt_key(message)[2])
    await own.log.apply(Keys(receipt=key), say(one, receipt=True, whose=(client, user)))

    def decide(loaded: Loaded) -> Change[None]:
        said = say(two, whose=(client, user))(loaded)
        receipt = Receipt("ef" * 32, two, 201, Status.WORKING, Responder.AGENT)
        notes = (Note(NoteKind.MESSAGE, two, 1, 1),)
        return Change(None, said.heads, said.events, acceptance=receipt, notes=notes)

    await own.log.apply(Keys(acceptance=(one, EventId("evt_1"))), decide)


async def all_of_a_user_is_erased(make: StoreMaker) -> None:
    """Conversations, events, receipts, acceptances, notes, Sessions; of others nothing, though they read alike."""
    users = {"a": (CLIENT, USER), "b": (CLIENT, ROBIN), "c": (OTHER, USER)}
    async with tables(make) as own:
        for name, (client, user) in users.items():
            await _everything_of_a_user(own, name, client, user, "msg_1")
        await speak(own.log, "cnv_a1", "more")
        await own.sessions.open(session(key="gone", sid=SessionId("sid_gone")), forget_before=0)
        await own.sessions.end(CLIENT, SessionId("sid_gone"), NOW)
        with own.log.watch(ConversationId("cnv_a1")) as erased, own.log.watch(ConversationId("cnv_b1")) as other:
            assert await own.erase(CLIENT, USER) == Erased(conversations=2, events=3, sessions=2)
            assert await erased.wait(20)
            assert not await other.wait(0)
        assert await own.erase(CLIENT, USER) == Erased(0, 0, 0)
    async with tables(make) as own:
        assert [head.id for head in await own.log.listed()] == ["cnv_b1", "cnv_b2", "cnv_c1", "cnv_c2"]
        for name, (client, user) in users.items():
            there, one = name != "a", ConversationId(f"cnv_{name}1")
            keys = Keys(receipt=(client, user, receipt_key("msg_1")[2]), acceptance=(one, EventId("evt_1")))
            found = await own.log.apply(keys, _look)
            rows = (found.receipt, found.acceptance, found.head, found.accepted)
            assert [row is not None for row in rows] == [there] * 4, name
            assert (await own.log.read(one, 0, 9) is not None) is there
            assert len(await own.log.read_back(one, 99, 9)) == there
            assert (await own.sessions.load(client, SessionId(f"sid_{name}")) is not None) is there
        taken = [await own.log.take_note("teller", now=NOW, until=NOW + 9) for _ in range(3)]
        assert [one and one.note.conversation for one in taken] == ["cnv_b2", "cnv_c2", None]
        assert (await own.log.turns_pending(NOW + 9))[0] == 4


async def a_turn_of_an_erased_user_is_lost(make: StoreMaker) -> None:
    """What it still wants to write is refused, also when a new conversation has taken the old one's id."""
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        assert await own.log.journal(turn.lease, "step", b"1")
        await own.erase(CLIENT, USER)
        assert not await own.log.renew(turn.lease, NOW + 99)
        assert not await own.log.journal(turn.lease, "step", b"2")
        keys = Keys(A, lease=turn.lease)
        assert await own.log.apply(keys, _look) == Loaded(lease_lost=True)
        assert await code_of(own.log.apply(keys, lambda _: Change(None, ended=True))) == StoreMisused.code
        await own.log.release(turn.lease)
        assert (await own.log.turns_held(NOW), await lease(own.log)) == (0, None)
        await speak(own.log, A, "again")
        assert await code_of(own.log.apply(keys, reply(turn, "late"))) == StoreMisused.code
        fresh = await lease(own.log, "trn_2")
        assert fresh is not None
        assert (fresh.lease.turn_id, fresh.until_seq, dict(fresh.journal), fresh.head.failures) == ("trn_2", 1, {}, 1)


async def whoever_was_erased_may_come_again(make: StoreMaker) -> None:
    """With the same message id: nothing remembers it."""
    async with tables(make) as own:
        await begin(own.log, A, "msg_1")
        await own.sessions.open(session(key="ses_1"), forget_before=0)
        await own.erase(CLIENT, USER)
        assert await begin(own.log, B, "msg_1") == 1
        fresh = session(key="ses_2", seen=1)
        assert await own.sessions.open(fresh, forget_before=0) == fresh
        assert await own.sessions.load(CLIENT, SID) == fresh


async def a_user_is_erased_while_they_speak(make: StoreMaker) -> None:
    """Each message is either erased or begins a conversation anew: no event without a head, no number left out."""
    async with tables(make) as own:
        speaking = [speak(own.log, A, f"{n}") for n in range(20)]
        erasing = [own.erase(CLIENT, USER) for _ in range(3)]
        results = await asyncio.gather(*speaking[:10], erasing[0], *speaking[10:], *erasing[1:])
        last = await own.erase(CLIENT, USER)
        erased = [one for one in (*results, last) if isinstance(one, Erased)]
        assert sum(one.events for one in erased) == 20
        assert await own.log.read(A, 0, 99) is None
        assert await own.log.read_back(A, 99, 99) == ()


async def more_conversations_than_one_statement_takes_are_erased(make: StoreMaker) -> None:
    async with tables(make) as own:
        for n in range(150):
            await begin(own.log, f"cnv_{n}", f"msg_{n}")
        assert await own.erase(CLIENT, USER) == Erased(150, 150, 0)
        found = await asyncio.gather(*(own.log.apply(Keys(receipt=receipt_key(f"msg_{n}")), _look) for n in range(150)))
        assert {one.receipt for one in found} == {None}


async def two_companies_keep_apart(make: StoreMaker) -> None:
    """Neither lists nor erases what is the other's."""
    async with opened(make) as store:
        own, other = await store.tables(COMPANY), await store.tables(OTHER_COMPANY)
        for _ in range(2):
            await speak(own.log, A)
        await _change(own.log, A, lambda head: replace(head, queued_at=at()))
        await own.sessions.open(session(), forget_before=0)
        assert (await other.log.attention(9), await other.log.listed()) == ((), ())
        assert await other.log.prunable(before=NOW + 99, limit=9) == ()
        assert await other.erase(CLIENT, USER) == Erased(0, 0, 0)
        assert (len(await own.log.attention(9)), len(await own.log.listed())) == (1, 1)
        assert await own.sessions.load(CLIENT, SID) == session()


KEEPING_CASES = (
    who_waits_longest_comes_first,
    a_turn_leaves_those_who_wait_in_their_place,
    conversations_are_listed_by_their_ids,
    what_may_go_one_day_is_found_oldest_first,
    what_is_pruned_is_never_read_again,
    pruning_touches_no_other_conversation,
    an_event_is_pruned_in_the_change_that_follows_it,
    pruning_goes_forward_and_says_so,
    all_of_a_user_is_erased,
    a_turn_of_an_erased_user_is_lost,
    whoever_was_erased_may_come_again,
    a_user_is_erased_while_they_speak,
    more_conversations_than_one_statement_takes_are_erased,
    two_companies_keep_apart,
)

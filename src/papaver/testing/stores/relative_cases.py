"""The contract of changes of several conversations: Direct Conversations, their acceptance, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, NoteKind
from papaver.protocol.conversation.model import Responder, Role, Status
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.terms import ConversationId, EventId
from papaver.stores.faults import StoreMisused
from papaver.testing.stores.samples import (
    CLIENT,
    NOW,
    USER,
    StoreMaker,
    answer,
    at,
    begin,
    code_of,
    lease,
    message,
    receipt_key,
    speak,
    tables,
    texts,
)

__all__ = ["RELATIVE_CASES"]

A, B, C = ConversationId("cnv_a"), ConversationId("cnv_b"), ConversationId("cnv_c")
ASKED = (A, EventId("evt_asked"))


def _look(loaded: Loaded) -> Change[Loaded]:
    return Change(loaded)


def _receipt(conversation: ConversationId) -> Receipt:
    return Receipt("cd" * 32, conversation, 201, Status.WORKING, Responder.AGENT)


def accept(direct: ConversationId) -> Callable[[Loaded], Change[ConversationId]]:
    """Open a Direct Conversation of A, unless its request was accepted; the result is the one that is open."""

    def decide(loaded: Loaded) -> Change[ConversationId]:
        if loaded.accepted is not None:
            return Change(loaded.accepted.id)
        assert loaded.parent is not None
        opened = message(loaded.parent, f"opened {direct}", Role.COMPANY, at(2))
        parent = replace(loaded.parent, last_seq=loaded.parent.last_seq + 1, open_direct=direct, changed_at=at(2))
        fresh = Head(direct, CLIENT, USER, at(2), at(2), parent=A, last_seq=1, asked_seq=1)
        first = message(replace(fresh, last_seq=0), "hello, a person?", Role.USER, at(2))
        return Change(
            direct,
            (parent, fresh),
            ((A, parent.last_seq, opened), (direct, 1, first)),
            acceptance=_receipt(direct),
            notes=(Note(NoteKind.DIRECT_OPENED, direct, 1),),
        )

    return decide


async def two_conversations_change_at_once(make: StoreMaker) -> None:
    """A new one and a stored one: both heads, both events, and whoever watches either is woken."""
    async with tables(make) as own:
        await speak(own.log, A)
        with own.log.watch(A) as old, own.log.watch(B) as new, own.log.watch(C) as other:
            assert await own.log.apply(Keys(parent=A, acceptance=ASKED), accept(B)) == B
            assert await old.wait(20)
            assert await new.wait(20)
            assert not await other.wait(0)
    async with tables(make) as own:
        parent, direct = await own.log.read(A, 0, 9), await own.log.read(B, 0, 9)
        assert parent is not None
        assert direct is not None
        assert (parent.head.open_direct, texts(parent.events)) == (B, ["hello", "opened cnv_b"])
        assert (direct.head.parent, texts(direct.events)) == (A, ["hello, a person?"])


async def relatives_come_with_the_head(make: StoreMaker) -> None:
    """Whom the stored head names, only when they are asked for."""
    async with tables(make) as own:
        await speak(own.log, A)
        await own.log.apply(Keys(parent=A, acceptance=ASKED), accept(B))
        for id, parent, direct in ((A, None, B), (B, A, None)):
            found = await own.log.apply(Keys(id, relatives=True), _look)
            heads = [head and head.id for head in (found.head, found.parent, found.direct)]
            assert heads == [id, parent, direct]
            bare = await own.log.apply(Keys(id), _look)
            assert (bare.parent, bare.direct) == (None, None)
        assert await own.log.apply(Keys(C, relatives=True), _look) == Loaded()


async def a_relative_that_is_gone_is_none(make: StoreMaker) -> None:
    async with tables(make) as own:
        head = Head(B, CLIENT, USER, at(), at(), parent=A, open_direct=C)
        await own.log.apply(Keys(), lambda _: Change(None, (head,)))
        assert await own.log.apply(Keys(B, relatives=True), _look) == Loaded(head=head)


async def relatives_are_as_the_change_before_left_them(make: StoreMaker) -> None:
    """Changes of a parent, of its child and of both at once: none of them undoes another one."""

    def count(loaded: Loaded) -> Change[None]:
        found = (loaded.head, loaded.parent, loaded.direct)
        heads = [replace(head, failures=head.failures + 1) for head in found if head is not None]
        return Change(None, tuple(heads))

    async with tables(make) as own:
        await speak(own.log, A)
        await own.log.apply(Keys(parent=A, acceptance=ASKED), accept(B))
        every = [Keys(A), Keys(B), Keys(A, relatives=True), Keys(B, relatives=True)] * 10
        await asyncio.gather(*(own.log.apply(keys, count) for keys in every))
        found = await own.log.apply(Keys(B, relatives=True), _look)
        assert [head and head.failures for head in (found.head, found.parent)] == [30, 30]


async def an_acceptance_is_found_by_its_request(make: StoreMaker) -> None:
    """With the head that it names; of another request of the same parent, or another parent's, there is none."""
    async with tables(make) as own:
        await speak(own.log, A)
        assert await own.log.apply(Keys(acceptance=ASKED), _look) == Loaded()
        await own.log.apply(Keys(parent=A, acceptance=ASKED), accept(B))
    async with tables(make) as own:
        found = await own.log.apply(Keys(acceptance=ASKED), _look)
        assert (found.acceptance, found.receipt, found.head) == (_receipt(B), None, None)
        assert found.accepted is not None
        assert (found.accepted.id, found.accepted.parent) == (B, A)
        for key in ((A, EventId("evt_other")), (C, ASKED[1])):
            assert await own.log.apply(Keys(acceptance=key), _look) == Loaded()


async def one_request_is_accepted_once(make: StoreMaker) -> None:
    """Sixteen at once open one Direct Conversation (8.10; readings 23)."""
    async with tables(make) as own:
        await speak(own.log, A)
        names = [ConversationId(f"cnv_b{n}") for n in range(16)]
        keys = Keys(parent=A, acceptance=ASKED)
        got = set(await asyncio.gather(*(own.log.apply(keys, accept(name)) for name in names)))
        assert len(got) == 1
        assert [await own.log.read(name, 0, 1) is not None for name in names].count(True) == 1
        parent = await own.log.read(A, 0, 9)
        assert parent is not None
        assert texts(parent.events) == ["hello", f"opened {got.pop()}"]


async def an_acceptance_and_a_messages_receipt_never_meet(make: StoreMaker) -> None:
    """Also where the parts of their keys read alike."""
    async with tables(make) as own:
        await begin(own.log, A, "msg_1")
        client, user, name = receipt_key("msg_1")
        for first, second in ((client, f"{user}{name}"), (f"{client}{user}", name), (client, f"{len(user)}:{user}")):
            key = ConversationId(first), EventId(second)
            assert (await own.log.apply(Keys(acceptance=key), _look)).acceptance is None
        both = Keys(acceptance=ASKED, receipt=receipt_key("msg_2"))
        await own.log.apply(both, lambda _: Change(None, acceptance=_receipt(A)))
        found = await own.log.apply(both, _look)
        assert (found.acceptance, found.receipt, found.head) == (_receipt(A), None, None)
        assert found.accepted is not None


async def an_acceptance_is_written_once(make: StoreMaker) -> None:
    """Under the key that was loaded."""
    async with tables(make) as own:
        await speak(own.log, A)
        keys = Keys(parent=A, acceptance=ASKED)
        await own.log.apply(keys, accept(B))
        twice = own.log.apply(keys, lambda _: Change(None, acceptance=_receipt(C)))
        assert await code_of(twice) == StoreMisused.code
        without = own.log.apply(Keys(A), lambda _: Change(None, acceptance=_receipt(C)))
        assert await code_of(without) == StoreMisused.code
        assert (await own.log.apply(keys, _look)).acceptance == _receipt(B)


async def a_turn_that_lost_its_lease_accepts_nothing(make: StoreMaker) -> None:
    async with tables(make) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        await answer(own.log, turn)
        keys = Keys(A, lease=turn.lease, acceptance=ASKED)
        assert await code_of(own.log.apply(keys, lambda _: Change(None, acceptance=_receipt(A)))) == StoreMisused.code
        assert (await own.log.apply(Keys(acceptance=ASKED), _look)).acceptance is None


async def a_turn_of_one_changes_its_relatives(make: StoreMaker) -> None:
    """The turn of the child ends, and the parent is told: the parent's own turn goes on undisturbed."""

    def close(loaded: Loaded) -> Change[None]:
        child, parent = loaded.head, loaded.parent
        assert child is not None
        assert parent is not None
        closed = message(parent, "closed", Role.COMPANY, at(3))
        heads = (
            replace(child, status=Status.CLOSED, answered_seq=1, failures=0),
            replace(parent, last_seq=parent.last_seq + 1, open_direct=None),
        )
        return Change(None, heads, ((A, parent.last_seq + 1, closed),), ended=True)

    async with tables(make) as own:
        await speak(own.log, A)
        held = await lease(own.log, "trn_a")
        await own.log.apply(Keys(parent=A, acceptance=ASKED), accept(B))
        turn = await lease(own.log, "trn_b", when=3)
        assert held is not None
        assert turn is not None
        assert (held.lease.conversation_id, turn.lease.conversation_id) == (A, B)
        await own.log.apply(Keys(B, lease=turn.lease, relatives=True), close)
        assert not await own.log.renew(turn.lease, NOW + 99)
        assert await own.log.renew(held.lease, NOW + 99)
        found = await own.log.apply(Keys(A, relatives=True), _look)
        assert found.head is not None
        assert (found.head.last_seq, found.head.open_direct, found.direct) == (3, None, None)


RELATIVE_CASES = (
    two_conversations_change_at_once,
    relatives_come_with_the_head,
    a_relative_that_is_gone_is_none,
    relatives_are_as_the_change_before_left_them,
    an_acceptance_is_found_by_its_request,
    one_request_is_accepted_once,
    an_acceptance_and_a_messages_receipt_never_meet,
    an_acceptance_is_written_once,
    a_turn_that_lost_its_lease_accepts_nothing,
    a_turn_of_one_changes_its_relatives,
)

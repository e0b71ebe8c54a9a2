"""The contract of the other tables: Sessions, clients, documents, secrets, and that two Companies share nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal, cast

from papaver.ports.company import ClientRow, CompanyTables, DocumentRow
from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey
from papaver.protocol.terms import ClientId, ConversationId, SessionId, UserId
from papaver.testing.stores.samples import (
    CLIENT,
    COMPANY,
    NOW,
    OTHER_COMPANY,
    SID,
    USER,
    StoreMaker,
    begin,
    code_of,
    lease,
    opened,
    receipt_key,
    session,
    speak,
    tables,
)

__all__ = ["SHARED_CASES", "TABLE_CASES"]

A = ConversationId("cnv_a")


async def a_session_is_made_once(make: StoreMaker) -> None:
    async with tables(make) as own:
        first = await own.sessions.open(session(key="ses_1"), forget_before=NOW - 60)
        again = await own.sessions.open(session(key="ses_2", seen=30), forget_before=NOW - 60)
        assert (first, again) == (session(key="ses_1"), session(key="ses_1"))
        assert await own.sessions.load(CLIENT, SID) == first


async def a_session_is_seen_once_a_minute(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.sessions.open(session(), forget_before=0)
        for seen, noted in ((59, 0), (60, 60), (100, 60), (30, 60), (120, 120)):
            row = await own.sessions.open(session(key="ses_2", seen=seen), forget_before=0)
            assert (row.key, row.seen_at) == ("ses_1", NOW + noted)
            assert await own.sessions.load(CLIENT, SID) == row


async def a_forgotten_session_starts_anew(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.sessions.open(session(), forget_before=0)
        fresh = replace(session(key="ses_2", seen=90), user_id=UserId("usr_robin"))
        assert await own.sessions.open(fresh, forget_before=NOW + 1) == fresh
        assert await own.sessions.load(CLIENT, SID) == fresh


async def a_user_and_an_agent_may_have_any_characters(make: StoreMaker) -> None:
    async with tables(make) as own:
        names = ["a\0b", "a\\0b", "\\", "\0", "\\\0", "\N{GRINNING FACE}\n"]
        rows = [
            replace(session(sid=SessionId(f"sid_{n}"), agent=f"agt{name}"), user_id=UserId(name))
            for n, name in enumerate(names)
        ]
        for row in rows:
            await own.sessions.open(row, forget_before=0)
        assert [await own.sessions.load(CLIENT, row.sid) for row in rows] == rows
        assert [await own.sessions.open(row, forget_before=0) for row in rows] == rows
        for row in rows:
            assert await own.sessions.end_user(CLIENT, row.user_id, NOW) == 1


async def a_session_of_another_user_is_returned_as_it_is(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.sessions.open(session(agent="agt_1"), forget_before=0)
        for other in (replace(session(seen=90), user_id=UserId("usr_robin")), session(seen=90, agent="agt_2")):
            assert await own.sessions.open(other, forget_before=0) == session(agent="agt_1")


async def an_ended_session_stays_ended(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.sessions.open(session(), forget_before=0)
        assert await own.sessions.end(CLIENT, SID, NOW + 5)
        assert not await own.sessions.end(CLIENT, SID, NOW + 6)
        row = await own.sessions.open(session(key="ses_2", seen=90_000), forget_before=NOW + 80_000)
        assert row == replace(session(), ended_at=NOW + 5)
        assert not await own.sessions.end(CLIENT, SessionId("sid_none"), NOW)


async def all_sessions_of_a_user_end(make: StoreMaker) -> None:
    async with tables(make) as own:
        for n in range(3):
            await own.sessions.open(session(sid=SessionId(f"sid_{n}")), forget_before=0)
        robin = replace(session(sid=SessionId("sid_9")), user_id=UserId("usr_robin"))
        await own.sessions.open(robin, forget_before=0)
        await own.sessions.end(CLIENT, SessionId("sid_0"), NOW)
        assert await own.sessions.end_user(CLIENT, USER, NOW + 1) == 2
        assert await own.sessions.load(CLIENT, robin.sid) == robin


async def old_sessions_are_swept(make: StoreMaker) -> None:
    async with tables(make) as own:
        for n in range(6):
            await own.sessions.open(session(sid=SessionId(f"sid_{n}"), seen=n), forget_before=0)
        for n in (1, 4):
            await own.sessions.end(CLIENT, SessionId(f"sid_{n}"), NOW + n)
        assert await own.sessions.sweep(forget_before=NOW + 3, ended_before=NOW + 2) == 3
        left = [await own.sessions.load(CLIENT, SessionId(f"sid_{n}")) is not None for n in range(6)]
        assert left == [False, False, False, True, True, True]
        assert await own.sessions.sweep(forget_before=NOW + 3, ended_before=NOW + 2) == 0


async def an_operators_verdict_holds_from_the_next_question_on(make: StoreMaker) -> None:
    async with tables(make) as own:
        verdicts = [await own.clients.verdict(CLIENT)]
        words: tuple[Literal["allowed", "blocked"] | None, ...] = ("allowed", "blocked", None)
        for verdict in words:
            await own.clients.judge(CLIENT, verdict)
            verdicts.append(await own.clients.verdict(CLIENT))
        assert verdicts == [None, "allowed", "blocked", None]


async def clients_are_listed_with_what_is_known(make: StoreMaker) -> None:
    async with tables(make) as own:
        await own.clients.seen(CLIENT, NOW)
        await own.clients.judge(CLIENT, "blocked")
        await own.clients.seen(CLIENT, NOW + 60)
        other = ClientRow(ClientId("https://a.example/a"), "allowed")
        await own.clients.judge(other.client_id, "allowed")
        assert await own.clients.clients() == (other, ClientRow(CLIENT, "blocked", NOW + 60))


async def a_document_is_kept_and_replaced(make: StoreMaker) -> None:
    async with tables(make) as own:
        row = DocumentRow("https://agent.example/jwks", b"{}", NOW, NOW + 60)
        assert await own.clients.load_document(row.url) is None
        for kept in (row, replace(row, body=b'{"keys":[]}', fresh_until=NOW + 90)):
            await own.clients.keep_document(kept)
            assert await own.clients.load_document(row.url) == kept


async def old_documents_and_clients_are_swept(make: StoreMaker) -> None:
    """Strangers come and go; what an operator said of a client stays."""
    async with tables(make) as own:
        for n in range(120):
            await own.clients.keep_document(DocumentRow(f"https://s{n}.example/", b"{}", NOW + n, NOW + 999))
        for name, seen, verdict in (("old", 1, None), ("new", 9, None), ("judged", 1, "blocked"), ("unseen", 0, None)):
            client = ClientId(f"https://{name}.example/")
            if seen:
                await own.clients.seen(client, NOW + seen)
            await own.clients.judge(client, cast("Literal['blocked'] | None", verdict))
        assert await own.clients.sweep(fetched_before=NOW + 110, seen_before=NOW + 5) == 112
        left = [await own.clients.load_document(f"https://s{n}.example/") is not None for n in range(120)]
        assert left == [False] * 110 + [True] * 10
        assert [row.client_id for row in await own.clients.clients()] == [
            "https://judged.example/",
            "https://new.example/",
        ]
        assert await own.clients.sweep(fetched_before=NOW + 110, seen_before=NOW + 5) == 0
        await own.clients.drop_document("https://s119.example/")
        await own.clients.drop_document("https://s119.example/")
        assert await own.clients.load_document("https://s119.example/") is None


@asynccontextmanager
async def two_companies(make: StoreMaker) -> AsyncGenerator[tuple[CompanyTables, CompanyTables]]:
    async with opened(make) as store:
        yield await store.tables(COMPANY), await store.tables(OTHER_COMPANY)


async def two_companies_share_no_row(make: StoreMaker) -> None:
    def look(loaded: Loaded) -> Change[Loaded]:
        return Change(loaded)

    document = DocumentRow("https://agent.example/jwks", b"{}", NOW, NOW + 60)
    async with two_companies(make) as (own, other):
        with other.log.watch(A) as watch, other.log.watch_turns() as turns:
            await begin(own.log, A, "msg_1", jti="jti_1")
            assert not await watch.wait(0.01)
            assert not await turns.wait(0)
        await own.sessions.open(session(), forget_before=0)
        await own.clients.judge(CLIENT, "blocked")
        await own.clients.keep_document(document)
        replay = ReplayKey(CLIENT, "jti_1", NOW + 60)
        keys = Keys(A, receipt=receipt_key("msg_1"), replay=replay, session=(CLIENT, SID))
        assert await other.log.apply(keys, look) == Loaded()
        assert (await own.log.apply(keys, look)).replayed
        assert await other.log.read(A, 0, 9) is None
        assert await other.log.read_back(A, 9, 9) == ()
        assert await other.log.conversations(idle_since=NOW + 9, limit=9) == ()
        assert (await other.log.turns_pending(NOW), await lease(other.log)) == ((0, NOW), None)
        assert await other.clients.verdict(CLIENT) is None
        assert (await other.clients.clients(), await other.clients.load_document(document.url)) == ((), None)
        assert not await other.sessions.end(CLIENT, SID, NOW)
        assert await other.sessions.end_user(CLIENT, USER, NOW) == 0
        assert await other.clients.sweep(fetched_before=NOW + 9, seen_before=NOW + 9) == 0
        await other.clients.drop_document(document.url)
        assert await own.clients.load_document(document.url) == document
        assert await other.sessions.sweep(forget_before=NOW + 9, ended_before=NOW + 9) == 0
        assert await own.sessions.load(CLIENT, SID) == session()


async def a_secret_is_made_once_for_each_company(make: StoreMaker) -> None:
    async with two_companies(make) as (own, other):
        before = (own.secret, other.secret)
    async with two_companies(make) as (own, other):
        assert (own.secret, other.secret) == before
        assert own.secret != other.secret
        assert len(own.secret) == 32


async def a_store_says_whether_it_works(make: StoreMaker) -> None:
    store = make()
    await store.open()
    await store.probe()
    assert store.holder
    await store.close()
    assert await code_of(store.probe()) == "temporarily_unavailable"


TABLE_CASES = (
    a_session_is_made_once,
    a_session_is_seen_once_a_minute,
    a_forgotten_session_starts_anew,
    a_user_and_an_agent_may_have_any_characters,
    a_session_of_another_user_is_returned_as_it_is,
    an_ended_session_stays_ended,
    all_sessions_of_a_user_end,
    old_sessions_are_swept,
    an_operators_verdict_holds_from_the_next_question_on,
    clients_are_listed_with_what_is_known,
    a_document_is_kept_and_replaced,
    old_documents_and_clients_are_swept,
    two_companies_share_no_row,
    a_secret_is_made_once_for_each_company,
    a_store_says_whether_it_works,
)


@asynccontextmanager
async def two_stores(make: StoreMaker) -> AsyncGenerator[tuple[CompanyTables, CompanyTables]]:
    async with tables(make) as one, tables(make) as two:
        yield one, two


async def a_verdict_is_seen_by_the_other_store_at_once(make: StoreMaker) -> None:
    async with two_stores(make) as (one, two):
        words: tuple[Literal["allowed", "blocked"] | None, ...] = ("blocked", None, "allowed")
        for verdict in words:
            await one.clients.judge(CLIENT, verdict)
            assert await two.clients.verdict(CLIENT) == verdict


async def a_change_wakes_a_reader_of_the_other_store(make: StoreMaker) -> None:
    async with two_stores(make) as (one, two):
        with two.log.watch(A) as watch, two.log.watch_turns() as turns:
            await speak(one.log, A)
            assert await watch.wait(20)
            assert await turns.wait(20)
            found = await two.log.read(A, 0, 9)
            assert found is not None
            assert found.head.last_seq == 1


async def a_turn_is_held_against_the_other_store(make: StoreMaker) -> None:
    async with opened(make) as first, opened(make) as second:
        one, two = await first.tables(COMPANY), await second.tables(COMPANY)
        await speak(one.log, A)
        turn = await lease(one.log, holder=first.holder)
        assert turn is not None
        assert first.holder != second.holder
        assert await lease(two.log, holder=second.holder) is None
        with two.log.watch_turns() as watch:
            await one.log.release(turn.lease)
            assert await watch.wait(20)
        assert await lease(two.log, holder=second.holder) is not None


async def secrets_agree_between_stores(make: StoreMaker) -> None:
    async with two_stores(make) as (one, two):
        assert one.secret == two.secret


SHARED_CASES = (
    a_verdict_is_seen_by_the_other_store_at_once,
    a_change_wakes_a_reader_of_the_other_store,
    a_turn_is_held_against_the_other_store,
    secrets_agree_between_stores,
)

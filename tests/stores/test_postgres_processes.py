"""Several replicas on one schema: nothing is lost or doubled, everyone wakes, the dead hold nothing."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from papaver.ports.grants import GrantChange, GrantKeys, digest
from papaver.protocol.conversation.change import Change, Keys, Note, NoteKind
from papaver.protocol.terms import ConversationId
from papaver.stores.crash import CRASH_POINTS, GRANT_CRASH_POINTS
from papaver.stores.postgres import PostgresStore
from papaver.testing.stores.grant_samples import ACCOUNT, grant_row, refresh, sign_in, spent_id
from papaver.testing.stores.samples import COMPANY, NOW, lease, opened, speak, tables, texts
from tests.stores.children import Child, children, hear
from tests.stores.postgres import DSN

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs("postgres"),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
A = ConversationId("cnv_a")


def replica(job: str, schema: str, *arguments: str, **variables: str) -> Child:
    variables = {"PAPAVER_POSTGRES_URL": DSN, "PAPAVER_REDIS_URL": "", **variables}
    return Child(f"{job}_in_postgres", Path(schema), *arguments, **variables)


async def go_on(started: list[Child]) -> None:
    """All at once, as soon as all of them are open."""
    assert [await hear(child) for child in started] == ["open"] * len(started)
    for child in started:
        child.tell()


@pytest.mark.requirement("papaver-120")
@pytest.mark.parametrize("conversations", [1, 64])
async def test_three_replicas_lose_and_double_nothing(schema: str, conversations: int) -> None:
    """Three starters on no schema at all, 16 clients each; every second message is sent by all of them at once."""
    messages = 12
    started = [replica("talk", schema, f"{n}", f"{conversations}", f"{messages}") for n in range(3)]
    with children(*started):
        await go_on(started)
        heard: list[list[tuple[str, int]]] = [await hear(child) for child in started]
        assert [child.end() for child in started] == [0] * 3
    said = Counter((conversation, seq) for own in heard for conversation, seq in own)
    assert sum(said.values()) == 16 * messages // 2 * 3 + 16 * messages // 2
    assert set(said.values()) == {1}, "two messages got one sequence number"
    newest = Counter(conversation for conversation, _ in said)
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        for conversation, count in newest.items():
            found = await own.log.read(ConversationId(conversation), 0, 9999)
            assert found is not None
            assert (found.head.last_seq, len(found.events)) == (count, count), "a sequence number was left out"


async def test_three_replicas_answer_each_turn_once(schema: str) -> None:
    """16 runners in each of three replicas, 40 due turns."""
    names = [f"cnv_{n}" for n in range(40)]
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        for name in names:
            await speak(own.log, name)
        started = [replica("work", schema, f"{n}") for n in range(3)]
        with children(*started):
            await go_on(started)
            heard: list[list[str]] = [await hear(child) for child in started]
            assert [child.end() for child in started] == [0] * 3
        answered = [name for names_of_one in heard for name in names_of_one]
        assert sorted(answered) == sorted(names)
        found = await own.log.read(ConversationId("cnv_7"), 0, 9)
        assert found is not None
        assert texts(found.events) == ["hello", "hi", "StateChanged"]


async def test_a_commit_wakes_a_reader_of_another_replica(schema: str) -> None:
    """Who waits for the conversation, who waits for turns, and who waits for what is to be told."""
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        with children(replica("wake", schema)) as (child,):
            assert await hear(child) == "open"
            with own.log.watch(A) as watch, own.log.watch_turns() as turns, own.log.watch_notes() as notes:
                assert not await watch.wait(0.06)
                child.tell()
                assert await watch.wait(20)
                assert await turns.wait(20)
                assert await notes.wait(20)
                assert await own.log.read(A, 0, 1) is not None


@pytest.mark.requirement("papaver-123")
async def test_a_killed_holders_turn_and_note_are_taken_over(schema: str) -> None:
    """They would be held for an hour; the lock on its name ended with it, and whoever waits is woken."""
    async with opened(lambda: PostgresStore(DSN, schema=schema)) as store:
        own = await store.tables(COMPANY)
        await speak(own.log, A)
        told = Note(NoteKind.MESSAGE, A, 1, 1)
        await own.log.apply(Keys(), lambda _: Change(None, notes=(told,)))
        with (
            children(replica("hold", schema, "trn_lost"), replica("keep_note", schema)) as (turns, notes),
            own.log.watch_turns() as turn_due,
            own.log.watch_notes() as note_due,
        ):
            assert await hear(turns) == "trn_lost"
            number = await hear(notes)
            assert await lease(own.log, "trn_2", holder=store.holder) is None
            assert await own.log.take_note(store.holder, now=NOW, until=NOW + 9) is None
            assert await own.log.turns_pending(NOW + 1) == (0, NOW + 1)
            assert await own.log.turns_held(NOW + 1) == 1
            assert [turns.kill(), notes.kill()] == [-signal.SIGKILL] * 2
            while (turn := await lease(own.log, "trn_2", holder=store.holder)) is None:
                assert await turn_due.wait(20)
            assert (turn.lease.turn_id, turn.lease.token, turn.head.failures) == ("trn_lost", 2, 2)
            assert dict(turn.journal) == {"step": b"done"}
            while (note := await own.log.take_note(store.holder, now=NOW, until=NOW + 9)) is None:
                assert await note_due.wait(20)
            assert (note.n, note.attempts, note.note) == (number, 2, told)


async def test_a_replica_that_died_before_holds_nothing(schema: str) -> None:
    """Whoever opens the store after it need not wait until the dead is believed dead."""
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        await speak(own.log, A)
    with children(replica("hold", schema, "trn_lost")) as (child,):
        assert await hear(child) == "trn_lost"
        child.kill()
    async with opened(lambda: PostgresStore(DSN, schema=schema)) as store:
        own = await store.tables(COMPANY)
        with own.log.watch_turns() as watch:
            while (turn := await lease(own.log, "trn_2", holder=store.holder)) is None:
                assert await watch.wait(20)
        assert turn.lease.turn_id == "trn_lost"


async def test_a_turn_passes_every_crash_point(schema: str, tmp_path: Path) -> None:
    """Each step before and after its COMMIT, in the order that is exported."""
    log = tmp_path / "names"
    with children(replica("journey", schema, PAPAVER_CRASH_LOG=str(log))) as (child,):
        assert [await hear(child) for _ in range(4)] == ["accept", "lease", "journal", "finish"]
        assert child.end() == 0
    assert tuple(log.read_text().splitlines()) == CRASH_POINTS


@pytest.mark.parametrize("name", CRASH_POINTS)
async def test_a_kill_leaves_all_of_a_step_or_nothing(schema: str, name: str) -> None:
    """What was told is there; the step that was committed is there, too; the journey then ends with one answer."""
    steps = ["accept", "lease", "journal", "finish"]
    step, side = name.split(".")
    with children(replica("journey", schema, PAPAVER_CRASH_AT=name)) as (child,):
        told = [await hear(child) for _ in range(steps.index(step) + 1)]
        assert told == [*steps[: steps.index(step)], None]
        assert child.end() == -signal.SIGKILL
    durable = steps.index(step) + (side == "after-commit")
    async with opened(lambda: PostgresStore(DSN, schema=schema)) as store:
        own = await store.tables(COMPANY)
        found = await own.log.read(A, 0, 9)
        assert (found is not None) == (durable >= 1)
        if found is not None:
            assert found.head.failures == (1 if durable in (2, 3) else 0)
            assert len(found.events) == (3 if durable == 4 else 1)
        if durable in (2, 3):
            with own.log.watch_turns() as watch:
                while (turn := await lease(own.log, "trn_2", holder=store.holder)) is None:
                    assert await watch.wait(20)
                assert (turn.lease.turn_id, dict(turn.journal)) == ("trn_1", {"step": b"done"} if durable == 3 else {})
    with children(replica("journey", schema)) as (child,):
        while await hear(child) is not None:
            pass
        assert child.end() == 0
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        found = await own.log.read(A, 0, 9)
        assert found is not None
        assert texts(found.events) == ["hello", "hi", "StateChanged"]


@pytest.mark.parametrize("name", GRANT_CRASH_POINTS)
async def test_a_kill_leaves_the_old_refresh_token_or_the_new_one(schema: str, name: str) -> None:
    """With the id that it used up and the access token, or none of them; the grant goes on from there."""
    done = name == "grant.after-commit"
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        await sign_in(own.grants, grant_row())
    with children(replica("rotate", schema, "a", "1", PAPAVER_CRASH_AT=name)) as (child,):
        assert await hear(child) == "open"
        child.tell()
        assert await hear(child) is None
        assert child.end() == -signal.SIGKILL
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        keys = GrantKeys(refresh=digest("a.0"), spent=(spent_id("jti_a_0"),))
        found = await own.grants.apply(keys, lambda loaded: GrantChange(loaded))
        assert (found.grant is not None, found.spent) == (done, keys.spent if done else ())
        assert (await own.grants.access(digest("a.0.access")) is not None) is done
        assert await refresh(own.grants, "a.0" if done else "gra_1.1", "next") == "done"


async def test_three_replicas_rotate_one_refresh_token(schema: str) -> None:
    """Each rotation begins where another one ended: no token is followed by two."""
    steps = 20
    async with tables(lambda: PostgresStore(DSN, schema=schema)) as own:
        await sign_in(own.grants, grant_row())
        started = [replica("rotate", schema, f"{n}", f"{steps}") for n in range(3)]
        with children(*started):
            await go_on(started)
            rotations: dict[str, str] = {}
            for child in started:
                rotations.update([await hear(child) for _ in range(steps)])
            assert [child.end() for child in started] == [0] * 3
        token, length = grant_row().current, 0
        while token in rotations:
            token, length = rotations[token], length + 1
        assert length == 3 * steps
        (grant,) = await own.grants.grants(ACCOUNT)
        assert grant.current == token

"""Several processes on one file or database: nothing is lost or doubled, everyone wakes, the dead hold nothing."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import pytest

from papaver.ports.company import ConversationLog
from papaver.ports.grants import GrantChange, GrantKeys, digest
from papaver.ports.personal_agent import Vault
from papaver.protocol.conversation.change import Change, Keys, Note, NoteKind
from papaver.protocol.terms import ConversationId
from papaver.stores.crash import CRASH_POINTS, GRANT_CRASH_POINTS
from papaver.stores.postgres import PostgresVault, VaultKey
from papaver.stores.sqlite import SqliteStore, SqliteVault
from papaver.testing.stores.grant_samples import ACCOUNT, grant_row, refresh, sign_in, spent_id
from papaver.testing.stores.samples import COMPANY, NOW, lease, opened, speak, tables, texts
from papaver.testing.vaults import opened_vault
from tests.stores.children import Child, children, hear
from tests.stores.postgres import DSN

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
A = ConversationId("cnv_a")


@pytest.mark.parametrize("conversations", [1, 64])
async def test_four_processes_lose_and_double_nothing(tmp_path: Path, conversations: int) -> None:
    """Four starters on a fresh file, 16 clients each; every second message is sent by all of them at once."""
    path, messages = tmp_path / "store.db", 20
    started = [Child("talk", path, f"{n}", f"{conversations}", f"{messages}") for n in range(4)]
    with children(*started):
        assert [await hear(child) for child in started] == ["open"] * 4
        for child in started:
            child.tell()
        heard: list[list[tuple[str, int]]] = [await hear(child) for child in started]
        assert [child.end() for child in started] == [0] * 4
    said = Counter((conversation, seq) for own in heard for conversation, seq in own)
    assert sum(said.values()) == 16 * messages // 2 * 4 + 16 * messages // 2
    assert set(said.values()) == {1}, "two messages got one sequence number"
    newest = Counter(conversation for conversation, _ in said)
    assert max(seq for _, seq in said) == max(newest.values()), "a sequence number was left out"
    async with tables(lambda: SqliteStore(path)) as own:
        for conversation, count in newest.items():
            found = await own.log.read(ConversationId(conversation), 0, 9999)
            assert found is not None
            assert (found.head.last_seq, len(found.events)) == (count, count)


async def test_four_processes_answer_each_turn_once(tmp_path: Path) -> None:
    """16 runners in each of four processes, 40 due turns."""
    path = tmp_path / "store.db"
    names = [f"cnv_{n}" for n in range(40)]
    async with tables(lambda: SqliteStore(path)) as own:
        for name in names:
            await speak(own.log, name)
        started = [Child("work", path, f"{n}") for n in range(4)]
        with children(*started):
            assert [await hear(child) for child in started] == ["open"] * 4
            for child in started:
                child.tell()
            heard: list[list[str]] = [await hear(child) for child in started]
            assert [child.end() for child in started] == [0] * 4
        answered = [name for names_of_one in heard for name in names_of_one]
        assert sorted(answered) == sorted(names)
        found = await own.log.read(ConversationId("cnv_7"), 0, 9)
        assert found is not None
        assert texts(found.events) == ["hello", "hi", "StateChanged"]


async def test_a_commit_wakes_a_reader_of_another_process(tmp_path: Path) -> None:
    """Who waits for the conversation, who waits for turns, and who waits for what is to be told."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        with children(Child("wake", path)) as (child,):
            assert await hear(child) == "open"
            with own.log.watch(A) as watch, own.log.watch_turns() as turns, own.log.watch_notes() as notes:
                assert not await watch.wait(0.06)
                child.tell()
                assert await watch.wait(20)
                assert await turns.wait(20)
                assert await notes.wait(20)
                assert await own.log.read(A, 0, 1) is not None


async def test_a_killed_holders_turn_is_taken_over_at_once(tmp_path: Path) -> None:
    """Its lease would last for an hour; the lock on its name ended with it, and the runners are woken."""
    path = tmp_path / "store.db"
    async with opened(lambda: SqliteStore(path)) as store:
        own = await store.tables(COMPANY)
        await speak(own.log, A)
        with children(Child("hold", path, "trn_lost")) as (child,), own.log.watch_turns() as watch:
            assert await hear(child) == "trn_lost"
            assert await lease(own.log, "trn_2", holder=store.holder) is None
            assert await own.log.turns_pending(NOW + 1) == (0, NOW + 1)
            await watch.wait(0)
            assert child.kill() == -signal.SIGKILL
            assert await watch.wait(20)
            turn = await lease(own.log, "trn_2", holder=store.holder)
            assert turn is not None
            assert (turn.lease.turn_id, turn.lease.token, turn.head.failures) == ("trn_lost", 2, 2)
            assert dict(turn.journal) == {"step": b"done"}


async def _tell(log: ConversationLog, names: list[str], seqs: int) -> None:
    notes = [Note(NoteKind.MESSAGE, ConversationId(name), seq, seq) for seq in range(1, seqs + 1) for name in names]
    await log.apply(Keys(), lambda _: Change(None, notes=tuple(notes)))


async def test_a_killed_holders_note_is_told_again_at_once(tmp_path: Path) -> None:
    """Its hold would last for an hour; those behind it of the same conversation wait no longer either."""
    path = tmp_path / "store.db"
    async with opened(lambda: SqliteStore(path)) as store:
        own = await store.tables(COMPANY)
        await _tell(own.log, [A], 2)
        with children(Child("keep_note", path)) as (child,):
            number = await hear(child)
            assert await own.log.take_note(store.holder, now=NOW, until=NOW + 9) is None
            assert child.kill() == -signal.SIGKILL
            for seq in (1, 2):
                found = await own.log.take_note(store.holder, now=NOW, until=NOW + 9)
                assert found is not None
                assert (found.note.seq, found.attempts, found.n - number) == (seq, 3 - seq, seq - 1)
                await own.log.done_note(found)


async def test_three_processes_tell_each_note_once(tmp_path: Path) -> None:
    """Four tellers in each of three processes; each conversation in its order."""
    path, names = tmp_path / "store.db", [f"cnv_{n}" for n in range(40)]
    async with tables(lambda: SqliteStore(path)) as own:
        await _tell(own.log, names, 3)
        started = [Child("tell_notes", path) for _ in range(3)]
        with children(*started):
            assert [await hear(child) for child in started] == ["open"] * 3
            for child in started:
                child.tell()
            heard: list[list[tuple[str, int]]] = [await hear(child) for child in started]
            assert [child.end() for child in started] == [0] * 3
        told = [(name, seq) for one in heard for name, seq in one]
        assert sorted(told) == sorted((name, seq) for name in names for seq in (1, 2, 3))
        for one in heard:
            assert all(
                [seq for name, seq in one if name == own_name] == sorted(seq for name, seq in one if name == own_name)
                for own_name in names
            )


async def test_a_closed_store_holds_no_turn(tmp_path: Path) -> None:
    """A process that went in order without ending its turns holds them no longer than a killed one."""
    path = tmp_path / "store.db"
    async with opened(lambda: SqliteStore(path)) as store:
        own = await store.tables(COMPANY)
        await speak(own.log, A)
        assert await lease(own.log, "trn_1", holder=store.holder, lasts=3600) is not None
    async with tables(lambda: SqliteStore(path)) as own:
        turn = await lease(own.log, "trn_2")
        assert turn is not None
        assert turn.lease.turn_id == "trn_1"


async def test_a_turn_passes_every_crash_point(tmp_path: Path) -> None:
    """Each step before and after its COMMIT, in the order that is exported."""
    log = tmp_path / "names"
    with children(Child("journey", tmp_path / "store.db", PAPAVER_CRASH_LOG=str(log))) as (child,):
        assert [await hear(child) for _ in range(4)] == ["accept", "lease", "journal", "finish"]
        assert child.end() == 0
    assert tuple(_lines(log)) == CRASH_POINTS


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("name", CRASH_POINTS)
async def test_a_kill_leaves_all_of_a_step_or_nothing(tmp_path: Path, name: str) -> None:
    """What was told is there; the step that was committed is there, too; the journey then ends with one answer."""
    path, steps = tmp_path / "store.db", ["accept", "lease", "journal", "finish"]
    step, side = name.split(".")
    with children(Child("journey", path, PAPAVER_CRASH_AT=name)) as (child,):
        told = [await hear(child) for _ in range(steps.index(step) + 1)]
        assert told == [*steps[: steps.index(step)], None]
        assert child.end() == -signal.SIGKILL
    durable = steps.index(step) + (side == "after-commit")
    async with tables(lambda: SqliteStore(path)) as own:
        found = await own.log.read(A, 0, 9)
        assert (found is not None) == (durable >= 1)
        if found is not None:
            assert found.head.failures == (1 if durable in (2, 3) else 0)
            assert len(found.events) == (3 if durable == 4 else 1)
    with children(Child("journey", path)) as (child,):
        while await hear(child) is not None:
            pass
        assert child.end() == 0
    async with tables(lambda: SqliteStore(path)) as own:
        found = await own.log.read(A, 0, 9)
        assert found is not None
        assert texts(found.events) == ["hello", "hi", "StateChanged"]
    assert _integrity(path) == "ok"


@pytest.mark.parametrize("name", GRANT_CRASH_POINTS)
async def test_a_kill_leaves_the_old_refresh_token_or_the_new_one(tmp_path: Path, name: str) -> None:
    """With the id that it used up and the access token, or none of them; the grant goes on from there."""
    path, done = tmp_path / "store.db", name == "grant.after-commit"
    async with tables(lambda: SqliteStore(path)) as own:
        await sign_in(own.grants, grant_row())
    with children(Child("rotate", path, "a", "1", PAPAVER_CRASH_AT=name)) as (child,):
        assert await hear(child) == "open"
        child.tell()
        assert await hear(child) is None
        assert child.end() == -signal.SIGKILL
    fresh = "a.0" if done else "gra_1.1"
    async with tables(lambda: SqliteStore(path)) as own:
        keys = GrantKeys(refresh=digest("a.0"), spent=(spent_id("jti_a_0"),))
        found = await own.grants.apply(keys, lambda loaded: GrantChange(loaded))
        assert (found.grant is not None, found.spent) == (done, keys.spent if done else ())
        assert (await own.grants.access(digest("a.0.access")) is not None) is done
        assert await refresh(own.grants, fresh, "next") == "done"
    assert _integrity(path) == "ok"


async def test_three_processes_rotate_one_refresh_token(tmp_path: Path) -> None:
    """Each rotation begins where another one ended: no token is followed by two."""
    path, steps = tmp_path / "store.db", 20
    async with tables(lambda: SqliteStore(path)) as own:
        await sign_in(own.grants, grant_row())
        started = [Child("rotate", path, f"{n}", f"{steps}") for n in range(3)]
        with children(*started):
            assert [await hear(child) for child in started] == ["open"] * 3
            for child in started:
                child.tell()
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


def _integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


async def test_vaults_of_several_processes_exclude_each_other(tmp_path: Path) -> None:
    """Three starters make one vault; a read and a write under its lock lose no step."""
    path = tmp_path / "vault.db"
    started = [Child("count", path) for _ in range(3)]
    with children(*started):
        assert [await hear(child) for child in started] == ["open"] * 3
        for child in started:
            child.tell()
        assert [await hear(child) for child in started] == ["done"] * 3
        assert [child.end() for child in started] == [0] * 3
    async with opened_vault(lambda: SqliteVault(path, bytes(32))) as vault:
        assert await vault.load("session", "a") == b"75"


@pytest.mark.needs("postgres")
async def test_vaults_in_postgres_of_several_processes_exclude_each_other(schema: str) -> None:
    """Three starters make one vault; a read and a write under its lock lose no step."""
    started = [Child("count_in_postgres", Path(schema), PAPAVER_POSTGRES_URL=DSN) for _ in range(3)]
    with children(*started):
        assert [await hear(child) for child in started] == ["open"] * 3
        for child in started:
            child.tell()
        assert [await hear(child) for child in started] == ["done"] * 3
        assert [child.end() for child in started] == [0] * 3
    async with opened_vault(lambda: in_postgres(schema)) as vault:
        assert await vault.load("session", "a") == b"75"


@pytest.mark.needs("postgres")
async def test_a_killed_process_lets_go_of_its_name_in_postgres(schema: str) -> None:
    """Its connection ends with it, and whoever waits goes on."""
    async with opened_vault(lambda: in_postgres(schema)) as vault:
        with children(Child("keep_in_postgres", Path(schema), PAPAVER_POSTGRES_URL=DSN)) as (child,):
            assert await hear(child) == "held"
            waiting = asyncio.create_task(_hold(vault))
            done, _ = await asyncio.wait({waiting}, timeout=0.2)
            assert not done
            assert child.kill() == -signal.SIGKILL
            await asyncio.wait_for(waiting, 20)


async def _hold(vault: Vault) -> None:
    async with vault.exclusive("count"):
        pass


def in_postgres(schema: str) -> PostgresVault:
    return PostgresVault(DSN, key=VaultKey(bytes(32)), schema=schema)

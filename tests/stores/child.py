"""One of several processes on one file or database: `python child.py JOB PATH [ARGUMENT…]`, JSON lines out, "go" in."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from papaver.ports.company import CompanyStore, ConversationLog
from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, RefreshRow, digest
from papaver.ports.personal_agent import Vault
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, NoteKind, ReplayKey
from papaver.protocol.terms import ConversationId
from papaver.stores.postgres import PostgresStore, PostgresVault, VaultKey
from papaver.stores.sqlite import SqliteStore, SqliteVault
from papaver.testing.stores.grant_samples import access_row, spent_id
from papaver.testing.stores.samples import (
    CLIENT,
    COMPANY,
    NOW,
    answer,
    begin,
    lease,
    receipt_key,
    say,
)

CLIENTS = 16


def tell(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def go() -> None:
    await asyncio.to_thread(sys.stdin.readline)


def once(conversation: str) -> Callable[[Loaded], Change[int]]:
    """Say it unless it was said; the result is 0 then."""

    def decide(loaded: Loaded) -> Change[int]:
        return Change(0) if loaded.receipt is not None else say(conversation, receipt=True)(loaded)

    return decide


async def talk(store: CompanyStore, name: str, conversations: str, messages: str) -> None:
    """16 clients; every second message is sent by every process. Tells who got which sequence number."""
    log = (await store.tables(COMPANY)).log
    tell("open")
    await go()
    said: list[tuple[str, int]] = []

    async def client(number: int) -> None:
        for n in range(int(messages)):
            conversation = f"cnv_{(number * int(messages) + n) % int(conversations)}"
            message = f"msg_{number}_{n}" + ("" if n % 2 else f"_{name}")
            replay = ReplayKey(CLIENT, f"jti_{name}_{number}_{n}", NOW + 60)
            keys = Keys(ConversationId(conversation), receipt=receipt_key(message), replay=replay)
            seq = await log.apply(keys, once(conversation))
            found = await log.read(ConversationId(conversation), max(0, seq - 1), 5)
            assert found is not None
            said.append((conversation, seq))

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    tell([one for one in said if one[1]])


async def work(store: CompanyStore, name: str) -> None:
    """Run turns as long as there are any. Tells which conversations it answered."""
    log = (await store.tables(COMPANY)).log
    tell("open")
    await go()
    answered: list[str] = []

    async def runner(number: int) -> None:
        while (turn := await lease(log, f"trn_{name}_{number}_{len(answered)}", holder=store.holder)) is not None:
            await answer(log, turn)
            answered.append(turn.lease.conversation_id)

    await asyncio.gather(*(runner(number) for number in range(CLIENTS)))
    tell(answered)


async def hold(store: CompanyStore, name: str) -> None:
    """Lease a turn, note a step and never come back."""
    log = (await store.tables(COMPANY)).log
    turn = await lease(log, name, holder=store.holder, lasts=3600)
    assert turn is not None
    await log.journal(turn.lease, "step", b"done")
    tell(turn.lease.turn_id)
    await go()


async def keep_note(store: CompanyStore) -> None:
    """Take a row of the outbox and never come back."""
    log = (await store.tables(COMPANY)).log
    found = await log.take_note(store.holder, now=NOW, until=NOW + 3600)
    assert found is not None
    tell(found.n)
    await go()


async def tell_notes(store: CompanyStore) -> None:
    """Take what is in the outbox until nothing is left. Tells of which it took."""
    log = (await store.tables(COMPANY)).log
    tell("open")
    await go()
    told: list[tuple[str, int]] = []

    async def teller() -> None:
        while (found := await log.take_note(store.holder, now=NOW, until=NOW + 3600)) is not None:
            told.append((found.note.conversation, found.note.seq))
            await log.done_note(found)

    await asyncio.gather(*(teller() for _ in range(4)))
    tell(told)


async def journey(store: CompanyStore) -> None:
    """One message and its turn, step by step, telling of each step that is durable."""
    log = (await store.tables(COMPANY)).log
    if await log.read(ConversationId("cnv_a"), 0, 1) is None:
        await begin(log, "cnv_a", "msg_1")
    tell("accept")
    await turn(log, store.holder)


async def turn(log: ConversationLog, holder: str) -> None:
    own = await lease(log, "trn_1", holder=holder)
    tell("lease")
    if own is not None:
        assert await log.journal(own.lease, "step", b"done")
        tell("journal")
        await answer(log, own)
        tell("finish")


async def wake(store: CompanyStore) -> None:
    """Speak when told to, so that somebody else wakes."""
    log = (await store.tables(COMPANY)).log
    tell("open")
    await go()
    note = Note(NoteKind.MESSAGE, ConversationId("cnv_a"), 1, 1)
    said = say("cnv_a")
    await log.apply(Keys(note.conversation), lambda loaded: replace(said(loaded), notes=(note,)))
    await go()


async def rotate(store: CompanyStore, name: str, steps: str) -> None:
    """Redeem the one refresh token again and again, whoever made it. Tells of each rotation that is durable."""
    grants = (await store.tables(COMPANY)).grants
    tell("open")
    await go()
    for n in range(int(steps)):
        tell(await grants.apply(GrantKeys(grant="gra_1", spent=(spent_id(f"jti_{name}_{n}"),)), rotated(f"{name}.{n}")))


def rotated(fresh: str) -> Callable[[GrantLoaded], GrantChange[tuple[str, str]]]:
    """The next refresh token of a grant, whatever its newest one is; the result is both."""

    def decide(loaded: GrantLoaded) -> GrantChange[tuple[str, str]]:
        assert loaded.grant is not None
        assert loaded.spent == ()
        before, after = loaded.grant.current, digest(fresh)
        grant = replace(loaded.grant, current=after, previous=before, rotated_at=NOW + 1)
        tokens = (RefreshRow(after, grant.id),), (access_row(f"{fresh}.access", grant),)
        return GrantChange((before, after), (), (), (grant,), *tokens)

    return decide


async def count(vault: Vault) -> None:
    """Count up one row of a vault, holding its lock for each step."""
    await vault.open()
    tell("open")
    await go()
    for _ in range(25):
        async with vault.exclusive("count"):
            before = int(await vault.load("session", "a") or b"0")
            await vault.change("session", "a", lambda _, after=before + 1: str(after).encode())
    await vault.close()
    tell("done")


async def keep(vault: Vault) -> None:
    """Hold a lock and never come back."""
    await vault.open()
    async with vault.exclusive("count"):
        tell("held")
        await go()


def in_postgres(path: Path) -> Vault:
    """The vault in the schema of this name."""
    return PostgresVault(os.environ["PAPAVER_POSTGRES_URL"], key=VaultKey(bytes(32)), schema=path.name)


async def main(job: str, path: Path, *arguments: str) -> None:
    if job == "count":
        await count(SqliteVault(path, bytes(32)))
        return
    if job in ("count_in_postgres", "keep_in_postgres"):
        await {"count": count, "keep": keep}[job.removesuffix("_in_postgres")](in_postgres(path))
        return
    store: CompanyStore = SqliteStore(path)
    if job.endswith("_in_postgres"):
        job = job.removesuffix("_in_postgres")
        url = os.environ["PAPAVER_POSTGRES_URL"]
        store = PostgresStore(url, schema=path.name, redis=os.environ.get("PAPAVER_REDIS_URL") or None)
    await store.open()
    jobs = (talk, work, hold, keep_note, tell_notes, journey, wake, rotate)
    await {one.__name__: one for one in jobs}[job](store, *arguments)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))

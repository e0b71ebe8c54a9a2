"""Four real server processes on one SQLite file: no busy error, nothing lost or doubled, each wakes the others."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from papaver.stores.crash import Step
from papaver.stores.file_lock import FileLock
from papaver.stores.sqlite.migrations import scripts
from tests.house.server import Answer, Caller, House, Server, house, replies, texts

pytestmark = pytest.mark.anyio

PROCESSES = 4
CLIENTS = 16
FOREVER = 86_400


async def four(town: House) -> list[Server]:
    """Processes that open their store at the same time."""
    servers = [await town.spawn() for _ in range(PROCESSES)]
    for server in servers:
        await server.hears("loaded")
    await asyncio.gather(*(server.begin() for server in servers))
    return servers


def check_gapless(town: House) -> None:
    """Each conversation's events are numbered from 1 without a gap, and its receipts are as many as its messages."""
    gaps = town.rows(
        "SELECT conversation FROM events GROUP BY conversation HAVING count(*) != max(seq) OR min(seq) != 1"
    )
    assert gaps == []


def check_each_answered(events: list[dict[str, Any]], sent: list[dict[str, Any]]) -> None:
    """Each sent message is recorded once and in one reply."""
    recorded = Counter(event["message"]["id"] for event in events if event["type"] == "message")
    assert {message["id"]: recorded[message["id"]] for message in sent} == {message["id"]: 1 for message in sent}
    answered = Counter(line for reply in replies(events) for line in reply.removeprefix("You said: ").split("\n\n"))
    assert answered == Counter(message["text"] for message in sent)


@pytest.mark.requirement("ca-99")
async def test_four_starters_migrate_a_fresh_file_once(tmp_path: Path) -> None:
    """They open it at once; one of them migrates it, and all serve."""
    async with house(tmp_path) as town:
        servers = await four(town)
        counts = [int(await server.hears("migrated")) for server in servers]
        assert sorted(counts) == [0, 0, 0, len(scripts("store"))]
        assert len(town.rows("SELECT id FROM companies")) == 1
        dana = town.caller()
        started = await dana.start(servers[0], dana.message())
        for server in servers:
            assert replies(await dana.idle(server, started.json["conversation_id"])) == ["You said: Hello"]


async def say_all(
    caller: Caller, servers: list[Server], conversations: list[str], sent: dict[str, list[dict[str, Any]]], word: str
) -> list[int]:
    """One message to each conversation, each through the next process, and each once again as a retry."""
    statuses: list[int] = []
    for number, conversation in enumerate(conversations):
        message = caller.message(f"{word} {number}")
        sent[conversation].append(message)
        for attempt in range(2):
            answer = await caller.say(servers[(number + attempt) % len(servers)], conversation, message)
            statuses.append(answer.status)
    return statuses


@pytest.mark.requirement("8.3-06", "8.5-01")
@pytest.mark.parametrize("count", [1, 64])
async def test_sixteen_clients_lose_and_double_nothing(tmp_path: Path, count: int) -> None:
    """16 clients send to one conversation, or to 64, through four processes, and each message twice."""
    async with house(tmp_path) as town:
        servers = await four(town)
        dana = town.caller()
        first = [dana.message(f"first {number}") for number in range(count)]
        starts = [dana.start(servers[number % PROCESSES], message) for number, message in enumerate(first)]
        conversations = [answer.json["conversation_id"] for answer in await asyncio.gather(*starts)]
        sent = {conversation: [message] for conversation, message in zip(conversations, first, strict=True)}

        async def client(number: int) -> list[int]:
            caller = Caller(town.keys, dana.user, count=1000 * (number + 1))
            turned = servers[number % PROCESSES :] + servers[: number % PROCESSES]
            share = conversations[number::CLIENTS] if count > 1 else conversations * 4
            return await say_all(caller, turned, share, sent, f"client {number} says")

        statuses = await asyncio.gather(*(client(number) for number in range(CLIENTS)))
        assert Counter(status for some in statuses for status in some).keys() == {202}
        for number, conversation in enumerate(conversations):
            check_each_answered(await dana.idle(servers[number % PROCESSES], conversation), sent[conversation])
        check_gapless(town)
        assert [line for server in servers for line in server.said if "locked" in line or "busy" in line] == []


@pytest.mark.requirement("8.5-15")
async def test_a_held_reader_wakes_at_a_commit_of_another_process(tmp_path: Path) -> None:
    """A poll that one process holds ends with the message that another one accepted."""
    async with house(tmp_path) as town:
        reading = await town.serve(wait_cap=300)
        writing = await town.serve()
        dana = town.caller()
        started = await dana.start(reading, dana.message())
        conversation = started.json["conversation_id"]
        events = await dana.idle(reading, conversation)
        seen = len([line for line in reading.said if line.startswith("held")])

        polled = asyncio.create_task(dana.read(reading, conversation, f"wait=300&cursor={events[-1]['id']}"))
        while int(await reading.hears("held")) <= seen:
            pass
        said = await dana.say(writing, conversation, dana.message("Again"))
        assert said.status == 202
        page = await polled
        assert texts(page.json["events"], "user") == ["Again"]
        assert texts(await dana.idle(writing, conversation), "user") == ["Hello", "Again"]


@pytest.mark.requirement("8.6-06", "8.6-08")
async def test_a_stream_has_what_another_process_records_and_goes_on_there(tmp_path: Path) -> None:
    """Its own process is killed in the middle: the rest comes from the other one, each event once."""
    async with house(tmp_path) as town:
        here, there = await town.serve(), await town.serve()
        dana = town.caller()
        started = await dana.start(there, dana.message())
        conversation = started.json["conversation_id"]
        cursor = (await dana.idle(there, conversation))[-1]["id"]
        seen: list[dict[str, Any]] = []
        async with dana.stream(here, conversation, cursor) as stream:
            assert await stream.chunk()
            await dana.say(there, conversation, dana.message("one"))
            while not replies(seen):
                event = await stream.event()
                assert event is not None
                seen.append(json.loads(event.data))
            await here.kill()
            while (event := await stream.event()) is not None:
                seen.append(json.loads(event.data))
            assert not stream.ended, "the body has no end, so the reader knows"
        await dana.say(there, conversation, dana.message("two"))
        async with dana.stream(there, conversation, seen[-1]["id"]) as stream:
            while "You said: two" not in replies(seen):
                event = await stream.event()
                assert event is not None
                seen.append(json.loads(event.data))
        assert [text for text in texts(seen, "user") + replies(seen) if text] == [
            *("one", "two"),
            *("You said: one", "You said: two"),
        ]
        assert len({event["id"] for event in seen}) == len(seen)


@pytest.mark.requirement("8.3-07")
async def test_c68_two_processes_receive_the_same_first_message_at_once(tmp_path: Path) -> None:
    """Both have it before either may write: one conversation, one message, one reply, and the same answer twice."""
    async with house(tmp_path) as town:
        servers = [await town.serve(), await town.serve()]
        dana = town.caller()
        opened = await dana.start(servers[0], dana.message("Before"))
        for server in servers:  # each knows the client and the Session from here on
            await dana.idle(server, opened.json["conversation_id"])
        arrived = [len([line for line in server.said if line.startswith("arrived")]) for server in servers]
        message = dana.message("Both")
        lock = FileLock(town.store.with_name(f"{town.store.name}-lock"))
        lock.take()
        try:
            starts = [asyncio.create_task(dana.start(server, message)) for server in servers]
            for server, before in zip(servers, arrived, strict=True):
                while int(await server.hears("arrived")) <= before:
                    pass
        finally:
            lock.close()
        first, second = await asyncio.gather(*starts)
        assert (first.status, first.json) == (201, second.json)
        assert second.status == 201
        events = await dana.idle(servers[1], first.json["conversation_id"])
        assert (texts(events, "user"), replies(events)) == (["Both"], ["You said: Both"])
        assert len(town.rows("SELECT id FROM conversations")) == 2


PAUSES: dict[str, tuple[str, Step | None, int]] = {
    "in its handler": ("gated question", None, 2),
    "before it journals": ("A question", "journal", 2),
    "before it finishes": ("A question", "finish", 1),
}
"""Where it is paused: by which text, before which write, and how often the handler runs in all."""


@pytest.mark.parametrize("where", PAUSES)
async def test_c78_the_late_word_of_a_paused_process_is_dropped(tmp_path: Path, where: str) -> None:
    """Its lease ends while it is paused, another process answers; what it says afterwards changes nothing."""
    text, step, runs = PAUSES[where]
    async with house(tmp_path) as town:
        other = await town.serve(lease=FOREVER, turns_at_once=1)
        busy, dana = town.caller("usr_busy"), town.caller()
        occupied = await busy.start(other, busy.message("gated"))
        await other.hears("called")  # it can lease nothing more, so that the other one has to
        paused = await town.serve(lease=3, lease_renewed=1, waits_before=step)
        started = await dana.start(paused, dana.message(text))
        conversation = started.json["conversation_id"]
        turn_id = (await paused.hears("called")).split()[0]
        if step is not None:
            await paused.hears("waits before")
        pause(paused, town)
        other.tell("go")
        await busy.idle(other, occupied.json["conversation_id"])

        events = await dana.idle(other, conversation)
        assert replies(events) == [f"You said: {text}"]
        calls = [call for call in paused.turns() + other.turns() if call[2] == text]
        assert calls == [(turn_id, 1, text), (turn_id, 2, text)][:runs]
        paused.tell("go")
        paused.signal(signal.SIGCONT)
        await paused.hears(f"turn {turn_id} was taken over by another process")
        assert await dana.idle(paused, conversation) == events
        assert town.rows("SELECT key FROM journal") == []
        assert (await again(paused, dana)).status == 201


def pause(server: Server, town: House) -> None:
    """SIGSTOP, but not in the middle of a group commit: the others could not write then."""
    lock = FileLock(town.store.with_name(f"{town.store.name}-lock"))
    lock.take()
    server.signal(signal.SIGSTOP)
    lock.close()


async def again(server: Server, caller: Caller) -> Answer:
    """A further conversation, answered."""
    started = await caller.start(server, caller.message("Still there?"))
    assert replies(await caller.idle(server, started.json["conversation_id"])) == ["You said: Still there?"]
    return started

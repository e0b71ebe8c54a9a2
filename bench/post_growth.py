"""`post_growth`: a POST, a read at the tail and a whole turn in a conversation of 50,000 events against one of 100.

One request at a time, in turn to the long and to the short conversation; medians of what each takes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import statistics
from collections.abc import Callable
from datetime import UTC, datetime

from bench.agent import DOMAIN, TEXT, Agent
from bench.harness import interleave, ratio, report
from bench.serving import Server, drive, store_place, wait_idle
from papaver.ports.company import CompanyStore
from papaver.protocol.conversation.change import Change, Keys, Loaded
from papaver.protocol.conversation.model import (
    Author,
    AuthorType,
    Event,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.terms import CompanyId, ConversationId, MessageId
from papaver.stores.sqlite import SqliteStore

LONG, SHORT, BOUND = 50_000, 100, 1.2
OF_EACH, ROUNDS, EACH = 8, 7, 24


def main() -> None:
    agent = Agent()
    with store_place() as place:
        documents = agent.write_documents(place.folder / "documents.json")
        arguments = ("--store", f"{place.folder}/poppy.db", "--documents", str(documents))
        with Server(*arguments) as company:
            known = list(agent.started(company, 2 * OF_EACH))
        long, short = known[:OF_EACH], known[OF_EACH:]
        wanted = dict.fromkeys(long, LONG) | dict.fromkeys(short, SHORT)
        cursors = asyncio.run(lengthen(SqliteStore(place.folder / "poppy.db"), wanted))
        with Server(*arguments, "--no-turns") as company:
            tails = {one: f"cursor={tail}&wait=0" for one, (tail, _) in cursors.items()}
            read = compare(company, long, short, lambda one: agent.read(one, tails[one]))
        ends = {one: end for one, (_, end) in cursors.items()}
        with Server(*arguments) as company:
            wait_idle(company)
            turn = compare(company, long, short, lambda one: agent.say(one, f"cursor={ends[one]}&wait=20"), ends)
        with Server(*arguments, "--no-turns") as company:
            post = compare(company, long, short, agent.say)
        measured = {"post": post, "read": read, "turn": turn}
        report(
            "post_growth",
            value=round(max(grown for grown, _ in measured.values()) / BOUND, 3),
            baseline=round(post[1] * 1e6, 1),
            goal=1.0,
            unit=f"worst ratio to its bound of {BOUND}; baseline: a POST at {SHORT} events, in us; the others: ratios",
            **{name: round(grown, 3) for name, (grown, _) in measured.items()},
            us={name: round(seconds * 1e6) for name, (_, seconds) in measured.items()},
            rounds=ROUNDS,
            store=place.kind,
            fsync_us=place.fsync_us,
        )


def compare(
    server: Server,
    long: list[str],
    short: list[str],
    request: Callable[[str], bytes],
    cursors: dict[str, str] | None = None,
) -> tuple[float, float]:
    """How many times as long a request takes at the long conversations; the short ones' seconds.

    With `cursors` each answer has to be a page with a reply, and they are moved on.
    """

    def arm(conversations: list[str]) -> Callable[[], float]:
        def measure() -> float:
            taken: list[float] = []
            for n in range(EACH):
                answers: list[bytes] = []
                load = drive(server, [request(conversations[n % OF_EACH])], 1, answers)
                assert set(load.statuses) <= {200, 202}, load.statuses
                taken += load.latencies
                if cursors is not None:
                    assert b'"You said: ' in answers[0], "a turn was not over"
                    page = json.loads(answers[0])
                    cursors[page["conversation_id"]] = page["cursor"]
            return statistics.median(taken)

        return measure

    taken = interleave({"long": arm(long), "short": arm(short)}, ROUNDS)
    return ratio(taken["long"], taken["short"]), statistics.median(taken["short"])


async def lengthen(store: CompanyStore, wanted: dict[str, int]) -> dict[str, tuple[str, str]]:
    """Give each conversation so many events; cursors behind the newest but two, and behind the newest."""
    cursors = dict[str, tuple[str, str]]()
    await store.open()
    try:
        tables = await store.tables(CompanyId(f"https://{DOMAIN}"))
        ids = EventIds(tables.secret)
        for name, count in wanted.items():
            conversation = ConversationId(name)

            def decide(loaded: Loaded, conversation: ConversationId = conversation, count: int = count) -> Change[None]:
                assert loaded.head is not None
                head, now = loaded.head, datetime.now(UTC)
                events = [
                    (conversation, seq, event_of(ids, conversation, seq, now))
                    for seq in range(head.last_seq + 1, count + 1)
                ]
                grown = dataclasses.replace(
                    head, changed_at=now, status=Status.IDLE, last_seq=count, asked_seq=count, answered_seq=count
                )
                return Change(None, (grown,), tuple(events))

            await tables.log.apply(Keys(conversation), decide)
            cursors[name] = ids.write(conversation, count - 2), ids.write(conversation, count)
    finally:
        await store.close()
    return cursors


def event_of(ids: EventIds, conversation: ConversationId, seq: int, now: datetime) -> Event:
    id = ids.write(conversation, seq)
    kind = seq % 4
    if kind in (1, 3):
        return StateChanged(id, now, Status.WORKING if kind == 1 else Status.IDLE, Responder.AGENT)
    role = Role.USER if kind == 0 else Role.COMPANY
    return MessageAdded(id, now, Message(MessageId(f"old_{seq}"), Author(AuthorType.AGENT), role, TEXT))


if __name__ == "__main__":
    main()

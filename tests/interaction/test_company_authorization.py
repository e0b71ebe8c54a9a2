"""A turn that needs the User's account, on the wire: the event, what waits, and what has it go on (8.11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from papaver.company import ScopesNeeded, Turn
from papaver.protocol.terms import ClientId
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import NOW
from papaver.web.challenges import read_challenges
from tests.house.company_tokens import SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio

READS, WRITES, OTHERS = bearer("reads"), bearer("writes"), bearer("others")
NEED = "needs orders:read orders:write"


@asynccontextmanager
async def company(handler: Any, **options: Any) -> AsyncGenerator[tuple[CompanyBench, TokenTable]]:
    """Its handler, and tokens of account A that read, that write, and one of account B."""
    table = TokenTable()
    table.issue("reads", "acc_a", "orders:read")
    table.issue("writes", "acc_a", "orders:read", "orders:write")
    table.issue("others", "acc_b", "orders:read", "orders:write")
    settings: dict[str, Any] = {"handler": handler, "sign_in": table, "scopes": SCOPES, **options}
    async with company_bench(**settings) as bench:
        yield bench, table


def story(page: Answer) -> list[str]:
    """Each event in a few words."""
    return [told(event) for event in page.json["events"]]


def told(event: dict[str, Any]) -> str:
    match event["type"]:
        case "message":
            return f"{event['message']['role']}: {event['message'].get('text')}"
        case "authorization":
            return f"needs {event['scope']}"
        case _:
            return event["status"]


def challenge(answer: Answer) -> dict[str, str]:
    (found,) = read_challenges(answer.headers.all("www-authenticate"))
    assert found.scheme == "Bearer"
    return {name: value for name, value in found.params.items() if name != "error_description"}


async def cancels(turn: Turn) -> str:
    """An action that needs to read and to write."""
    account = turn.require("orders:read", "orders:write")
    return f"Cancelled for {account}: {turn.text}"


async def cancels_or_answers(turn: Turn) -> str:
    """Public questions need nothing."""
    return await cancels(turn) if "cancel" in turn.text.lower() else f"We are open, {turn.account_id}"


@pytest.mark.requirement("8.11-01", "8.11-02", "8.11-04")
async def test_a_question_that_needs_the_account_is_accepted_and_answered_by_an_event() -> None:
    """202 with the event, then `idle`, and the conversation is open: signed in it goes on, with the same message."""
    async with company(cancels) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5")
        assert (asked.status, asked.json["status"]) == (201, "idle")
        assert story(asked) == ["user: Cancel it", NEED, "idle"]
        here, event = asked.json["conversation_id"], asked.json["events"][1]
        assert {**event, "id": "", "created_at": ""} == {
            "id": "",
            "type": "authorization",
            "created_at": "",
            "error": "insufficient_scope",
            "scope": "orders:read orders:write",
        }
        assert (await bench.read(here, **WRITES)).json["status"] == "working"
        page = await idle(bench, here, **WRITES)
        assert story(page)[3:] == ["working", "company: Cancelled for acc_a: Cancel it", "idle"]


async def cancels_outside_direct(turn: Turn) -> str:
    """The User alone is told what needs no account."""
    return f"To {turn.author_type}: {turn.text}" if turn.direct else await cancels(turn)


@pytest.mark.requirement("8.11-03", "8.10-24", "8.7-01")
async def test_what_is_parked_goes_on_when_the_user_comes_signed_in() -> None:
    """The token of the request that opens the Direct Conversation is the parent's as well, and answers it at once."""
    async with company(cancels_outside_direct) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5")
        here = asked.json["conversation_id"]
        assert story(asked) == ["user: Cancel it", NEED, "idle"]
        begun = await bench.send("POST", "", {"parent_conversation_id": here, "message": bench.message("Me")}, **WRITES)
        assert begun.status == 201
        page = await idle(bench, here, **WRITES)
        kinds = [event["type"] for event in page.json["events"]]
        assert kinds[3:] == ["direct_opened", "state", "message", "state"]
        assert page.json["events"][5]["message"]["text"] == "Cancelled for acc_a: Cancel it"
        assert page.json["status"] == "idle"
        refused = await bench.say(here, **WRITES)
        assert refused.error == "direct_conversation_open"


async def idle(bench: CompanyBench, conversation: str, **who: Any) -> Answer:
    """All events once the Company has nothing left to do."""
    page = await bench.read(conversation, **who)
    while page.json["status"] == "working":
        page = await bench.read(conversation, f"cursor={page.json['cursor']}&wait=5", **who)
    return await bench.read(conversation, **who)


@pytest.mark.requirement("8.5-06", "8.11-10", "ca-17")
async def test_c24_a_token_that_only_reads_does_not_write() -> None:
    """Nothing is done; the event names all that the call needs, also what the token has; then the wider one does it."""
    async with company(cancels) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5", **READS)
        here = asked.json["conversation_id"]
        assert story(asked) == ["user: Cancel it", NEED, "idle"]
        assert asked.json["events"][1]["error"] == "insufficient_scope"
        assert story(await idle(bench, here, **READS)) == story(asked)
        assert story(await idle(bench, here, **WRITES))[-2] == "company: Cancelled for acc_a: Cancel it"


@pytest.mark.requirement("8.11-10", "ca-17")
async def test_c25_a_token_that_writes_does() -> None:
    """At once, and no event asks for anything."""
    async with company(cancels) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5", **WRITES)
        assert story(asked) == ["user: Cancel it", "company: Cancelled for acc_a: Cancel it", "idle"]
        assert "www-authenticate" not in asked.headers


@pytest.mark.requirement("ca-17")
async def test_c23_signed_out_what_needs_no_account_is_done() -> None:
    """A conversation asks for no scope; what does is refused alone."""
    async with company(cancels_or_answers) as (bench, _):
        asked = await bench.start("When are you open?", query="wait=5")
        assert story(asked)[1:] == ["company: We are open, None", "idle"]
        here = asked.json["conversation_id"]
        assert story(await bench.say(here, "Cancel it", query="wait=5"))[-2:] == [NEED, "idle"]


@pytest.mark.requirement("papaver-95")
@pytest.mark.parametrize("kind", ["read", "retry", "context", "handoff", "message"])
async def test_any_request_with_a_token_that_covers_has_the_turn_run_again(kind: str) -> None:
    """The retry is answered as the first time; the handler sees what was unanswered, with what is new."""
    async with company(cancels) as (bench, _):
        message = {"message": bench.message("Cancel it")}
        here = (await bench.send("POST", "", message, query="wait=5")).json["conversation_id"]
        match kind:
            case "read":
                answer = await bench.read(here, "wait=25", **WRITES)
            case "retry":
                answer = await bench.send("POST", "", message, **WRITES)
                assert answer.json == {"conversation_id": here, "status": "working", "responder": "agent"}
            case "context":
                context = {"message": bench.message(None, context={"locale": "de"})}
                answer = await bench.send("POST", f"/{here}/messages", context, **WRITES)
            case "handoff":
                answer = await bench.send("POST", f"/{here}/handoff", {}, **WRITES)
            case _:
                answer = await bench.say(here, "the blue one", **WRITES)
        assert answer.status in (200, 201, 202)
        page = await idle(bench, here, **WRITES)
        while page.json["status"] == "queued" or not story(page)[-2].startswith("company: Cancelled"):
            await bench.tick()
            page = await idle(bench, here, **WRITES)
        more = "\n\nthe blue one" if kind == "message" else ""
        assert story(page)[-2:] == [f"company: Cancelled for acc_a: Cancel it{more}", "idle"]
        assert story(page).count(NEED) == 1


@pytest.mark.requirement("papaver-95")
async def test_a_token_that_does_not_cover_leaves_it_waiting() -> None:
    """Reads with it show the same page each time; no second event asks."""
    async with company(cancels) as (bench, _):
        here = (await bench.start("Cancel it", query="wait=5")).json["conversation_id"]
        for _ in range(3):
            assert story(await idle(bench, here, **READS)) == ["user: Cancel it", NEED, "idle"]


async def test_another_question_while_one_waits_is_answered() -> None:
    """A new message is a turn of its own, for all that is unanswered; it may answer both."""

    async def answer(turn: Turn) -> str:
        if "never mind" in turn.text.lower():
            return f"Gladly: {len(turn.messages)}"
        return await cancels(turn)

    async with company(answer) as (bench, _):
        here = (await bench.start("Cancel it", query="wait=5")).json["conversation_id"]
        again = await bench.say(here, "Cancel it now", query="wait=5")
        assert story(again)[3:] == ["user: Cancel it now", "working", NEED, "idle"]
        assert story(await bench.say(here, "Never mind", query="wait=5"))[-2:] == ["company: Gladly: 3", "idle"]
        page = await idle(bench, here, **WRITES)
        assert story(page)[-2:] == ["company: Gladly: 3", "idle"], "there is nothing left to run again"


async def swallows(turn: Turn) -> str:
    try:
        return await cancels(turn)
    except ScopesNeeded:
        return "Done!"


async def wraps(turn: Turn) -> str:
    try:
        return await cancels(turn)
    except ScopesNeeded as error:
        raise RuntimeError("a tool failed") from error


async def groups(turn: Turn) -> str:
    async def reads() -> None:
        turn.require("orders:read")

    async def writes() -> None:
        turn.require("orders:write")

    async with asyncio.TaskGroup() as tools:
        tools.create_task(reads())
        tools.create_task(writes())
    return "Done!"


async def yields(turn: Turn) -> AsyncIterator[str]:
    yield "I will cancel it. "
    yield await cancels(turn)


EVASIVE: dict[str, Any] = {one.__name__: one for one in (swallows, wraps, groups, yields)}


@pytest.mark.requirement("papaver-99")
@pytest.mark.parametrize("handler", EVASIVE)
async def test_a_turn_that_lacks_the_account_ends_in_the_event_whatever_the_handler_does(handler: str) -> None:
    """One event, and no word of the handler."""

    async with company(EVASIVE[handler]) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5")
        assert story(asked) == ["user: Cancel it", NEED, "idle"]


async def test_what_a_handler_asks_for_has_to_be_a_scope() -> None:
    """At least one, of visible ASCII: an event without a scope would ask for nothing. The turn fails, in words."""

    def requires(*scopes: str) -> Any:
        async def answer(turn: Turn) -> str:
            return turn.require(*scopes)

        return answer

    for scopes in ((), ("",), (" ",), ("ü",), ('"',)):
        async with company(requires(*scopes)) as (bench, _):
            assert story(await bench.start("Hi", query="wait=5"))[1].startswith("company: Sorry")


@pytest.mark.requirement("8.11-10")
async def test_a_token_that_has_expired_when_the_turn_runs_covers_nothing() -> None:
    """The request was accepted; the turn is signed out. A fresh token of the account has it run again."""
    seen: list[tuple[object, bool, object]] = []

    async def answer(turn: Turn) -> str:
        seen.append((turn.account_id, turn.signed_in, turn.scopes))
        return await cancels(turn)

    async with company(answer, turns=False) as (bench, table):
        short = bearer(table.issue("short", "acc_a", "orders:read", "orders:write", until=NOW + 30))
        here = (await bench.start("Cancel it", **short)).json["conversation_id"]
        bench.clock.advance(30)
        runner = bench.company.start_turns()
        while (await bench.read(here, **READS)).json["status"] == "working":
            await bench.tick()
        assert story(await bench.read(here, **READS)) == ["user: Cancel it", NEED, "idle"]
        page = await idle(bench, here, **WRITES)
        assert story(page)[-2] == "company: Cancelled for acc_a: Cancel it"
        bench.company.stop()
        await runner
    assert seen == [(None, False, frozenset()), ("acc_a", True, {"orders:read", "orders:write"})]


async def test_a_token_that_expires_while_the_turn_runs_covers_nothing_more() -> None:
    """What is required is required now."""

    async def answer(turn: Turn) -> str:
        turn.require("orders:read")
        clock.advance(60)
        return await cancels(turn)

    async with company(answer, turns=False) as (bench, table):
        clock = bench.clock
        short = bearer(table.issue("short", "acc_a", "orders:read", "orders:write", until=NOW + 30))
        here = (await bench.start("Cancel it", **short)).json["conversation_id"]
        runner = bench.company.start_turns()
        page = await idle(bench, here, **READS)
        assert story(page) == ["user: Cancel it", NEED, "idle"]
        bench.company.stop()
        await runner


@pytest.mark.requirement("papaver-147")
@pytest.mark.parametrize("how", ["revoked", "blocked"])
async def test_readings_26_a_token_that_is_revoked_before_the_turn_runs_allows_nothing(how: str) -> None:
    """Nor does one of a client that is blocked: the turn is signed out, asks, and a good token has it run again."""
    seen: list[tuple[object, bool, object]] = []

    async def answer(turn: Turn) -> str:
        seen.append((turn.account_id, turn.signed_in, turn.scopes))
        return await cancels(turn)

    async with company(answer, turns=False) as (bench, table):
        gone = bearer(table.issue("gone", "acc_a", "orders:read", "orders:write"))
        here = (await bench.start("Cancel it", **gone)).json["conversation_id"]
        clients = bench.company.clients
        if how == "revoked":
            table.revoke("gone")
        else:
            await clients.judge(ClientId(bench.agent.client_id), "blocked")
        runner = bench.company.start_turns()
        while not seen:
            await bench.tick()
        await clients.judge(ClientId(bench.agent.client_id), "allowed")
        while (await bench.read(here, **READS)).json["status"] == "working":
            await bench.tick()
        assert story(await bench.read(here, **READS)) == ["user: Cancel it", NEED, "idle"]
        page = await idle(bench, here, **WRITES)
        assert story(page)[-2] == "company: Cancelled for acc_a: Cancel it"
        bench.company.stop()
        await runner
    assert seen == [(None, False, frozenset()), ("acc_a", True, {"orders:read", "orders:write"})]


@pytest.mark.requirement("ca-19")
async def test_a_turn_sees_who_asks() -> None:
    """Agent, version and extensions of the newest message's request; and the account with its scopes."""
    seen: list[Turn] = []

    async def answer(turn: Turn) -> str:
        seen.append(turn)
        return "Hello"

    async with company(answer) as (bench, _):
        declared = {**READS["headers"], "poppy-extensions": '"links";v="1"'}
        await bench.start(query="wait=5", agent_id="agt_1", access_token="reads", headers=declared)
        await bench.start(query="wait=5", sid="sid_two")
    first, second = seen
    assert (first.agent_id, first.version, first.extensions) == ("agt_1", "0.4", {"links": "1"})
    assert (first.account_id, first.signed_in, first.scopes) == ("acc_a", True, {"orders:read"})
    assert (second.agent_id, second.extensions, second.account_id, second.signed_in) == (None, {}, None, False)
    assert second.scopes == frozenset()


@pytest.mark.requirement("8.11-05", "8.11-06")
async def test_an_answer_that_carries_the_event_carries_the_challenge() -> None:
    """Once, on the successful answer, signed out and with a token that lacks something; not where the event is not."""
    async with company(cancels) as (bench, _):
        for who in ({}, READS):
            sid = {"sid": f"sid_{len(who)}"}
            asked = await bench.start("Cancel it", query="wait=5", **sid, **who)
            assert (asked.status, challenge(asked)) == (
                201,
                {"error": "insufficient_scope", "scope": "orders:read orders:write"},
            )
            here, cursor = asked.json["conversation_id"], asked.json["cursor"]
            page = await bench.read(here, **sid, **who)
            assert (page.status, challenge(page)["error"]) == (200, "insufficient_scope")
            assert page.headers.all("content-type") == ("application/json",)
            later = await bench.read(here, f"cursor={cursor}", **sid, **who)
            assert (later.json["events"], "www-authenticate" in later.headers) == ([], False)
            said = await bench.say(here, "Please", **sid, **who)
            assert "www-authenticate" not in said.headers
        done = await idle(bench, here, sid="sid_again", **WRITES)
        assert (NEED in story(done), "www-authenticate" in done.headers) == (True, False), "an old event asks nobody"


async def test_readings_3_a_poll_that_waits_for_the_account_wakes_when_it_is_there() -> None:
    """Held signed in to the account, with the narrow token, while another Session brings the wide one."""
    async with company(cancels) as (bench, _):
        asked = await bench.start("Cancel it", query="wait=5", **READS)
        here, cursor = asked.json["conversation_id"], asked.json["cursor"]
        poll = asyncio.create_task(bench.read(here, f"cursor={cursor}&wait=25", **READS))
        await bench.held(1)
        assert (await bench.read(here, sid="sid_two", **OTHERS)).status == 404
        await bench.read(here, sid="sid_two", **WRITES)
        assert story(await poll)[0] == "working"


async def test_c79_a_crash_between_the_outcome_and_its_end_leaves_one_event() -> None:
    """Once the lease is over the journaled outcome is used: the handler is not asked again."""
    calls: list[str] = []

    async def answer(turn: Turn) -> str:
        calls.append(turn.id)
        return await cancels(turn)

    async with company(answer) as (bench, _):
        log: Any = (await bench.company.store.tables(bench.company.id)).log
        apply, failed = log.apply, asyncio.Event()

        async def fails_at_the_end(keys: Any, decide: Any) -> Any:
            if keys.lease is not None:
                log.apply = apply
                failed.set()
                raise OSError("the disk is gone")
            return await apply(keys, decide)

        log.apply = fails_at_the_end
        here = (await bench.start("Cancel it")).json["conversation_id"]
        await failed.wait()
        bench.clock.advance(bench.company.limits.lease + 1)
        page = await bench.idle(here)
        assert (story(page), len(calls)) == (["user: Cancel it", NEED, "idle"], 1)
        page = await idle(bench, here, **WRITES)
        assert story(page)[-2] == "company: Cancelled for acc_a: Cancel it"
        assert len(set(calls)) == 2, "a turn that runs again is another one"


async def test_a_token_that_comes_between_the_outcome_and_its_end_is_not_asked_for() -> None:
    """The turn runs again with it: no event asks for what is there."""
    async with company(cancels) as (bench, _):
        log: Any = (await bench.company.store.tables(bench.company.id)).log
        apply, parking, go = log.apply, asyncio.Event(), asyncio.Event()

        async def waits_at_the_end(keys: Any, decide: Any) -> Any:
            if keys.lease is not None:
                log.apply = apply
                parking.set()
                await go.wait()
            return await apply(keys, decide)

        log.apply = waits_at_the_end
        here = (await bench.start("Cancel it")).json["conversation_id"]
        await parking.wait()
        await bench.read(here, **WRITES)
        go.set()
        page = await idle(bench, here, **WRITES)
        assert story(page) == ["user: Cancel it", "company: Cancelled for acc_a: Cancel it", "idle"]


@pytest.mark.requirement("papaver-95")
async def test_a_parked_turn_survives_a_restart_on_sqlite(tmp_path: Path) -> None:
    """Another process finds nothing due until the token is there; of two accounts that bring one, the first has it."""
    here = ""
    for again in (False, True):
        async with company(cancels, store=SqliteStore(tmp_path / "poppy.db")) as (bench, _):
            log = (await bench.company.store.tables(bench.company.id)).log
            if not again:
                here = (await bench.start("Cancel it", query="wait=5")).json["conversation_id"]
                assert (await log.turns_pending(bench.clock.now()))[0] == 0
                continue
            assert story(await bench.read(here)) == ["user: Cancel it", NEED, "idle"]
            answers = await asyncio.gather(
                *(bench.read(here, sid=f"sid_{n}", **who) for n, who in enumerate((WRITES, OTHERS)))
            )
            assert sorted(answer.status for answer in answers) == [200, 404]
            page = await idle(bench, here, **(WRITES if answers[0].status == 200 else OTHERS))
            assert story(page)[-2].startswith("company: Cancelled for acc_")

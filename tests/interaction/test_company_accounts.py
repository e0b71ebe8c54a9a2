"""Conversations and accounts on the wire: the table of 8.2, what a challenge names, what is delivered (5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from papaver.protocol.terms import ClientId, SessionId
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import NOW, AgentKeys
from papaver.web.challenges import Challenge, read_challenges
from tests.house.company_tokens import CLIENT, SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio

A, B, WIDER = bearer("token-a"), bearer("token-b"), bearer("token-a-wider")
OTHER = AgentKeys("https://other.example/agent.json")
KINDS = ("message", "read", "handoff", "close", "retried message", "retried start")


@asynccontextmanager
async def accounts(**options: Any) -> AsyncGenerator[tuple[CompanyBench, TokenTable]]:
    """A Company with an issuer, accounts A and B, and nobody who answers."""
    table = TokenTable()
    table.issue("token-a", "acc_a", "orders:read")
    table.issue("token-a-wider", "acc_a", "orders:read", "orders:write")
    table.issue("token-b", "acc_b", "orders:read")
    settings: dict[str, Any] = {"turns": False, "sign_in": table, "scopes": SCOPES, **options}
    async with company_bench(**settings) as bench:
        yield bench, table


async def ask(bench: CompanyBench, conversation: str, kind: str, start: object, said: object, **who: Any) -> Answer:
    """A request of this kind on the conversation."""
    match kind:
        case "message":
            return await bench.say(conversation, **who)
        case "read":
            return await bench.read(conversation, **who)
        case "handoff" | "close":
            return await bench.send("POST", f"/{conversation}/{kind}", {}, **who)
        case "retried message":
            return await bench.send("POST", f"/{conversation}/messages", {"message": said}, **who)
        case _:
            return await bench.send("POST", "", {"message": start}, **who)


async def begun(bench: CompanyBench, **who: Any) -> tuple[str, dict[str, object], dict[str, object]]:
    """A conversation of two messages, and the messages."""
    start, said = bench.message(), bench.message()
    conversation = (await bench.send("POST", "", {"message": start}, **who)).json["conversation_id"]
    await bench.send("POST", f"/{conversation}/messages", {"message": said}, **who)
    return conversation, start, said


def challenge(answer: Answer) -> Challenge:
    """The one challenge of an answer."""
    (found,) = read_challenges(answer.headers.all("www-authenticate"))
    return found


def texts(page: Answer) -> list[str]:
    return [event["message"]["text"] for event in page.json["events"] if event["type"] == "message"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("8.2-10", "5.5-14")
async def test_signed_out_a_conversation_continues_until_it_uses_an_account(kind: str) -> None:
    """Each of the five kinds and each retry; then 401 with a challenge that has no error code, and nothing changes."""
    async with accounts() as (bench, _):
        here, start, said = await begun(bench)
        assert (await ask(bench, here, kind, start, said)).status in (200, 201, 202)
        here, start, said = await begun(bench)
        assert (await bench.read(here, **A)).status == 200
        before = (await bench.read(here, **A)).response.body
        answer = await ask(bench, here, kind, start, said)
        assert (answer.status, answer.response.body) == (401, b"")
        assert (challenge(answer).scheme, challenge(answer).params) == ("Bearer", {"scope": "orders:read"})
        assert (await bench.read(here, **A)).response.body == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("8.2-11", "ca-24")
async def test_readings_2_any_accepted_request_with_a_token_binds(kind: str) -> None:
    """The conversation is its account's: signed out is challenged, that account goes on, another finds nothing."""
    async with accounts() as (bench, _):
        here, start, said = await begun(bench)
        assert (await ask(bench, here, kind, start, said, **A)).status in (200, 201, 202)
        assert (await bench.read(here)).status == 401
        assert (await bench.read(here, **B)).error == "conversation_not_found"
        assert (await bench.read(here, **WIDER)).status == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("8.2-12")
async def test_c27_a_bound_conversation_is_nothing_to_another_account(kind: str) -> None:
    """404 as for one that does not exist, byte for byte; signed out a challenge; nothing is recorded."""
    async with accounts() as (bench, _):
        here, start, said = await begun(bench, **A)
        before = (await bench.read(here, **A)).response.body
        answer = await ask(bench, here, kind, start, said, **B)
        assert (answer.status, answer.error) == (404, "conversation_not_found")
        assert answer.response.body == (await bench.read("cnv_unknown", **B)).response.body
        assert (await ask(bench, here, kind, start, said)).status == 401
        assert (await bench.read(here, **A)).response.body == before


@pytest.mark.parametrize("kind", ["message", "read", "handoff", "close"])
async def test_c73_another_user_id_with_the_same_account_finds_nothing(kind: str) -> None:
    """The account does not make it theirs; neither does it to another client."""
    async with accounts() as (bench, table):
        bench.documents.publish(OTHER)
        table.issue("token-other", "acc_a", "orders:read", client=OTHER.client_id)
        here, start, said = await begun(bench, **A)
        robin = await ask(bench, here, kind, start, said, sub="usr_robin", sid="sid_robin", **A)
        other = await ask(bench, here, kind, start, said, agent=OTHER, **bearer("token-other"))
        signed_out = await ask(bench, here, kind, start, said, sub="usr_robin", sid="sid_robin")
        assert {(one.status, one.error) for one in (robin, other, signed_out)} == {(404, "conversation_not_found")}


@pytest.mark.parametrize("kind", ["message", "read"])
async def test_c74_of_two_accounts_at_once_one_wins(kind: str) -> None:
    """A and B at the same time on a conversation without an account: one goes on, the other finds nothing."""
    async with accounts() as (bench, _):
        here, start, said = await begun(bench)
        answers = await asyncio.gather(
            *(ask(bench, here, kind, start, said, sid=f"sid_{n}", **who) for n, who in enumerate((A, B, A, B)))
        )
        a, b, *more = [answer.status < 300 for answer in answers]
        assert (a, b) in ((True, False), (False, True))
        assert more == [a, b]
        assert len(texts(await bench.read(here, **(A if a else B)))) == 2 + 2 * (kind == "message")


@pytest.mark.requirement("8.2-12")
async def test_c74_a_conversation_without_an_account_becomes_bs() -> None:
    """Whoever is the first; A comes too late."""
    async with accounts() as (bench, _):
        here, _, _ = await begun(bench)
        assert (await bench.say(here, **B)).status == 202
        assert (await bench.say(here, **A)).error == "conversation_not_found"


async def test_readings_2_a_refused_request_binds_nothing() -> None:
    """A bad cursor, a conflict, an unknown token, a token of another client: the conversation stays without account."""
    async with accounts() as (bench, table):
        here, start, _ = await begun(bench)
        other = {"message": {**bench.message("Other"), "id": start["id"]}}
        table.issue("foreign", "acc_a", client=OTHER.client_id)
        refused = [
            await bench.read(here, "cursor=evt_unknown", **A),
            await bench.send("POST", f"/{here}/messages", other, **A),
            await bench.say(here, **bearer("unknown")),
            await bench.say(here, **bearer("foreign")),
            await bench.send("POST", f"/{here}/messages", raw=b"{", **A),
        ]
        assert [answer.status for answer in refused] == [400, 409, 401, 400, 400]
        assert (await bench.read(here)).status == 200


@pytest.mark.requirement("5.5-15", "8.11-11")
async def test_after_a_sign_out_a_conversation_stays_and_asks_for_its_account() -> None:
    """It is neither closed nor readable signed out, whatever the cursor (readings 4); signing in again goes on."""
    async with accounts() as (bench, table):
        here, _, _ = await begun(bench)
        cursor = (await bench.read(here)).json["cursor"]
        await bench.say(here, **A)
        table.revoke("token-a")
        assert challenge(await bench.say(here, **A)).params["error"] == "invalid_token"
        for answer in (await bench.read(here, f"cursor={cursor}"), await bench.say(here)):
            assert (answer.status, "error" in challenge(answer).params) == (401, False)
        page = await bench.read(here, **WIDER)
        assert (page.status, page.json["status"], len(texts(page))) == (200, "working", 3)


async def test_readings_32_a_challenge_names_the_configured_minimum() -> None:
    """Else the scopes of the token that bound it."""
    async with accounts(conversation_scopes=["orders:write"]) as (bench, _):
        here, _, _ = await begun(bench, **A)
        assert challenge(await bench.read(here)).params == {"scope": "orders:write"}
    async with accounts() as (bench, _):
        here, _, _ = await begun(bench, **WIDER)
        assert (await bench.read(here, **A)).status == 200
        assert challenge(await bench.read(here)).params == {"scope": "orders:read orders:write"}


@pytest.mark.requirement("papaver-96")
async def test_readings_33_where_access_is_signed_in_nothing_starts_signed_out() -> None:
    """401 with the scopes and without an error code; the message id stays free, and signed in it starts."""
    async with accounts(access="signed_in") as (bench, _):
        message = {"message": bench.message()}
        refused = await bench.send("POST", "", message)
        assert (refused.status, challenge(refused).params) == (401, {"scope": "orders:read orders:write"})
        assert (await bench.send("POST", "", {"message": {**message["message"], "text": "Other"}}, **A)).status == 201
        await bench.company.sessions.end(ClientId(CLIENT), SessionId("sid_Yx2b7Qd"))
        assert (await bench.send("POST", "", message)).error == "session_ended"
    async with accounts(access="signed_in", conversation_scopes=["orders:read"]) as (bench, _):
        assert challenge(await bench.start()).params == {"scope": "orders:read"}


async def held(bench: CompanyBench, conversation: str, **who: Any) -> asyncio.Task[Answer]:
    """A read that waits at the end of the log."""
    cursor = (await bench.read(conversation, **who)).json["cursor"]
    task = asyncio.create_task(bench.read(conversation, f"cursor={cursor}&wait=25", **who))
    await bench.held(1)
    return task


@pytest.mark.requirement("papaver-97")
async def test_readings_3_a_signed_out_poll_gets_nothing_of_an_account() -> None:
    """Another Session signs in and says something: the poll gets the challenge, not the message."""
    async with accounts() as (bench, table):
        here, _, _ = await begun(bench)
        poll = await held(bench, here)
        await bench.say(here, "private", sid="sid_two", **A)
        answer = await poll
        assert (answer.status, answer.response.body) == (401, b"")
        assert table.rechecks == 0


@pytest.mark.requirement("papaver-97")
async def test_readings_3_a_poll_whose_token_was_revoked_gets_no_event() -> None:
    """What happens then is for a token that still is one."""
    async with accounts() as (bench, table):
        here, _, _ = await begun(bench, **A)
        poll = await held(bench, here, **A)
        table.revoke("token-a")
        await bench.say(here, "private", sid="sid_two", **WIDER)
        answer = await poll
        assert (answer.status, challenge(answer).params["error"]) == (401, "invalid_token")
        assert table.rechecks == 1


@pytest.mark.requirement("papaver-97")
async def test_readings_3_a_poll_whose_token_expired_gets_no_event() -> None:
    """Also when nothing was revoked."""
    async with accounts() as (bench, table):
        short = bearer(table.issue("short", "acc_a", "orders:read", until=NOW + 60))
        here, _, _ = await begun(bench, **short)
        poll = await held(bench, here, **short)
        bench.clock.advance(60)
        await bench.say(here, "private", sid="sid_two", **A)
        answer = await poll
        assert (answer.status, challenge(answer).params["error"]) == (401, "invalid_token")


@pytest.mark.requirement("papaver-97")
async def test_readings_3_a_poll_is_held_no_longer_than_its_token_lives() -> None:
    """A second here, although 25 were asked for; a token without an end is held as ever."""
    async with accounts() as (bench, table):
        short = bearer(table.issue("short", "acc_a", "orders:read", until=NOW + 1))
        here, _, _ = await begun(bench, **short)
        begin = asyncio.get_running_loop().time()
        poll = await held(bench, here, **short)
        bench.clock.advance(1)
        assert challenge(await poll).params["error"] == "invalid_token"
        assert asyncio.get_running_loop().time() - begin < 10


async def test_readings_3_a_poll_with_a_good_token_gets_its_event() -> None:
    """Checked once, when there is something to say."""
    async with accounts() as (bench, table):
        here, _, _ = await begun(bench, **A)
        poll = await held(bench, here, **A)
        await bench.say(here, "yours", sid="sid_two", **WIDER)
        assert texts(await poll) == ["yours"]
        assert table.rechecks == 1

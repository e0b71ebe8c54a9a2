"""What a Company makes of the Session header on the wire, in the order of readings 5 (5.2, 5.3, 5.5, 5.6, 7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.jose.keys import PrivateKey
from papaver.ports.system import FetchFault
from papaver.protocol.errors import SessionEnded
from papaver.protocol.terms import ClientId, SessionId, UserId
from papaver.testing.company import Answer, company_bench
from papaver.testing.keys import OMIT, AgentKeys

pytestmark = pytest.mark.anyio

CLIENT = ClientId("https://agent.example/agent.json")
SID = SessionId("sid_Yx2b7Qd")
OTHER = AgentKeys("https://other.example/agent.json")


def refused(answer: Answer) -> tuple[int, str | None]:
    """Status and code, having checked that it is an error as 5.3 and 8.13 want it."""
    assert answer.headers.first("content-type") == "application/json"
    assert answer.headers.first("cache-control") == "no-store"
    assert isinstance(answer.json["error_description"], str)
    return answer.status, answer.error


FAULTS: dict[str, dict[str, Any]] = {
    "other audience": {"aud": "https://other.example"},
    "audience in another case": {"aud": "https://Example.com"},
    "other method": {"htm": "GET"},
    "other URL": {"htu": "https://api.example.com/poppy/conversations/"},
    "long ago": {"iat": 1_790_900_000 - 600},
    "far ahead": {"iat": 1_790_900_000 + 600},
    "no sub": {"sub": OMIT},
    "no sid": {"sid": OMIT},
    "an ath without a token": {"ath": "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"},
    "other typ": {"jose": {"typ": "JWT"}},
    "no delegation": {"jose": {"poppy_dlg": OMIT}},
    "a key of its own": {"key": PrivateKey.generate()},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.requirement("5.3-18", "5.3-20", "7-30")
async def test_a_failed_check_is_400_in_json(fault: str) -> None:
    """Whatever fails, it is never a 401, and no state of that User is made or touched."""
    async with company_bench(turns=False) as bench:
        assert refused(await bench.start(**FAULTS[fault])) == (400, "invalid_session")
        assert await bench.rows() == []


@pytest.mark.requirement("7-30")
async def test_a_missing_header_and_a_refused_client_get_the_same_code() -> None:
    """The three triggers of section 7."""
    async with company_bench(turns=False) as bench:
        missing = await bench.start(headers={"poppy-session": None})
        assert refused(missing) == (400, "invalid_session")
        await bench.company.clients.judge(CLIENT, "blocked")
        assert refused(await bench.start()) == (400, "invalid_session")


@pytest.mark.parametrize(
    ("method", "suffix"),
    [("POST", ""), ("POST", "/x/messages"), ("GET", "/x/events"), ("POST", "/x/handoff"), ("POST", "/x/close")],
)
@pytest.mark.requirement("5.3-01", "5.3-21", "8.2-01")
async def test_every_conversation_request_verifies_the_header(method: str, suffix: str) -> None:
    """Each of the five, whatever it would need of the Session."""
    async with company_bench(turns=False) as bench:
        assert refused(await bench.send(method, suffix, headers={"poppy-session": None})) == (400, "invalid_session")
        assert refused(await bench.send(method, suffix, {}, aud="https://x.example")) == (400, "invalid_session")


@pytest.mark.requirement("5.6-01")
async def test_no_request_needs_a_cookie_and_no_answer_sets_one() -> None:
    """A client without a cookie jar does everything; one that sends a cookie is treated alike."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start(headers={"cookie": "poppy-session=abc; sid=1"})
        assert answer.status == 201
        assert answer.headers.all("set-cookie") == ()


@pytest.mark.requirement("5.6-04")
@pytest.mark.parametrize("name", ["access_token", "poppy-session", "Poppy_Session", "access%5Ftoken"])
async def test_b10_a_credential_in_the_url_is_refused_even_beside_a_valid_header(name: str) -> None:
    """Alone it counts as absent; beside a header the request is refused, because URLs end up in logs."""
    async with company_bench(turns=False) as bench:
        alone = await bench.send("GET", "/x/events", query=f"{name}=abc", headers={"poppy-session": None})
        assert refused(alone) == (400, "invalid_session")
        beside = await bench.send("GET", "/x/events", query=f"wait=0&{name}=abc")
        assert refused(beside) == (400, "invalid_request")


@pytest.mark.requirement("ca-16")
@pytest.mark.parametrize("name", ["poppy-session", "poppy-version", "content-type"])
async def test_c89_a_header_that_is_there_twice_is_refused(name: str) -> None:
    """Two readers of one request could otherwise see two Sessions, versions or kinds of body (B10)."""
    async with company_bench(turns=False) as bench:
        url = bench.company.offer.endpoint
        twice = {
            "poppy-session": bench.agent.header("POST", url, bench.company.id, now=bench.clock.now()),
            "poppy-version": "0.4",
            "content-type": "application/json",
        }[name]
        answer = await bench.start(more_headers=((name, twice),))
        codes = {"poppy-session": "invalid_session", "poppy-version": "version_unsupported"}
        assert refused(answer) == (400, codes.get(name, "invalid_request"))


async def test_c89_extensions_in_two_fields_are_one_list() -> None:
    """RFC 9651 joins them; it is not one of the headers that must be there once."""
    async with company_bench(turns=False) as bench:
        fields = (("poppy-extensions", '"a.example/x";v="1"'), ("poppy-extensions", '"b.example/y";v="2"'))
        message = bench.message(extensions={"b.example/y": {"n": 1}})
        started = await bench.send("POST", "", {"message": message}, query="wait=0", more_headers=fields)
        assert started.json["events"][0]["message"]["extensions"] == {"b.example/y": {"n": 1}}


@pytest.mark.requirement("5.2-26")
async def test_b7_the_sample_delegations_typ_is_refused_and_named() -> None:
    """The draft's sample says pap-delegation+jwt, its prose poppy-delegation+jwt (readings 16)."""
    async with company_bench(turns=False) as bench:
        delegation = bench.agent.delegation(bench.clock.now(), jose={"typ": "pap-delegation+jwt"})
        answer = await bench.start(delegation=delegation)
        assert refused(answer) == (400, "invalid_session")
        assert "typ" in answer.json["error_description"]


@pytest.mark.requirement("5.2-29")
@pytest.mark.parametrize(
    "jwk",
    ["a string", [], {"kty": "EC"}, PrivateKey.generate().private_jwk(), {"kty": "oct", "k": "AAAA"}, None],
    ids=["string", "array", "no curve", "private", "symmetric", "null"],
)
async def test_b1_a_malformed_cnf_jwk_is_invalid_session(jwk: object) -> None:
    """Never a 500."""
    async with company_bench(turns=False) as bench:
        delegation = bench.agent.delegation(bench.clock.now(), cnf={"jwk": jwk})
        assert refused(await bench.start(delegation=delegation)) == (400, "invalid_session")


@pytest.mark.parametrize("segments", ["", ".", "..", "a.b.c", "é.b.c", "e30.e30.e30", "A" * 9000, '"x"'])
@pytest.mark.requirement("5.3-18")
async def test_a_malformed_header_is_invalid_session(segments: str) -> None:
    """Whatever the field holds."""
    async with company_bench(turns=False) as bench:
        assert refused(await bench.start(headers={"poppy-session": segments})) == (400, "invalid_session")


@pytest.mark.requirement("papaver-15")
async def test_a_header_above_the_limit_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """It is measured before it is decoded; the limit is a setting."""
    async with company_bench(turns=False) as bench:
        assert refused(await bench.start(padding="x" * 8000)) == (400, "invalid_session")
        assert json.loads(caplog.records[-1].message)["rule"] == "session.header-size"
        assert (await bench.start(padding="x" * 4000)).status == 201


@pytest.mark.requirement("ca-111")
async def test_c6_a_refused_session_is_told_before_the_body_is_read() -> None:
    """Malformed JSON behind it changes nothing; the body is not even asked for."""
    async with company_bench(turns=False) as bench:
        refusals: list[dict[str, Any]] = [{"aud": "https://x.example"}, {"headers": {"poppy-session": None}}]
        for options in refusals:
            answer = await bench.send("POST", "", raw=b"{", unread=True, **options)
            assert refused(answer) == (400, "invalid_session")
        assert refused(await bench.send("POST", "", raw=b"{")) == (400, "invalid_request")


@pytest.mark.requirement("5.5-03", "5.3-19", "7-32")
async def test_c6_an_ended_session_is_told_before_the_body_is_read() -> None:
    """And at every route; each gives the same answer."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert await bench.company.sessions.end(CLIENT, SID)
        answers = [
            await bench.send("POST", "", raw=b"{", unread=True),
            await bench.say(conversation),
            await bench.read(conversation),
            await bench.read(conversation, "wait=nonsense"),
            await bench.send("GET", "/not%20an%20id/events"),
            await bench.send("POST", f"/{conversation}/close", {}),
        ]
        assert {refused(answer) for answer in answers} == {(400, "session_ended")}
        assert len({answer.response.body for answer in answers}) == 1
        assert not await bench.company.sessions.end(CLIENT, SID)


@pytest.mark.requirement("5.5-03")
async def test_a_session_that_another_process_ended_is_told_at_the_next_request() -> None:
    """Also where nothing but the Session's row would say so: the row that this process remembers is not believed."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        tables = await bench.company.store.tables(bench.company.id)
        await tables.sessions.end(CLIENT, SID, bench.clock.now())
        assert refused(await bench.send("POST", "", raw=b"{")) == (400, "session_ended")
        assert refused(await bench.say(conversation)) == (400, "session_ended")
        assert refused(await bench.read(conversation)) == (400, "session_ended")


@pytest.mark.requirement("5.5-07", "8.2-07")
async def test_a_new_session_continues_the_conversation_of_an_ended_one() -> None:
    """The conversation is the User's, the Session's own state is not: its row is another."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await bench.company.sessions.end_user(CLIENT, UserId("usr_dana"))
        assert refused(await bench.say(conversation)) == (400, "session_ended")
        assert (await bench.say(conversation, sid="sid_new")).status == 202
        assert len({row.key for row in await bench.rows()}) == 2


@pytest.mark.requirement("5.5-01", "5.5-04")
async def test_sessions_are_forgotten_when_idle_and_remembered_when_ended() -> None:
    """A forgotten `sid` starts anew, with another User ID even; an ended one does so only after its retention."""
    async with company_bench(turns=False) as bench:
        limits = bench.company.limits
        await bench.start()
        bench.clock.advance(limits.session_idle + 1)
        assert (await bench.start(sub="usr_robin")).status == 201
        await bench.company.sessions.end(CLIENT, SID)
        bench.clock.advance(limits.session_remembered - 1)
        assert await bench.company.sessions.sweep() == 0
        assert refused(await bench.start(sub="usr_robin")) == (400, "session_ended")
        bench.clock.advance(2)
        assert await bench.company.sessions.sweep() == 1
        assert (await bench.start(sub="usr_robin")).status == 201


@pytest.mark.requirement("5.5-01")
async def test_an_idle_sessions_row_is_purged() -> None:
    """The record with User ID and Agent ID lives only as long as the Session."""
    async with company_bench(turns=False) as bench:
        await bench.start(agent_id="agt_1")
        assert [(row.user_id, row.agent_id) for row in await bench.rows()] == [("usr_dana", "agt_1")]
        bench.clock.advance(bench.company.limits.session_idle + 1)
        assert await bench.company.sessions.sweep() == 1
        assert await bench.rows() == []


@pytest.mark.requirement("5.3-12", "5-01")
async def test_two_clients_with_one_sid_have_two_sessions() -> None:
    """The lookup is by the pair: one's end is not the other's, and neither sees the other's conversation."""
    async with company_bench(turns=False) as bench:
        bench.documents.publish(OTHER)
        mine = await bench.start()
        assert (await bench.start(agent=OTHER)).status == 201
        await bench.company.sessions.end(CLIENT, SID)
        assert refused(await bench.start()) == (400, "session_ended")
        assert (await bench.start(agent=OTHER)).status == 201
        assert refused(await bench.read(mine.json["conversation_id"], agent=OTHER)) == (404, "conversation_not_found")


@pytest.mark.requirement("5.3-14")
@pytest.mark.parametrize("claims", [{"sub": "usr_robin"}, {"agent_id": "agt_1"}])
async def test_a_known_sid_stays_with_its_user_and_agent(claims: dict[str, Any]) -> None:
    """Another User ID, or an Agent ID that comes later, fails the Session check."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        assert refused(await bench.start(**claims)) == (400, "invalid_session")


@pytest.mark.requirement("5.3-03")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_b13_a_redirected_client_document_is_refused(status: int) -> None:
    """Its target, which may be an address inside, is never asked for."""
    async with company_bench(turns=False) as bench:
        bench.documents.failing[CLIENT] = status
        assert refused(await bench.start()) == (400, "invalid_session")
        assert bench.documents.asked == [CLIENT]


@pytest.mark.requirement("5.3-04")
async def test_b13_a_refused_address_of_a_key_set_is_invalid_session() -> None:
    """The fetcher judges addresses; its refusal is the request's. It is not a 503: asking again helps nobody."""
    async with company_bench(turns=False) as bench:
        bench.documents.failing[bench.agent.jwks_uri] = FetchFault.REFUSED
        assert refused(await bench.start()) == (400, "invalid_session")


async def test_b13_every_fault_of_a_fetched_document_looks_the_same_from_outside() -> None:
    """Who names a `client_id` learns nothing of what is there: refused, no JSON, another's document, no keys."""
    answers: set[bytes] = set()
    for kind in ("refused", "missing", "no JSON", "another's", "no keys", "redirect", "huge"):
        async with company_bench(turns=False) as bench:
            match kind:
                case "refused":
                    bench.documents.failing[CLIENT] = FetchFault.REFUSED
                case "missing":
                    del bench.documents.bodies[CLIENT]
                case "no JSON":
                    bench.documents.bodies[CLIENT] = b"<html>root:x:0:0</html>"
                case "another's":
                    bench.documents.bodies[CLIENT] = json.dumps(OTHER.metadata()).encode()
                case "no keys":
                    bench.documents.bodies[bench.agent.jwks_uri] = b'{"keys": []}'
                case "redirect":
                    bench.documents.failing[bench.agent.jwks_uri] = 302
                case _:
                    bench.documents.bodies[CLIENT] = b'{"client_id": "' + b"x" * 300_000 + b'"}'
            answer = await bench.start()
            assert refused(answer) == (400, "invalid_session"), kind
            answers.add(answer.response.body)
    assert len(answers) == 1


async def test_readings_15_a_check_that_cannot_be_made_is_503_and_says_when_to_come_back() -> None:
    """`invalid_session` would tell the agent to stop until it has mended what is not broken."""
    async with company_bench(turns=False) as bench:
        bench.documents.failing[CLIENT] = FetchFault.UNREACHABLE
        answer = await bench.start()
        assert refused(answer) == (503, "temporarily_unavailable")
        assert 1 <= int(answer.headers.first("retry-after") or 0) <= 60
        del bench.documents.failing[CLIENT]
        bench.clock.advance(int(answer.headers.first("retry-after") or 0))
        assert (await bench.start()).status == 201


@pytest.mark.requirement("5.3-23")
async def test_a_session_jwt_posts_once_and_reads_as_often_as_it_likes() -> None:
    """Replays are refused where they change something (readings 49)."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert {(await bench.read(conversation, jti="one")).status for _ in range(3)} == {200}
        assert (await bench.say(conversation, "a", jti="two")).status == 202
        assert refused(await bench.say(conversation, "b", jti="two")) == (400, "invalid_session")
        assert len((await bench.read(conversation)).json["events"]) == 2


async def test_an_api_of_the_app_sees_an_ended_session_at_once() -> None:
    """Nothing there looks at the Session again, so its row is asked for each time."""
    async with company_bench(turns=False) as bench:
        assert (await bench.verify("GET", "/orders")).sid == SID
        tables = await bench.company.store.tables(bench.company.id)
        await tables.sessions.end(CLIENT, SID, bench.clock.now())
        with pytest.raises(SessionEnded, check=lambda error: error.rule == "session.not-ended"):
            await bench.verify("GET", "/orders")

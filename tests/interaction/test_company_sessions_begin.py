"""A Session begins by being used, gives no account, and is told of another version alike at an API."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.errors import VersionUnsupported
from papaver.testing.company import company_bench
from papaver.web.messages import Headers

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("5-03")
@pytest.mark.parametrize(
    ("method", "suffix", "status"),
    [
        ("POST", "", 201),
        ("GET", "/cnv_none/events", 404),
        ("POST", "/cnv_none/close", 404),
        ("POST", "/cnv_none/messages", 400),
    ],
)
async def test_the_first_request_with_a_sid_begins_its_session(method: str, suffix: str, status: int) -> None:
    """At whatever endpoint, and with whatever outcome: there is no call to start one."""
    async with company_bench(turns=False) as bench:
        assert await bench.rows() == []
        body = {"message": bench.message()} if not suffix else {}
        answer = await bench.send(method, suffix, body, sid="sid_random", agent_id="agt_1")
        assert answer.status == status
        (row,) = await bench.rows()
        assert (row.client_id, row.sid) == (bench.agent.client_id, "sid_random")
        assert (row.user_id, row.agent_id, row.ended_at) == ("usr_dana", "agt_1", None)


@pytest.mark.requirement("5-03", "5.3-08")
async def test_an_apis_request_begins_one_too_and_whatever_its_jwt_says_gives_no_account() -> None:
    """Signed out, because there is no access token: claims that look like one are ignored."""
    async with company_bench(turns=False) as bench:
        claims: dict[str, Any] = {
            "scope": "orders:write",
            "scopes": ["admin"],
            "account_id": "acc_1",
            "act": {"sub": "x"},
        }
        session = await bench.verify("GET", "/cart", **claims)
        assert (session.account_id, session.scopes) == (None, frozenset())
        assert [row.sid for row in await bench.rows()] == [session.sid]


@pytest.mark.requirement("8.7-01")
async def test_a_conversation_is_working_until_its_agent_has_answered() -> None:
    """What the Personal Agent reads meanwhile says so, and it reads again."""
    async with company_bench(turns=False) as bench:
        started = await bench.start()
        assert started.json["status"] == "working"
        conversation = started.json["conversation_id"]
        assert (await bench.read(conversation)).json["status"] == "working"
    async with company_bench() as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert (await bench.idle(conversation)).json["status"] == "idle"


@pytest.mark.requirement("7-34")
async def test_an_api_tells_of_a_version_alike_whether_it_is_missing_or_another() -> None:
    """400 in JSON, the same octets for each."""
    async with company_bench(turns=False) as bench:
        header = bench.agent.header(
            "GET", bench.company.offer.app_url + "/cart", bench.company.id, now=bench.clock.now()
        )
        bodies: set[bytes] = set()
        for version in ([], [("poppy-version", "0.3")], [("poppy-version", "1.0")], [("poppy-version", "x")]):
            incoming = bench.bare("GET", "/cart", "", Headers([("poppy-session", header), *version]))
            with pytest.raises(VersionUnsupported) as caught:
                await bench.company.verify_api(incoming)
            answer = bench.company.api_error(caught.value, incoming)
            assert (answer.status, answer.headers.first("content-type")) == (400, "application/json")
            assert answer.headers.first("www-authenticate") is None
            bodies.add(answer.body)
        (body,) = bodies
        assert b'"version_unsupported"' in body

"""How a Company says no: so many requests a minute, and one line in its log for each refusal (5.6; B58)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.jose.keys import PrivateKey
from papaver.protocol.terms import ClientId
from papaver.testing.company import Answer, company_bench

pytestmark = pytest.mark.anyio

CLIENT = ClientId("https://agent.example/agent.json")


def refused(answer: Answer) -> tuple[int, str | None]:
    """Status and code."""
    return answer.status, answer.error


@pytest.mark.requirement("5.6-05")
async def test_each_user_has_so_many_requests_a_minute() -> None:
    """429 with Retry-After, which is honest: then it works. Another User is not held up."""
    async with company_bench(turns=False, requests_per_user=5) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        for _ in range(4):
            assert (await bench.read(conversation)).status == 200
        answer = await bench.read(conversation)
        assert refused(answer) == (429, "rate_limited")
        assert (await bench.start(sub="usr_robin", sid="sid_robin")).status == 201
        bench.clock.advance(int(answer.headers.first("retry-after") or 0))
        assert (await bench.read(conversation)).status == 200


@pytest.mark.requirement("5.6-05")
async def test_each_client_has_so_many_requests_a_minute() -> None:
    """However many Users it names."""
    async with company_bench(turns=False, requests_per_client=3) as bench:
        for n in range(3):
            assert (await bench.start(sub=f"usr_{n}", sid=f"sid_{n}")).status == 201
        assert refused(await bench.start(sub="usr_9", sid="sid_9")) == (429, "rate_limited")


@pytest.mark.requirement("5.6-05")
async def test_an_address_has_so_many_unverified_requests_a_minute() -> None:
    """Its rubbish is told to wait; what verifies goes on, from the same address even (B58)."""
    async with company_bench(turns=False, requests_per_address=3) as bench:
        faults: list[dict[str, Any]] = [{"headers": {"poppy-session": None}}, {"headers": {"poppy-version": "9.9"}}]
        faults.append({"headers": {"poppy-session": "rubbish"}})
        for options in faults:
            assert (await bench.start(**options)).status == 400
        assert refused(await bench.start(aud="https://x.example")) == (429, "rate_limited")
        assert (await bench.start()).status == 201
        assert (await bench.start(aud="https://x.example", peer="198.51.100.1")).status == 400


async def test_one_line_is_logged_for_each_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """JSON with the rule, the client and the private detail; without the credential, whatever it held."""
    async with company_bench(turns=False) as bench:
        header = bench.agent.header("POST", bench.company.offer.endpoint, "https://x.example", now=bench.clock.now())
        await bench.start(headers={"poppy-session": header})
        (record,) = caplog.records
        line = json.loads(record.message)
        assert line["rule"] == "session.aud-is-company"
        assert (line["client"], line["proven"], line["status"]) == (CLIENT, False, 400)
        assert (line["company"], line["peer"]) == ("https://example.com", "192.0.2.7")
        assert "https://x.example" in line["detail"]
        assert not any(part in record.message for part in header.split("."))


async def test_b58_what_is_logged_cannot_steer_a_terminal_or_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Control characters of a `kid` are escaped, and a long one is cut."""
    async with company_bench(turns=False) as bench:
        forged = '\n{"event": "accepted"}\x1b[2J' + "x" * 5000
        delegation = bench.agent.delegation(bench.clock.now(), jose={"kid": forged})
        await bench.start(delegation=delegation)
        (record,) = caplog.records
        assert json.loads(record.message)["rule"]
        assert record.message.isprintable()
        assert record.message.isascii()
        assert len(record.message) < 4000


async def test_a_claimed_client_is_told_from_a_proven_one(caplog: pytest.LogCaptureFixture) -> None:
    """Who reads the log must not blame a client for what a stranger signed."""
    async with company_bench(turns=False) as bench:
        await bench.start(key=PrivateKey.generate())
        await bench.read("unknown")
        assert [json.loads(record.message)["proven"] for record in caplog.records] == [False, True]


async def test_a_cached_failure_is_an_error_of_its_own_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand requests that meet it add nothing to it."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        bench.documents.failing[CLIENT] = 404
        for _ in range(200):
            await bench.start()
        assert len({record.message for record in caplog.records}) == 1

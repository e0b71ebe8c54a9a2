"""What one User, one client or a stranger tries to take from all others, and how much of it a Company gives."""

from __future__ import annotations

import pytest

from papaver.testing.company import Answer, CompanyBench, company_bench

pytestmark = pytest.mark.anyio


async def tell(bench: CompanyBench, conversation: str, **members: object) -> Answer:
    return await bench.send("POST", f"/{conversation}/messages", {"message": bench.message(None, **members)})


@pytest.mark.requirement("papaver-25")
async def test_a_context_cannot_grow_with_every_message() -> None:
    """What would make it too large is refused and not recorded; the same fields said anew, or cleared, are taken."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        first = {f"first_{n}": "x" * 100 for n in range(60)}
        statuses = [
            (await tell(bench, conversation, context=context)).status
            for context in (
                first,
                {f"second_{n}": n for n in range(60)},
                first,
                dict.fromkeys(first),
                {"a": "x" * 16_384},
            )
        ]
        assert statuses == [202, 413, 202, 202, 413]
        answer = await bench.send("POST", "", {"message": bench.message(context={"a": "x" * 16_384})})
        assert (answer.status, answer.error) == (413, "invalid_request")
        assert len((await bench.read(conversation)).json["events"]) == 4
        assert (await tell(bench, conversation, context={"second": 1})).status == 202


async def test_a_company_may_take_less_context() -> None:
    """`context_bytes` is a setting."""
    async with company_bench(turns=False, context_bytes=256) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert (await tell(bench, conversation, context={"a": "x" * 248})).status == 202
        assert (await tell(bench, conversation, context={"a": "x" * 249})).status == 413


async def test_a_refused_message_leaves_nothing_but_its_session() -> None:
    """No event, no receipt, no replay key: its JWT and its id are as good as new."""
    async with company_bench(turns=False, context_bytes=256) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        url, large = f"/{conversation}/messages", bench.message(context={"a": "x" * 256})
        refused = [await bench.send("POST", url, {"message": large}, jti="jti_1") for _ in range(2)]
        assert [(answer.status, answer.error) for answer in refused] == [(413, "invalid_request")] * 2
        small = {"message": {**large, "context": {"a": "x"}}}
        taken = [await bench.send("POST", url, small, jti="jti_1") for _ in range(2)]
        assert [(answer.status, answer.error) for answer in taken] == [(202, None), (400, "invalid_session")]
        assert len((await bench.read(conversation)).json["events"]) == 2

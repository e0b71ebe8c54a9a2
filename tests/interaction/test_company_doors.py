"""Hostile input at every door of a Company: an error that the specification names, within limits, without a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio

AGENT = AgentKeys()
CODES = {
    400: {"invalid_session", "session_ended", "version_unsupported", "invalid_request", "invalid_cursor"},
    404: {"conversation_not_found", "not_found"},
    405: {"method_not_allowed"},
    409: {"conversation_closed", "message_id_conflict"},
    413: {"invalid_request"},
    429: {"rate_limited"},
}
field_text = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def named(answer: Answer) -> bool:
    """Whether it is an error that the specification, or HTTP, has a name for."""
    return answer.error in CODES.get(answer.status, ())


async def untouched(bench: CompanyBench, conversation: str) -> bool:
    """Whether the conversation is as it was begun."""
    page = await bench.read(conversation)
    return len(page.json["events"]) == 1 and page.json["status"] == "working"


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=150)
async def test_any_body_is_taken_whole_or_refused(body: bytes) -> None:
    """Octets and JSON of every shape, at each POST."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        for suffix in ("", f"/{conversation}/messages"):
            assert named(await bench.send("POST", suffix, raw=body))
        handoff = await bench.send("POST", f"/{conversation}/handoff", raw=body)
        is_object = not body.strip() or _reads_as_object(body)
        assert handoff.status == 202 if is_object else named(handoff)


def _reads_as_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body.decode()), dict) and not body.startswith(b"\xef\xbb\xbf")
    except ValueError:
        return False


@given(st.dictionaries(st.sampled_from(["id", "author", "text", "data", "context", "extensions", "role"]), json_values))
@settings(max_examples=150)
async def test_any_message_is_recorded_as_it_can_be_read_or_refused(members: dict[str, Any]) -> None:
    """A valid message with members put in place of its own."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        answer = await bench.send("POST", "", {"message": {**bench.message(), **members}}, query="wait=0")
        if answer.status == 201:
            again = await bench.read(answer.json["conversation_id"])
            assert again.json["events"] == answer.json["events"]
        else:
            assert named(answer)


@given(field_text, st.sampled_from(["poppy-session", "poppy-version", "poppy-extensions", "content-type", "cookie"]))
@settings(max_examples=150)
async def test_any_header_field_is_harmless(value: str, name: str) -> None:
    """In place of the right one; only where it is wrong is there no trace."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        answer = await bench.start(headers={name: value})
        assert answer.status == 201 or (named(answer) and len(await bench.rows()) <= 1)


@given(field_text | st.lists(st.tuples(st.sampled_from(["wait", "cursor", "x"]), field_text), max_size=3))
@settings(max_examples=150)
async def test_any_query_is_harmless(query: Any) -> None:
    """At a read and at a POST; a refused one records nothing (readings 22)."""
    text = query if isinstance(query, str) else "&".join(f"{name}={value}" for name, value in query)
    async with company_bench(turns=False, agent=AGENT, wait_cap=0) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        read = await bench.read(conversation, text)
        assert read.status == 200 or named(read)
        said = await bench.say(conversation, query=text)
        assert said.status == 202 or (named(said) and await untouched(bench, conversation))


@given(field_text, st.sampled_from(["/{}", "/{}/events", "/x/{}", "/{}/close", "{}"]))
@settings(max_examples=150)
async def test_any_path_is_harmless(part: str, form: str) -> None:
    """Below the endpoint, whatever the method."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        suffix = "/" + form.format(part.replace("?", "").replace("#", "")).lstrip("/")
        for method in ("GET", "POST", "PATCH"):
            header = AGENT.header(method, bench.company.offer.endpoint, bench.company.id, now=bench.clock.now())
            assert named(await bench.send(method, suffix, {}, headers={"poppy-session": header}))


@given(
    st.sampled_from(["iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti", "agent_id", "ath"]),
    json_values,
)
@settings(max_examples=200)
async def test_any_claim_is_taken_or_refused(claim: str, value: Any) -> None:
    """Correctly signed, whatever it says."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        answer = await bench.start(**{claim: value})
        assert answer.status == 201 or (answer.status, answer.error) == (400, "invalid_session")


@given(
    st.sampled_from(["client_id", "jwks_uri", "redirect_uris", "token_endpoint_auth_method", "client_name", "keys"]),
    json_values,
)
@settings(max_examples=150)
async def test_any_client_document_is_used_or_refused(member: str, value: Any) -> None:
    """Whatever a Personal Agent publishes is a fault of its own and never one of ours."""
    async with company_bench(turns=False, agent=AGENT) as bench:
        if member == "keys":
            bench.documents.bodies[AGENT.jwks_uri] = json.dumps({"keys": value}).encode()
        else:
            bench.documents.bodies[AGENT.client_id] = json.dumps(AGENT.metadata(**{member: value})).encode()
        answer = await bench.start()
        assert answer.status == 201 or (answer.status, answer.error) == (400, "invalid_session")

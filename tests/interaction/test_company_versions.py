"""What a Company publishes, and the versions it serves, on the wire (3, 3.1, 3.2, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from papaver.company import Company, Mcp, OpenApi
from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.errors import VersionUnsupported
from papaver.protocol.negotiation import Retirement
from papaver.protocol.terms import ClientId, SessionId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import Answer, company_bench
from papaver.versions import DIALECTS

pytestmark = pytest.mark.anyio

V0_4 = DIALECTS[Version(0, 4)]
V0_5 = replace(V0_4, version=Version(0, 5))
TOMORROW = 1_790_986_400.0


@pytest.fixture
def two_versions(monkeypatch: pytest.MonkeyPatch) -> Mapping[Version, Dialect]:
    """A second version, which differs in nothing but its name."""
    both = {V0_4.version: V0_4, V0_5.version: V0_5}
    monkeypatch.setattr("papaver.company.offer.DIALECTS", both)
    return both


def found(answer: Answer | None) -> Answer:
    assert answer is not None
    return answer


@pytest.mark.requirement("3-01", "3.1-05", "3.1-19")
async def test_the_document_is_served_on_the_domain() -> None:
    """With its members, as JSON that anybody may read and keep for a short while."""
    async with company_bench(turns=False) as bench:
        answer = found(await bench.fetch("/.well-known/poppy.json"))
        assert answer.status == 200
        assert answer.json == {
            "protocol_version": "0.4",
            "organization": {"name": "Example", "domain": "example.com"},
            "agent": {"protocols": [{"type": "poppy", "endpoint": "https://api.example.com/poppy/conversations"}]},
        }
        assert answer.headers.first("content-type") == "application/json"
        assert answer.headers.first("cache-control") == "public, max-age=300"
        assert answer.headers.first("access-control-allow-origin") == "*"


@pytest.mark.requirement("3-09")
async def test_c42_the_document_is_on_the_companys_own_host_only() -> None:
    """A provider's host, on which the endpoint is, and any forged name are left to the app (B18)."""
    async with company_bench(turns=False) as bench:
        for host in ("example.com", "EXAMPLE.com", "example.com:443"):
            answer = found(await bench.fetch("/.well-known/poppy.json", host=host))
            assert answer.json["organization"]["domain"] == "example.com"
        for host in (
            "api.example.com",
            "www.example.com",
            "example.com.evil.example",
            "",
            "example.com:x",
            "[::1]:443",
        ):
            assert await bench.fetch("/.well-known/poppy.json", host=host) is None
            assert await bench.fetch("/.well-known/oauth-protected-resource", host=host) is None


async def test_b20_a_proxy_that_passes_no_host_on_is_named() -> None:
    """Its name for us is configured, and read in no URL."""
    async with company_bench(turns=False, internal_hosts=["Backend.internal"]) as bench:
        answer = found(await bench.fetch("/.well-known/poppy.json", host="backend.internal:8000"))
        assert "internal" not in answer.response.body.decode()


@pytest.mark.requirement("3.2-07", "3.2-02")
async def test_without_an_issuer_there_is_no_resource_metadata() -> None:
    """The 404 is ours, so that no catch-all of the app answers something else."""
    async with company_bench(turns=False) as bench:
        answer = found(await bench.fetch("/.well-known/oauth-protected-resource"))
        assert (answer.status, answer.headers.first("cache-control")) == (404, "no-store")
        assert bench.company.owns("example.com", "/.well-known/oauth-protected-resource")
        assert (await bench.start()).status == 201


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_c1_documents_are_only_read(method: str) -> None:
    """405 with Allow."""
    async with company_bench(turns=False) as bench:
        for path in ("/.well-known/poppy.json", "/.well-known/oauth-protected-resource", "/poppy/healthz"):
            answer = found(await bench.fetch(path, method=method))
            assert (answer.status, answer.headers.first("allow")) == (405, "GET, HEAD")


@pytest.mark.requirement("3.1-20", "3.1-21", "3.1-22")
async def test_what_is_offered_is_listed() -> None:
    """APIs each with type, url and description; the website; absent channels are left out."""
    company = Company(
        domain="example.com",
        name="Example",
        base_url="https://example.com",
        store=MemoryStore(),
        logo_uri="https://example.com/logo.png",
        apis=[OpenApi("https://example.com/openapi.json", "Orders"), Mcp("https://example.com/mcp", "Tools")],
        website=True,
        conversations=False,
    )
    async with company_bench(company) as bench:
        assert found(await bench.fetch("/.well-known/poppy.json")).json == {
            "protocol_version": "0.4",
            "organization": {"name": "Example", "domain": "example.com", "logo_uri": "https://example.com/logo.png"},
            "apis": [
                {"type": "openapi", "url": "https://example.com/openapi.json", "description": "Orders"},
                {"type": "mcp", "url": "https://example.com/mcp", "description": "Tools"},
            ],
            "web": {},
        }
        assert await bench.fetch("/conversations", method="POST") is None


@pytest.mark.requirement("3.4-01", "3.1-04", "3.4-06")
async def test_each_version_has_its_document(two_versions: Mapping[Version, Dialect]) -> None:
    """The preferred one at poppy.json, the others where it says; each states itself and the same domain."""
    async with company_bench(turns=False, protocols=("0.5", "0.4")) as bench:
        top = found(await bench.fetch("/.well-known/poppy.json")).json
        assert top["protocol_version"] == "0.5"
        assert top["supported_versions"] == {"0.4": "https://example.com/.well-known/poppy-0.4.json"}
        other = found(await bench.fetch("/.well-known/poppy-0.4.json")).json
        assert other["protocol_version"] == "0.4"
        assert "supported_versions" not in other
        assert other["organization"] == top["organization"]
        assert await bench.fetch("/.well-known/poppy-0.5.json") is None


async def test_each_request_is_handled_in_its_version(two_versions: Mapping[Version, Dialect]) -> None:
    """One Company, one conversation, two versions; an API sees which one it was."""
    async with company_bench(turns=False, protocols=("0.5", "0.4")) as bench:
        started = await bench.start(headers={"poppy-version": "0.5"})
        conversation = started.json["conversation_id"]
        assert (await bench.read(conversation, headers={"poppy-version": "0.4"})).status == 200
        assert (await bench.verify("GET", "/x", headers={"poppy-version": "0.5"})).version == "0.5"


@pytest.mark.parametrize("version", [None, "", "0.3", "0.40", "1.0", "abc", "0.4.0", "00.4", "0.4 ", "v0.4", "0.04"])
@pytest.mark.requirement("3.4-19", "3.4-20", "3.4-21")
async def test_another_version_is_refused_and_leaves_no_trace(version: str | None) -> None:
    """400 in JSON, before the JWT is looked at: no Session, no conversation."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start(headers={"poppy-version": version})
        assert (answer.status, answer.error) == (400, "version_unsupported")
        assert answer.headers.first("content-type") == "application/json"
        assert await bench.rows() == []
        assert bench.documents.asked == []


async def test_readings_5_the_version_wins_over_a_wrong_session_and_loses_to_a_missing_one() -> None:
    """A client of a future version has to learn that it must renegotiate."""
    async with company_bench(turns=False) as bench:
        wrong = {"poppy-version": "7.0", "poppy-session": "rubbish"}
        assert (await bench.start(headers=wrong)).error == "version_unsupported"
        missing = {"poppy-version": None, "poppy-session": None}
        assert (await bench.start(headers=missing)).error == "invalid_session"


@pytest.mark.requirement("3.4-25")
async def test_a_version_that_ends_says_so_in_its_answers(two_versions: Mapping[Version, Dialect]) -> None:
    """`Deprecation` and `Sunset` on what it answers, errors too; not on those of another version or of none."""
    plan = {"0.4": Retirement(deprecated=1_790_000_000.0, sunset=TOMORROW)}
    async with company_bench(turns=False, protocols=("0.5", "0.4"), retirements=plan) as bench:

        def said(answer: Answer) -> tuple[str | None, str | None]:
            return answer.headers.first("deprecation"), answer.headers.first("sunset")

        ending = ("@1790000000", "Sat, 03 Oct 2026 00:13:20 GMT")
        started = await bench.start(headers={"poppy-version": "0.4"})
        assert said(started) == ending
        assert said(await bench.read("unknown", headers={"poppy-version": "0.4"})) == ending
        assert said(await bench.start(headers={"poppy-version": "0.5"})) == (None, None)
        assert said(await bench.start(headers={"poppy-version": "9.0"})) == (None, None)
        old = await bench.verify("GET", "/x", headers={"poppy-version": "0.4"})
        new = await bench.verify("GET", "/x", headers={"poppy-version": "0.5"})
        assert [name for name, _ in bench.company.retirement(old)] == ["deprecation", "sunset"]
        assert bench.company.retirement(new) == ()


async def test_an_api_checks_the_version_too() -> None:
    """3.4: at every endpoint that verifies the Session header."""
    async with company_bench(turns=False) as bench:
        with pytest.raises(VersionUnsupported) as caught:
            await bench.verify("GET", "/orders", headers={"poppy-version": "0.9"})
        answer = bench.company.api_error(caught.value, bench.bare("GET", "/orders"))
        assert answer.status == 400


@pytest.mark.requirement("3.2-03", "3.2-22", "3.2-05")
async def test_the_identifier_of_a_company_without_issuer_is_its_domain() -> None:
    """Another domain on the same store is another Company: no Session and no conversation is carried over (C3)."""
    store = MemoryStore()
    async with (
        company_bench(turns=False, store=store, domain="a.example") as one,
        company_bench(turns=False, store=store, domain="b.example") as two,
    ):
        two.documents.publish(one.agent)
        started = await one.start()
        assert started.status == 201
        assert (await one.start(aud="https://b.example")).error == "invalid_session"
        answer = await two.read(started.json["conversation_id"], agent=one.agent)
        assert (answer.status, answer.error) == (404, "conversation_not_found")
        assert await two.company.sessions.end(ClientId(one.agent.client_id), SessionId("sid_Yx2b7Qd"))
        assert (await one.start()).status == 201


@pytest.mark.requirement("3.3-08", "3.3-10", "3.4-14")
async def test_undeclared_and_unparsable_extensions_count_as_none() -> None:
    """Content that a message carries is kept, and shown to who declares it (readings 9)."""
    async with company_bench(turns=False) as bench:
        content: dict[str, Any] = {"a.example/x": {"n": 1}, "b.example/y": {}}
        declared = {"poppy-extensions": '"a.example/x";v="9"'}
        started = await bench.send("POST", "", {"message": bench.message(extensions=content)}, headers=declared)
        conversation = started.json["conversation_id"]

        async def shown(field: str | None) -> object:
            page = await bench.read(conversation, headers={"poppy-extensions": field})
            return page.json["events"][0]["message"].get("extensions")

        assert await shown('"a.example/x";v="9"') == {"a.example/x": {"n": 1}}
        assert await shown(None) is None
        assert await shown("operations;v=2,,") is None

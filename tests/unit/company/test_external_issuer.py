"""A Company whose issuer is somebody else's: its keys, its word, its metadata, and what cannot be configured."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from papaver.company import Company, ExternalIssuer, Introspection
from papaver.company.sessions import OpenedSession
from papaver.jose.keys import PrivateKey, write_key_set
from papaver.ports.company import ReplayKey
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.errors import ConfigurationError, InvalidToken, TemporarilyUnavailable
from papaver.protocol.session import VerifiedSession
from papaver.protocol.terms import ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench, company_bench, echo
from papaver.testing.keys import NOW, OMIT, compact
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps
from papaver.web.messages import Headers, Request, Response

pytestmark = pytest.mark.anyio

ISSUER = "https://auth.example.com"
METADATA = f"{ISSUER}/.well-known/oauth-authorization-server"
OPENID = f"{ISSUER}/.well-known/openid-configuration"
JWKS = f"{ISSUER}/jwks"
KEY = PrivateKey.generate()
CLIENT = "https://agent.example/agent.json"


def jwt(key: PrivateKey = KEY, *, typ: str = "at+jwt", kid: str | None = None, **claims: object) -> str:
    """An access token of the issuer (RFC 9068), with `claims` replaced, added or omitted."""
    header = {"typ": typ, "alg": key.alg, "kid": kid or key.kid}
    body: dict[str, object] = {
        "iss": ISSUER,
        "sub": "dana",
        "aud": "https://example.com",
        "client_id": CLIENT,
        "scope": "orders:read",
        "iat": int(NOW),
        "exp": int(NOW) + 300,
        "jti": "tok_1",
        **claims,
    }
    return compact(key, header, body)


class Poster:
    """The issuer's introspection endpoint: `answers` by token; `sent` is what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = {}
        self.sent: list[Request] = []
        self.fault: int | None = None

    async def post(self, request: Request, seconds: float, max_bytes: int) -> Response:
        self.sent.append(request)
        if self.fault == 0:
            raise FetchFailed(FetchFault.UNREACHABLE, "the test says so", url=request.url)
        token = request.body.decode().partition("token=")[2].partition("&")[0]
        body = dumps(self.answers.get(token, {"active": False}))
        return Response(self.fault or 200, Headers([("content-type", "application/json")]), body)


@asynccontextmanager
async def bench_of(
    issuer: ExternalIssuer, poster: Poster | None = None, keys: tuple[PrivateKey, ...] = (KEY,), **options: Any
) -> AsyncGenerator[CompanyBench]:
    """A Company with this issuer, which publishes metadata and `keys`."""
    company = Company(
        domain="example.com",
        name="Example",
        base_url="https://api.example.com/poppy",
        store=MemoryStore(),
        sign_in=issuer,
        **options,
    )
    company.conversation(echo)
    async with company_bench(company, turns=False, poster=poster) as bench:
        bench.documents.bodies[METADATA] = dumps({"issuer": issuer.issuer, "jwks_uri": JWKS})
        publish(bench, *keys)
        yield bench


def publish(bench: CompanyBench, *keys: PrivateKey) -> None:
    bench.documents.bodies[JWKS] = dumps(write_key_set([key.public for key in keys]))


async def verify(bench: CompanyBench, token: str) -> VerifiedSession:
    return await bench.verify("GET", "/orders", token=token)


# ── JWTs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_jwt_of_the_issuer_signs_in() -> None:
    """By the keys that its metadata names; both documents are fetched once."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        for _ in range(3):
            session = await verify(bench, jwt())
            assert (session.account_id, session.scopes) == ("dana", {"orders:read"})
        assert [url for url in bench.documents.asked if url.startswith(ISSUER)] == [METADATA, JWKS]


async def test_the_keys_may_be_named_outright() -> None:
    """Then its metadata is not asked for."""
    async with bench_of(ExternalIssuer(ISSUER, jwks_uri=JWKS)) as bench:
        assert (await verify(bench, jwt())).account_id == "dana"
        assert METADATA not in bench.documents.asked


async def test_an_openid_configuration_will_do() -> None:
    """Where there is nothing at the RFC 8414 URL."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        bench.documents.bodies[OPENID] = bench.documents.bodies.pop(METADATA)
        assert (await verify(bench, jwt())).account_id == "dana"


@pytest.mark.parametrize(
    ("claims", "rule"),
    [
        ({"iss": f"{ISSUER}/"}, "oauth.token-issuer"),
        ({"exp": int(NOW) - 60}, "oauth.token-times"),
        ({"client_id": OMIT, "act": {"client_id": CLIENT}}, "oauth.token-client"),
        ({"sub": ""}, "oauth.token-subject"),
        ({"typ": "JWT"}, "oauth.token-typ"),
        ({"key": PrivateKey.generate(), "kid": KEY.kid}, "jws.signature"),
        ({"aud": "https://other.example"}, "token.for-this-service"),
    ],
)
async def test_a_jwt_that_is_not_good_is_an_invalid_token(claims: Mapping[str, Any], rule: str) -> None:
    """Whoever acts for the client is not the client: `act.client_id` never counts."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        with pytest.raises(InvalidToken, check=lambda error: error.rule == rule):
            await verify(bench, jwt(**claims))
        assert (await verify(bench, jwt(client_id=OMIT, azp=CLIENT))).account_id == "dana"


async def test_an_audience_of_the_operators_is_the_companys() -> None:
    """And no other one is; another Company of the issuer's would have its own."""
    async with bench_of(ExternalIssuer(ISSUER, audience=["urn:example:api"])) as bench:
        assert (await verify(bench, jwt(aud=["urn:example:api", "urn:more"]))).account_id == "dana"
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.for-this-service"):
            await verify(bench, jwt(aud="urn:more"))


@pytest.mark.requirement("papaver-75")
async def test_a_verified_jwt_is_remembered_until_it_ends() -> None:
    """It is verified once; when its time is over it is refused, whatever is remembered."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        token = jwt(exp=int(NOW) + 30)
        await verify(bench, token)
        bench.clock.advance(29)
        await verify(bench, token)
        bench.clock.advance(7)
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "oauth.token-times"):
            await verify(bench, token)


@pytest.mark.requirement("papaver-75")
async def test_a_token_ends_with_the_key_that_signed_it() -> None:
    """Once a newer key set is there."""
    other = PrivateKey.generate()
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        token = jwt(exp=int(NOW) + 100_000)
        await verify(bench, token)
        publish(bench, other)
        bench.clock.advance(3601)
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "jws.kid"):
            await verify(bench, token)
        assert (await verify(bench, jwt(other, exp=int(NOW) + 100_000))).account_id == "dana"


async def test_an_unknown_key_is_asked_for_once_per_interval() -> None:
    """A new key is found at once; made-up names cost the issuer one request each half minute."""
    other = PrivateKey.generate()
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        await verify(bench, jwt())
        publish(bench, KEY, other)
        assert (await verify(bench, jwt(other))).account_id == "dana"
        for number in range(3):
            with pytest.raises(InvalidToken, check=lambda error: error.rule == "jws.kid"):
                await verify(bench, jwt(kid=f"made-up-{number}"))
        assert bench.documents.asked.count(JWKS) == 2


@pytest.mark.requirement("papaver-74")
@pytest.mark.parametrize("url", [METADATA, JWKS])
@pytest.mark.parametrize("fault", [FetchFault.UNREACHABLE, FetchFault.REFUSED, 404, 503])
async def test_what_the_issuer_does_not_publish_is_no_fault_of_the_token(url: str, fault: FetchFault | int) -> None:
    """503: its holder keeps it, and it works again when the issuer does."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        bench.documents.failing[url] = fault
        with pytest.raises(TemporarilyUnavailable, check=lambda error: error.retry_after >= 1):
            await verify(bench, jwt())
        del bench.documents.failing[url]
        bench.clock.advance(60)
        assert (await verify(bench, jwt(iat=int(NOW) + 60))).account_id == "dana"


@pytest.mark.requirement("papaver-74")
@pytest.mark.parametrize(
    "metadata",
    [{"issuer": f"{ISSUER}/", "jwks_uri": JWKS}, {"issuer": ISSUER}, {"issuer": ISSUER, "jwks_uri": "http://x"}, []],
    ids=["another issuer", "no keys", "keys over http", "no object"],
)
async def test_b37_metadata_that_cannot_be_used_is_no_fault_of_the_token(metadata: object) -> None:
    """The issuer is compared character for character (RFC 8414 3.3)."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        bench.documents.bodies[METADATA] = dumps(metadata)
        with pytest.raises(TemporarilyUnavailable):
            await verify(bench, jwt())


async def test_newer_keys_that_are_none_are_no_fault_of_the_token() -> None:
    """A token by a key that is not known yet, while the issuer's set is broken."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        await verify(bench, jwt())
        bench.documents.bodies[JWKS] = dumps({"keys": []})
        with pytest.raises(TemporarilyUnavailable):
            await verify(bench, jwt(PrivateKey.generate()))


# ── introspection ────────────────────────────────────────────────────────────────────────────────────────────────

ASK = Introspection.basic(f"{ISSUER}/introspect", "shop", Secret("a secret"))
ACTIVE: dict[str, object] = {"active": True, "client_id": CLIENT, "sub": "dana", "scope": "orders:read"}


async def test_the_issuers_word_signs_in_and_is_asked_for_each_time() -> None:
    """What is revoked there stops here with the next request (C58)."""
    poster = Poster()
    async with bench_of(ExternalIssuer(ISSUER, introspection=ASK), poster) as bench:
        poster.answers["opaque"] = ACTIVE
        assert (await verify(bench, "opaque")).account_id == "dana"
        poster.answers["opaque"] = {"active": False}
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "oauth.token-active"):
            await verify(bench, "opaque")
        assert len(poster.sent) == 2
        assert poster.sent[0].url == ASK.url
        expected = "Basic " + base64.b64encode(b"shop:a+secret").decode()
        assert poster.sent[0].headers.first("authorization") == expected
        assert "secret" not in repr(ASK)


@pytest.mark.requirement("papaver-74")
@pytest.mark.parametrize("fault", [0, 401, 500])
async def test_an_issuer_that_does_not_answer_is_no_fault_of_the_token(fault: int) -> None:
    """503, whether it is down or does not know us."""
    poster = Poster()
    poster.answers["opaque"], poster.fault = ACTIVE, fault
    async with bench_of(ExternalIssuer(ISSUER, introspection=ASK), poster) as bench:
        with pytest.raises(TemporarilyUnavailable):
            await verify(bench, "opaque")


async def test_an_introspected_token_is_asked_about_again_for_a_held_request() -> None:
    """By its hash, for as long as the token is remembered in this process; no longer than that."""
    poster = Poster()
    async with bench_of(ExternalIssuer(ISSUER, introspection=ASK), poster) as bench:
        poster.answers["opaque"] = ACTIVE
        session = await verify(bench, "opaque")
        (row,) = await bench.rows()
        opened = OpenedSession(session, row, ReplayKey(session.client_id, session.jti, NOW + 60.0))
        await bench.company.sessions.recheck(opened)
        assert len(poster.sent) == 2
        poster.answers.clear()
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "oauth.token-active"):
            await bench.company.sessions.recheck(opened)
        assert session.access is not None
        other = replace(opened, verified=replace(session, access=replace(session.access, ath="of another process")))
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.active"):
            await bench.company.sessions.recheck(other)


@pytest.mark.requirement("papaver-147")
async def test_a_turn_asks_again_about_an_introspected_token_where_it_is_remembered() -> None:
    """Elsewhere, and where its hash was not stored, it goes by what the token said; a blocked client has none."""
    poster = Poster()
    async with bench_of(ExternalIssuer(ISSUER, introspection=ASK), poster) as bench:
        poster.answers["opaque"] = ACTIVE
        access = (await verify(bench, "opaque")).access
        assert access is not None
        tokens = bench.company.sessions
        elsewhere, earlier = replace(access, ath="of another process"), replace(access, ath="")
        assert [await tokens.holds(one) for one in (access, elsewhere, earlier)] == [True, True, True]
        assert len(poster.sent) == 2
        poster.answers.clear()
        assert [await tokens.holds(one) for one in (access, elsewhere, earlier)] == [False, True, True]
        poster.fault = 500
        with pytest.raises(TemporarilyUnavailable):
            await tokens.holds(access)
        await bench.company.clients.judge(ClientId(access.client_id), "blocked")
        assert [await tokens.holds(one) for one in (access, elsewhere, earlier)] == [False, False, False]


async def test_introspection_needs_a_way_to_the_issuer() -> None:
    """Which an adapter brings."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.external-issuer"):
        async with bench_of(ExternalIssuer(ISSUER, introspection=ASK)):
            raise AssertionError


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def read(bench: CompanyBench, host: str = "auth.example.com") -> Any:
    return await bench.fetch("/.well-known/oauth-authorization-server", host=host)


@pytest.mark.requirement("papaver-79")
async def test_the_metadata_is_completed_and_otherwise_left_alone() -> None:
    """With the domains and services, and what the operator adds."""
    issuer = ExternalIssuer(
        ISSUER, publish_metadata=True, metadata={"authorization_response_iss_parameter_supported": True}
    )
    service = "https://api.example.com/mcp"
    async with bench_of(issuer, domains=["example.no"], own_tokens=[service]) as bench:
        upstream = {
            "issuer": ISSUER,
            "jwks_uri": JWKS,
            "x": [1],
            "protected_resources": ["https://example.no", "urn:x"],
        }
        bench.documents.bodies[OPENID] = dumps(upstream)
        answer = await read(bench, "auth.example.com:443")
        assert answer.status == 200
        assert answer.json == {
            **upstream,
            "authorization_response_iss_parameter_supported": True,
            "protected_resources": ["https://example.no", "urn:x", "https://example.com", service],
        }
        assert (await verify(bench, jwt())).account_id == "dana"


@pytest.mark.requirement("papaver-79")
async def test_the_metadata_is_read_from_where_the_operator_says() -> None:
    """And without one of its own there it has none of ours."""
    upstream = "https://auth.internal.example.com/metadata"
    async with bench_of(ExternalIssuer(ISSUER, publish_metadata=True, upstream=upstream)) as bench:
        answer = await read(bench)
        assert (answer.status, answer.error) == (503, "temporarily_unavailable")
        assert int(answer.headers.first("retry-after")) >= 1
        bench.documents.bodies[upstream] = dumps({"issuer": ISSUER})
        bench.clock.advance(60)
        assert (await read(bench)).json["protected_resources"] == ["https://example.com"]
        refused = await bench.fetch("/.well-known/oauth-authorization-server", method="POST", host="auth.example.com")
        assert refused is not None
        assert refused.status == 405
        assert await read(bench, "example.com") is None


async def test_an_issuer_publishes_its_own_metadata_unless_told_otherwise() -> None:
    """Its host is its own."""
    async with bench_of(ExternalIssuer(ISSUER)) as bench:
        assert await read(bench) is None


# ── what cannot work ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("papaver-73")
@pytest.mark.parametrize(
    ("issuer", "options"),
    [
        ("http://auth.example.com", {}),
        ("auth.example.com", {}),
        (f"{ISSUER}?x", {}),
        (f"{ISSUER}#x", {}),
        (ISSUER, {"jwks_uri": "http://auth.example.com/jwks"}),
        (ISSUER, {"introspection": Introspection("http://auth.example.com/introspect")}),
        (ISSUER, {"upstream": "/metadata"}),
        (ISSUER, {"jwks_uri": JWKS, "introspection": ASK}),
        (ISSUER, {"jwks_uri": JWKS, "verifier": object()}),
    ],
)
def test_what_cannot_work_is_an_error_at_construction(issuer: str, options: dict[str, Any]) -> None:
    """An issuer that is none, a URL over http, and two ways to judge a token."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.external-issuer"):
        ExternalIssuer(issuer, **options)


async def test_an_operator_may_judge_tokens_alone() -> None:
    """With whatever is at hand."""

    class Ours:
        async def verify(self, token: str) -> Any:
            raise InvalidToken(rule="ours")

        async def recheck(self, ath: str, token: Any) -> None:
            raise AssertionError

    async with bench_of(ExternalIssuer(ISSUER, verifier=Ours())) as bench:
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "ours"):
            await verify(bench, "anything")
        assert json.loads(bench.documents.bodies[METADATA])["issuer"] == ISSUER


async def test_what_is_over_is_swept_where_another_process_runs_the_turns() -> None:
    """Used proofs and the accounts of old Sessions go, in each process; until the task is cancelled."""
    async with bench_of(ExternalIssuer(ISSUER), refuse_account_change=True) as bench:
        await verify(bench, jwt())
        grants: Any = (await bench.company.store.tables(bench.company.id)).grants
        swept, sweep = asyncio.Event(), grants.sweep

        async def noted(now: float, *, forget_before: float) -> int:
            count: int = await sweep(now, forget_before=forget_before)
            assert count == 1
            swept.set()
            return count

        grants.sweep = noted
        sweeping = bench.company.start_sweeping()
        await bench.sleepers(1)
        bench.clock.advance(31 * 86_400)
        await swept.wait()
        sweeping.cancel()
        await asyncio.wait({sweeping})

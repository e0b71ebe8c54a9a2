"""Access tokens at a Company with an issuer: which requests they are good for, and how each refusal is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from papaver.company.sessions import OpenedSession
from papaver.jose.keys import PrivateKey
from papaver.ports.company import ReplayKey
from papaver.protocol.errors import (
    AccountNeeded,
    InsufficientScope,
    InvalidRequest,
    InvalidSession,
    InvalidToken,
    ProofNonceNeeded,
    SessionEnded,
)
from papaver.protocol.session import ath
from papaver.protocol.signed_in import SignedInSession
from papaver.protocol.terms import ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.issuers import HeldIssuer, proof
from papaver.testing.keys import NOW, OMIT
from papaver.values.errors import PapaverError
from papaver.web.challenges import read_challenges
from papaver.web.messages import Headers

pytestmark = pytest.mark.anyio

ORDERS = "https://api.example.com/orders"
KEY = PrivateKey.generate()
JKT = KEY.public.thumbprint


def rules(rule: str) -> Callable[[PapaverError], bool]:
    return lambda error: error.rule == rule


async def challenges(bench: CompanyBench, **options: Any) -> Any:
    """A start that is refused: its answer, with the challenges in it."""
    answer = await bench.start(**options)
    return answer, read_challenges(answer.headers.all("www-authenticate"))


@pytest.mark.requirement("5.4-04", "5.4-05")
async def test_each_request_is_signed_in_by_the_token_it_carries() -> None:
    """One Session, with a token, without one, and with a newer token of the same account."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        first, newer = issuer.issue("one", "dana", "orders:read"), issuer.issue("two", "dana", "orders:write")
        seen = [await bench.verify("GET", "/cart", token=token) for token in (first, None, newer, None)]
        assert [session.account_id for session in seen] == ["dana", None, "dana", None]
        assert [sorted(session.scopes) for session in seen] == [["orders:read"], [], ["orders:write"], []]
        assert len({session.sid for session in seen}) == 1
        assert len(await bench.rows()) == 1


@pytest.mark.requirement("4.5-06", "5.2-18")
async def test_one_token_is_good_at_every_service() -> None:
    """At an API and at the conversation endpoint."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = issuer.issue()
        assert (await bench.start(token=token)).status == 201
        assert (await bench.verify("GET", "/orders", token=token)).account_id == "dana"
        for audience in (("https://example.com",), ("https://other.example", "https://example.com")):
            assert (await bench.verify("GET", "/x", token=issuer.issue("t", audience=audience))).account_id == "dana"


@pytest.mark.requirement("5.2-18", "5.3-09")
@pytest.mark.parametrize("claim", [OMIT, ath("another"), ""], ids=["absent", "of another token", "empty"])
async def test_c75_ath_has_to_be_of_this_token(claim: object) -> None:
    """`invalid_session`, whatever the token is worth; the issuer is not even asked."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        answer = await bench.start(token=issuer.issue(), ath=claim)
        assert (answer.status, answer.error) == (400, "invalid_session")
        assert (issuer.asked, await bench.rows()) == (0, [])


@pytest.mark.requirement("5.2-18")
async def test_c75_an_ath_without_a_token_is_an_invalid_session() -> None:
    """Something on the way dropped the token, or somebody added the claim."""
    async with company_bench(sign_in=HeldIssuer(), turns=False) as bench:
        assert (await bench.start(ath=ath("token"))).error == "invalid_session"


@pytest.mark.requirement("5.3-10")
async def test_c75_a_token_of_another_client_is_an_invalid_session() -> None:
    """It is valid, and not for this client: no account data leaves."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = issuer.issue(client_id="https://other.example/agent.json")
        with pytest.raises(InvalidSession, check=rules("session.token-client-is-iss")):
            await bench.verify("GET", "/orders", token=token)
        answer = await bench.start(token=token)
        assert (answer.status, answer.error) == (400, "invalid_session")


@pytest.mark.requirement("7-26")
@pytest.mark.parametrize("how", ["unknown", "revoked"])
async def test_b54_a_bad_token_is_named_in_the_challenge(how: str) -> None:
    """401 with the error code, at once after it was revoked (C58)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = "never-issued"
        if how == "revoked":
            token = issuer.issue()
            assert (await bench.start(token=token)).status == 201
            issuer.revoke(token)
        answer, (bearer, dpop) = await challenges(bench, token=token)
        assert (answer.status, answer.error) == (401, "invalid_token")
        assert (bearer.params["error"], dpop.params["error"]) == ("invalid_token", "invalid_token")


@pytest.mark.requirement("7-21")
async def test_there_is_one_challenge_for_each_scheme_that_is_taken() -> None:
    """DPoP's names the algorithms; an issuer that binds nothing has Bearer's alone."""
    async with company_bench(sign_in=HeldIssuer(), turns=False) as bench:
        _, (bearer, dpop) = await challenges(bench, token="x")
        assert (bearer.scheme, dpop.scheme, dpop.params["algs"]) == ("Bearer", "DPoP", "ES256 PS384")
    async with company_bench(sign_in=HeldIssuer(dpop=False), turns=False) as bench:
        _, (bearer,) = await challenges(bench, token="x")
        assert bearer.scheme == "Bearer"


@pytest.mark.requirement("7-23")
async def test_other_errors_have_a_json_body() -> None:
    """Beside a token as well; they are no challenge."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        for answer in (
            await bench.start(token=issuer.issue(), sub=""),
            await bench.start(token=issuer.issue(), headers={"poppy-version": "9.9"}),
        ):
            assert answer.error in ("invalid_session", "version_unsupported")
            assert answer.headers.first("content-type") == "application/json"
            assert answer.headers.first("www-authenticate") is None


@pytest.mark.requirement("5.4-10", "7-24", "7-28")
async def test_an_account_action_names_the_scopes_that_it_needs() -> None:
    """Without a token a challenge without a code, with too few scopes `insufficient_scope`; then it is let through."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        needed = ("orders:read", "orders:write")
        with pytest.raises(AccountNeeded, check=lambda error: error.scope == "orders:read orders:write"):
            await bench.verify("GET", "/orders", needs=needed)
        few, enough = issuer.issue("few", "dana", "orders:read"), issuer.issue("enough", "dana", *needed, "more")
        with pytest.raises(InsufficientScope, check=lambda error: error.scope == "orders:read orders:write"):
            await bench.verify("GET", "/orders", needs=needed, token=few)
        session = await bench.verify("GET", "/orders", needs=needed, token=enough)
        assert isinstance(session, SignedInSession)
        assert (session.account_id, session.user_id) == ("dana", "usr_dana")


async def test_a_refusal_at_an_api_is_logged_with_its_client(caplog: pytest.LogCaptureFixture) -> None:
    """And with what was lacking, which the peer is not told."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        with pytest.raises(InsufficientScope):
            await bench.verify("GET", "/orders", needs=("orders:read",), token=issuer.issue())
    (line,) = caplog.messages
    assert '"rule": "access.scopes-suffice"' in line
    assert bench.agent.client_id in line
    assert "token-of-dana" not in line


# ── services with tokens of their own ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("4.5-12", "4.5-14")
async def test_c59_a_service_with_its_own_tokens_takes_no_other() -> None:
    """`invalid_token`, and the challenge says where its metadata is; its token is good there and nowhere else."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, own_tokens=[ORDERS], turns=False) as bench:
        usual, own = issuer.issue("usual"), issuer.issue("own", audience=(ORDERS,))
        for path in ("/orders", "/orders/1", "/%6Frders/1"):
            with pytest.raises(InvalidToken, check=rules("token.for-this-service")) as caught:
                await bench.verify("GET", path, token=usual)
            response = bench.company.api_error(caught.value, bench.bare("GET", path))
            for challenge in read_challenges(response.headers.all("www-authenticate")):
                metadata = challenge.params["resource_metadata"]
                assert metadata == "https://api.example.com/.well-known/oauth-protected-resource/orders"
            assert (await bench.verify("GET", path, token=own)).account_id == "dana"
        found = await bench.fetch("/.well-known/oauth-protected-resource/orders", host="api.example.com")
        assert found is not None
        assert found.json["resource"] == ORDERS
        with pytest.raises(InvalidToken, check=rules("token.for-this-service")):
            await bench.verify("GET", "/orders2", token=own)
        answer, (bearer, _) = await challenges(bench, token=own)
        assert (answer.error, bearer.params.get("resource_metadata")) == ("invalid_token", None)


async def test_c60_a_bearer_token_of_an_mcp_server_is_good_nowhere_else() -> None:
    """Neither at the conversations nor at another service, though it is a Bearer token of the same issuer and User."""
    issuer, mcp = HeldIssuer(), "https://api.example.com/mcp"
    async with company_bench(sign_in=issuer, own_tokens=[ORDERS, mcp], turns=False) as bench:
        token = issuer.issue("mcp", audience=(mcp,))
        assert (await bench.verify("POST", "/mcp", token=token)).account_id == "dana"
        for path in ("/orders", "/cart", "/mcp2"):
            with pytest.raises(InvalidToken, check=rules("token.for-this-service")):
                await bench.verify("GET", path, token=token)
        refused = await bench.start(token=token)
        assert (refused.status, refused.error) == (401, "invalid_token")


@pytest.mark.requirement("4.5-16")
async def test_a_conversation_endpoint_may_have_its_own_tokens() -> None:
    """As where a provider hosts it: only a token for it opens a conversation, which is good nowhere else."""
    issuer = HeldIssuer()
    endpoint = "https://poppy.provider.example/shop-a/conversations"
    options: dict[str, Any] = {"base_url": "https://poppy.provider.example/shop-a", "own_tokens": [endpoint]}
    async with company_bench(sign_in=issuer, turns=False, **options) as bench:
        assert (await bench.start(token=issuer.issue("own", audience=(endpoint,)))).status == 201
        answer, (bearer, _) = await challenges(bench, token=issuer.issue("usual"))
        assert answer.error == "invalid_token"
        assert bearer.params["resource_metadata"] == (
            "https://poppy.provider.example/.well-known/oauth-protected-resource/shop-a/conversations"
        )
        assert (await bench.start()).status == 201


# ── DPoP ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def bound(issuer: HeldIssuer) -> str:
    return issuer.issue("bound", "dana", "orders:read", jkt=JKT)


async def with_proof(bench: CompanyBench, token: str, made: str | None, **options: Any) -> Any:
    return await bench.verify("GET", "/orders", token=token, scheme="DPoP", headers={"dpop": made}, **options)


@pytest.mark.requirement("5.2-21")
async def test_a_bound_token_goes_with_a_proof_beside_the_session_header() -> None:
    """Each under its own key."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = bound(issuer)
        assert bench.agent.delegated.public.thumbprint != JKT
        session = await with_proof(bench, token, proof(KEY, "GET", ORDERS, token))
        assert session.account_id == "dana"


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "another method": ({"htm": "POST"}, "dpop.htm-is-method"),
    "another URL": ({"htu": f"{ORDERS}/1"}, "dpop.htu-is-url"),
    "another token": ({"ath": ath("another")}, "dpop.ath"),
    "no token": ({"ath": OMIT}, "dpop.ath"),
    "made long ago": ({"iat": NOW - 61}, "dpop.iat-in-window"),
    "of the future": ({"iat": NOW + 61}, "dpop.iat-in-window"),
    "no proof": ({"jose": {"typ": "JWT"}}, "dpop.typ"),
    "another key": ({"key": PrivateKey.generate()}, "dpop.key-is-bound"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_c50_a_proof_that_does_not_fit_is_an_invalid_token(fault: str) -> None:
    """It is correctly signed, and wrong in one place."""
    said, rule = FAULTS[fault]
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = bound(issuer)
        claims = {name: value for name, value in said.items() if name != "key"}
        made = proof(said.get("key", KEY), "GET", ORDERS, token, **claims)
        with pytest.raises(InvalidToken, check=rules(rule)):
            await with_proof(bench, token, made)


async def test_c50_a_query_in_htu_is_no_fault_and_a_missing_proof_is_one() -> None:
    """RFC 9449 4.3 compares without query; a bound token alone is worth nothing, nor is it as a Bearer token."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = bound(issuer)
        made = proof(KEY, "GET", ORDERS, token, htu=f"{ORDERS}?x=1")
        assert (await with_proof(bench, token, made, query="x=2")).account_id == "dana"
        with pytest.raises(InvalidToken):
            await with_proof(bench, token, None)
        with pytest.raises(InvalidToken, check=rules("token.scheme-as-bound")):
            await bench.verify("GET", "/orders", token=token)
        with pytest.raises(InvalidToken, check=rules("token.scheme-as-bound")):
            await with_proof(bench, issuer.issue("unbound"), made)


@pytest.mark.requirement("papaver-69")
async def test_b10_a_proof_is_good_once_at_another_replica_too() -> None:
    """Two processes of one store know of each other's."""
    store, issuer = MemoryStore(), HeldIssuer()
    async with (
        company_bench(sign_in=issuer, store=store, turns=False) as one,
        company_bench(sign_in=issuer, store=store, turns=False, agent=one.agent) as two,
    ):
        token = bound(issuer)
        made = proof(KEY, "GET", ORDERS, token)
        await with_proof(one, token, made)
        for bench in (one, two):
            with pytest.raises(InvalidToken, check=rules("token.proof-once")):
                await with_proof(bench, token, made)
        await with_proof(two, token, proof(KEY, "GET", ORDERS, token, jti="prf_2"))


async def test_a_nonce_that_is_demanded_is_given_out() -> None:
    """401 with `use_dpop_nonce` and the nonce in its own field; a proof with it is good until it is old (C50)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, dpop_nonces=True, turns=False) as bench:
        token = bound(issuer)
        with pytest.raises(ProofNonceNeeded, check=rules("dpop.nonce")) as caught:
            await with_proof(bench, token, proof(KEY, "GET", ORDERS, token))
        response = bench.company.api_error(caught.value, bench.bare("GET", "/orders"))
        nonce = response.headers.first("dpop-nonce")
        assert (response.status, nonce) == (401, caught.value.nonce)
        assert (await with_proof(bench, token, proof(KEY, "GET", ORDERS, token, nonce=nonce))).account_id == "dana"
        with pytest.raises(ProofNonceNeeded):
            await with_proof(bench, token, proof(KEY, "GET", ORDERS, token, nonce="forged", jti="prf_2"))


async def test_a_company_whose_issuer_binds_nothing_takes_no_bound_token() -> None:
    """An issuer that does it all the same is a mistake of the set-up, and never a way around the proof."""
    issuer = HeldIssuer(dpop=False)
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = bound(issuer)
        with pytest.raises(InvalidToken, check=rules("token.scheme-as-bound")):
            await with_proof(bench, token, proof(KEY, "GET", ORDERS, token))


# ── accounts, clients and time ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("5.4-06")
async def test_an_account_change_may_be_refused() -> None:
    """`session_ended` for the second account where that is on, at every replica; another Session is free to use it."""
    store, issuer = MemoryStore(), HeldIssuer()
    options: dict[str, Any] = {"sign_in": issuer, "store": store, "turns": False, "refuse_account_change": True}
    async with company_bench(**options) as one, company_bench(**options, agent=one.agent) as two:
        dana, kim = issuer.issue("a", "dana"), issuer.issue("b", "kim")
        assert (await one.verify("GET", "/x")).account_id is None
        assert (await one.verify("GET", "/x", token=dana)).account_id == "dana"
        for bench in (one, two):
            with pytest.raises(SessionEnded, check=rules("session.same-account")):
                await bench.verify("GET", "/x", token=kim)
            assert (await bench.verify("GET", "/x", token=dana)).account_id == "dana"
        assert (await two.start(token=kim)).error == "session_ended"
        assert (await two.verify("GET", "/x", token=kim, sid="sid_2")).account_id == "kim"


@pytest.mark.requirement("5.4-06")
async def test_an_account_change_is_accepted_otherwise() -> None:
    """The default away from browsers (readings 25)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        for account in ("dana", "kim"):
            token = issuer.issue(account, account)
            assert (await bench.verify("GET", "/x", token=token)).account_id == account


async def test_b12_a_blocked_client_is_refused_with_its_next_request() -> None:
    """Its tokens stop with it (C46): at once, and whatever they are worth to the issuer."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = issuer.issue()
        await bench.verify("GET", "/x", token=token)
        await bench.company.clients.judge(ClientId(bench.agent.client_id), "blocked")
        with pytest.raises(InvalidSession, check=rules("client.accepted")):
            await bench.verify("GET", "/x", token=token)


@pytest.mark.requirement("papaver-76")
async def test_a_token_that_was_verified_is_checked_again() -> None:
    """For whoever holds a request: it may have expired or been revoked meanwhile (readings 3)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        session = await bench.verify("GET", "/x", token=issuer.issue(expires_at=NOW + 30.0))
        (row,) = await bench.rows()
        opened = OpenedSession(session, row, ReplayKey(session.client_id, session.jti, NOW + 60.0))
        sessions = bench.company.sessions
        await sessions.recheck(opened)
        issuer.revoke("token-of-dana")
        with pytest.raises(InvalidToken, check=rules("test.token-known")):
            await sessions.recheck(opened)
        issuer.issue()
        bench.clock.advance(30)
        with pytest.raises(InvalidToken, check=rules("token.not-expired")):
            await sessions.recheck(opened)
        await sessions.recheck(replace(opened, verified=replace(session, access=None)))


# ── endpoints that use no Session ────────────────────────────────────────────────────────────────────────────────


async def caller(bench: CompanyBench, *scopes: str, **fields: str) -> Any:
    """Who a request is from by its token alone."""
    pairs = [(name.replace("_", "-"), value) for name, value in fields.items()]
    return await bench.company.verify_without_session(bench.bare("GET", "/products", "", Headers(pairs)), *scopes)


@pytest.mark.requirement("5.3-15", "5.3-16")
@pytest.mark.parametrize("header", ["garbage", "", None])
async def test_an_endpoint_that_uses_no_session_does_not_look_at_the_header(header: str | None) -> None:
    """Missing or broken, it is the same request, and nothing of the header is there."""
    async with company_bench(sign_in=HeldIssuer(), turns=False) as bench:
        fields = {} if header is None else {"poppy_session": header}
        found = await caller(bench, **fields)
        assert (found.client_id, found.account_id, found.scopes) == (None, None, frozenset())
        assert bench.documents.asked == []
        assert await bench.rows() == []


@pytest.mark.requirement("5.3-17")
async def test_without_a_session_the_token_is_checked_all_the_same() -> None:
    """Its validity, its scopes, its proof and its service."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        good = issuer.issue("good", "dana", "orders:read")
        found = await caller(bench, "orders:read", authorization=f"Bearer {good}")
        assert (found.client_id, found.account_id) == (bench.agent.client_id, "dana")
        with pytest.raises(InvalidToken):
            await caller(bench, authorization="Bearer never-issued")
        with pytest.raises(InsufficientScope):
            await caller(bench, "orders:write", authorization=f"Bearer {good}")
        with pytest.raises(AccountNeeded):
            await caller(bench, "orders:read")
        with pytest.raises(InvalidToken, check=rules("dpop.header-once")):
            await caller(bench, authorization=f"DPoP {bound(issuer)}")
        with pytest.raises(InvalidToken, check=rules("token.for-this-service")):
            await caller(bench, authorization=f"Bearer {issuer.issue('mcp', audience=(ORDERS,))}")


@pytest.mark.requirement("papaver-78")
async def test_b12_without_a_session_a_blocked_clients_token_is_refused_too() -> None:
    """`invalid_token`: its tokens are void (readings 57)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        token = issuer.issue()
        await bench.company.clients.judge(ClientId(bench.agent.client_id), "blocked")
        with pytest.raises(InvalidToken, check=rules("client.accepted")):
            await caller(bench, authorization=f"Bearer {token}")


@pytest.mark.parametrize("name", ["access_token", "Poppy-Session"])
async def test_b10_without_a_session_a_credential_in_the_url_is_refused_too(name: str) -> None:
    """Even beside a valid header."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, turns=False) as bench:
        incoming = bench.bare("GET", "/products", f"{name}=x")
        with pytest.raises(InvalidRequest, check=rules("request.no-credentials-in-url")):
            await bench.company.verify_without_session(incoming)


# ── several domains ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_several_domains_are_one_company() -> None:
    """One identifier in the Session JWT, one User and Session, one token, whichever domain it was found on (3.2)."""
    issuer = HeldIssuer()
    async with company_bench(sign_in=issuer, domains=["example.no"], turns=False) as bench:
        for domain in ("example.com", "example.no"):
            document = await bench.fetch("/.well-known/poppy.json", host=domain)
            assert document is not None
            assert document.json["agent"]["protocols"][0]["endpoint"] == bench.company.offer.endpoint
        token = issuer.issue(audience=("https://example.no",))
        assert (await bench.verify("GET", "/x", token=token)).account_id == "dana"
        assert bench.company.id == issuer.issuer
        with pytest.raises(InvalidSession, check=rules("session.aud-is-company")):
            await bench.verify("GET", "/x", token=token, aud="https://example.com")


@pytest.mark.requirement("5.4-02")
async def test_without_a_sign_in_type_sessions_are_signed_out_and_work() -> None:
    """What needs an account gets its challenge; whatever does not, goes on."""
    async with company_bench(sign_in=HeldIssuer(), sign_in_disabled=True, turns=False) as bench:
        document = await bench.fetch("/.well-known/poppy.json")
        assert document is not None
        assert document.json["auth"] == {"disabled": True}
        assert (await bench.start()).status == 201
        session = await bench.verify("GET", "/cart")
        assert (session.account_id, session.scopes, session.access) == (None, frozenset(), None)
        with pytest.raises(AccountNeeded):
            await bench.verify("GET", "/orders", needs=("orders:read",))

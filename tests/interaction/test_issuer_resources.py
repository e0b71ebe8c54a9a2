"""Tokens for one service, and DPoP binding, at an embedded issuer (4.5, RFC 8707, RFC 9449)."""

from __future__ import annotations

import pytest

from papaver.jose.keys import PrivateKey
from papaver.oauth.dpop import make_proof
from papaver.testing.issuer import ISSUER, IssuerBench, issuer_bench, parameters_of

pytestmark = pytest.mark.anyio
ORDERS = "https://api.example.com/orders"
KEY = PrivateKey.generate()


def proof(bench: IssuerBench, *, url: str = f"{ISSUER}/token", nonce: str | None = None, key: PrivateKey = KEY) -> str:
    jti = bench.agent.fresh("proof")
    made = make_proof(key, method="POST", url=url, now=bench.clock.now(), jti=jti, nonce=nonce)
    return made.reveal()


@pytest.mark.requirement("4.5-13", "4.7-31")
async def test_c59_an_unknown_resource_is_invalid_target_everywhere() -> None:
    """At authorization, device authorization and refresh; compared exactly but for the case of the host."""
    async with issuer_bench(company_own_tokens=[ORDERS]) as bench:
        tokens = await bench.sign_in()
        for resource in ("https://elsewhere.example", ORDERS + "/", "https://example.com/", "not a url"):
            pair = [("resource", resource)]
            sent = await bench.send("GET", bench.authorize_url(resource=resource))
            assert parameters_of(sent)["error"] == "invalid_target"
            assert (await bench.begin_device("orders:read", pair)).error == "invalid_target"
            assert (await bench.refresh(tokens["refresh_token"], pair)).error == "invalid_target"
        same = await bench.refresh(tokens["refresh_token"], [("resource", "https://API.example.com/orders")])
        assert same.status == 200


@pytest.mark.requirement("papaver-60")
async def test_c59_a_token_is_for_the_one_resource_that_was_asked_for() -> None:
    """At sign-in and at refresh; the domain means the default token; a sign-in begun for one is not for another."""
    async with issuer_bench(company_own_tokens=[ORDERS], company_domains=["example.co.uk"]) as bench:
        tokens = await bench.sign_in(resource=ORDERS)
        assert (await bench.verify(tokens["access_token"])).audience == (ORDERS,)
        default = (await bench.refresh(tokens["refresh_token"])).json
        assert (await bench.verify(default["access_token"])).audience == ()
        domain = (await bench.refresh(default["refresh_token"], [("resource", "https://example.co.uk")])).json
        assert (await bench.verify(domain["access_token"])).audience == ()
        both = [("resource", ORDERS), ("resource", "https://example.com")]
        assert (await bench.refresh(domain["refresh_token"], both)).error == "invalid_target"
        code = await bench.code(resource=ORDERS)
        assert (await bench.redeem(code, pairs=[("resource", "https://example.com")])).error == "invalid_target"
        assert (await bench.redeem(code, pairs=[("resource", ORDERS)])).status == 200
        begun = (await bench.begin_device("orders:read", [("resource", ORDERS)])).json
        await bench.approve_device(begun["user_code"])
        wrong = await bench.poll(begun["device_code"], [("resource", "https://example.com")])
        assert wrong.error == "invalid_target"
        device = (await bench.poll(begun["device_code"])).json
        assert (await bench.verify(device["access_token"])).audience == (ORDERS,)


@pytest.mark.requirement("4.5-02", "4.5-05")
async def test_a_token_is_bound_when_a_proof_comes_but_for_services_that_take_bearer_only() -> None:
    """token_type says so, for each token."""
    async with issuer_bench(company_own_tokens=[ORDERS], bearer_only=[ORDERS]) as bench:
        bound = (await bench.redeem(await bench.code(), proof=proof(bench))).json
        assert bound["token_type"] == "DPoP"
        assert (await bench.verify(bound["access_token"])).jkt == KEY.public.thumbprint
        bare = (await bench.refresh(bound["refresh_token"])).json
        assert (bare["token_type"], (await bench.verify(bare["access_token"])).jkt) == ("Bearer", None)
        answer = await bench.refresh(bare["refresh_token"], [("resource", ORDERS)], proof=proof(bench))
        assert answer.json["token_type"] == "Bearer"
        assert answer.headers.first("dpop-nonce") is None


@pytest.mark.requirement("4.5-02")
async def test_with_dpop_off_a_proof_changes_nothing() -> None:
    """Nor is it looked at."""
    async with issuer_bench(dpop=False) as bench:
        assert (await bench.redeem(await bench.code(dpop_jkt="A" * 43), proof="nonsense")).json[
            "token_type"
        ] == "Bearer"


@pytest.mark.requirement("papaver-61")
async def test_a_proof_is_good_once_and_for_the_token_endpoint_as_configured() -> None:
    """Replayed, for another URL, not a proof: invalid_dpop_proof."""
    async with issuer_bench() as bench:
        token = (await bench.sign_in())["refresh_token"]
        used = proof(bench)
        answer = await bench.refresh(token, proof=used)
        assert answer.json["token_type"] == "DPoP"
        token = answer.json["refresh_token"]
        assert (await bench.refresh(token, proof=used)).error == "invalid_dpop_proof"
        assert (await bench.refresh(token, proof=proof(bench, url="https://evil.example/token"))).error == (
            "invalid_dpop_proof"
        )
        assert (await bench.refresh(token, proof="x")).error == "invalid_dpop_proof"
        assert (await bench.refresh(token, proof=proof(bench))).status == 200


@pytest.mark.requirement("papaver-61")
async def test_c51_a_nonce_may_be_demanded() -> None:
    """The answer brings one, the next request needs it, and a forged one is refused."""
    async with issuer_bench(dpop_nonce=True) as bench:
        code = await bench.code()
        asked = await bench.redeem(code, proof=proof(bench))
        assert (asked.status, asked.error) == (400, "use_dpop_nonce")
        nonce = asked.headers.first("dpop-nonce")
        assert (await bench.redeem(code, proof=proof(bench, nonce="forged"))).error == "use_dpop_nonce"
        answer = await bench.redeem(code, proof=proof(bench, nonce=nonce))
        assert answer.json["token_type"] == "DPoP"
        assert answer.headers.first("dpop-nonce") == nonce


@pytest.mark.requirement("papaver-51")
async def test_a_code_asked_for_with_a_key_is_redeemed_with_that_key() -> None:
    """dpop_jkt (RFC 9449 10): no proof, or one by another key, is invalid_grant."""
    async with issuer_bench() as bench:
        code = await bench.code(dpop_jkt=KEY.public.thumbprint)
        assert (await bench.redeem(code)).error == "invalid_grant"
        other = proof(bench, key=PrivateKey.generate())
        assert (await bench.redeem(code, proof=other)).error == "invalid_grant"
        assert (await bench.redeem(code, proof=proof(bench))).json["token_type"] == "DPoP"

"""Client authentication, refresh with rotation, revocation and disconnecting at an embedded issuer (4.1, 4.4–4.6)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from papaver.oauth.assertions import ASSERTION_TYPE
from papaver.ports.grants import digest
from papaver.ports.system import FetchFault
from papaver.protocol.errors import ConfigurationError, InvalidToken
from papaver.protocol.session import AccountAccess, ath
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.issuer import DANA, ISSUER, IssuerBench, interaction_of, issuer_bench, parameters_of
from papaver.testing.keys import NOW, OMIT, AgentKeys

pytestmark = pytest.mark.anyio
EVE = AccountId("acct_eve")


async def grants_of(store: MemoryStore, bench: IssuerBench) -> dict[str, Any]:
    """What the memory store holds of grants, by the name of its table, as it changes."""
    tables: Any = await store.tables(bench.company.id)
    return cast("dict[str, Any]", vars(tables.grants))


async def every_endpoint(bench: IssuerBench, **options: Any) -> list[str | None]:
    """The errors of the three endpoints for one kind of assertion, made anew for each."""
    make = options.pop("make")
    answers = [
        await bench.refresh("prt_x", assertion=make(), **options),
        await bench.revoke("prt_x", assertion=make(), **options),
        await bench.begin_device(assertion=make(), **options),
    ]
    return [answer.error for answer in answers]


@pytest.mark.requirement("4.1-08")
@pytest.mark.parametrize(
    "aud",
    [
        f"{ISSUER}/token",
        f"{ISSUER}/revoke",
        f"{ISSUER}/device_authorization",
        f"{ISSUER}/",
        "https://AUTH.example.com",
        "https://example.com",
        [ISSUER],
        [ISSUER, "https://elsewhere.example"],
        OMIT,
    ],
    ids=str,
)
async def test_b28_b30_c48_only_the_issuer_as_one_string_is_an_audience(aud: object) -> None:
    """At each endpoint alike: an endpoint's URL, a list and another spelling are another aud."""
    async with issuer_bench() as bench:
        errors = await every_endpoint(bench, make=lambda: bench.assertion(aud=aud))
        assert errors == ["invalid_client"] * 3


@pytest.mark.parametrize(
    ("jose", "claims"),
    [
        ({}, {"sub": "https://agent.example/other.json"}),
        ({}, {"iss": "https://agent.example/other.json"}),
        ({"kid": "unknown"}, {}),
        ({"typ": "poppy-session+jwt"}, {}),
        ({"typ": "dpop+jwt"}, {}),
        ({"alg": "RS256"}, {}),
        ({}, {"exp": NOW - 31, "iat": NOW - 60}),
        ({}, {"exp": NOW + 301}),
        ({}, {"iat": OMIT}),
        ({}, {"jti": OMIT}),
    ],
    ids=str,
)
@pytest.mark.requirement("4.8-01")
async def test_c47_c49_a_wrong_assertion_is_invalid_client(jose: dict[str, object], claims: dict[str, Any]) -> None:
    """401, at each endpoint; so is none at all."""
    async with issuer_bench() as bench:
        made = await every_endpoint(bench, make=lambda: bench.assertion(jose=jose, **claims))
        assert made == ["invalid_client"] * 3
        assert (await bench.refresh("prt_x", assertion="")).status == 401


@pytest.mark.requirement("4.1-12")
async def test_c47_an_assertion_is_good_once_also_after_a_request_that_failed() -> None:
    """Its jti is remembered, whichever endpoint it went to."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        used = bench.assertion()
        assert (await bench.refresh("prt_unknown", assertion=used)).error == "invalid_grant"
        assert (await bench.refresh(tokens["refresh_token"], assertion=used)).error == "invalid_client"
        assert (await bench.revoke(tokens["refresh_token"], assertion=used)).error == "invalid_client"
        assert (await bench.begin_device(assertion=used)).error == "invalid_client"
        assert await bench.good(tokens["access_token"])


@pytest.mark.requirement("4.8-01")
async def test_a_new_key_of_a_known_client_is_found() -> None:
    """An unknown kid makes the issuer look again, once."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        renewed = AgentKeys(bench.agent.client_id)
        bench.documents.publish(renewed)
        bench.clock.advance(31)
        signed = bench.assertion(renewed, jti="another")
        assert (await bench.refresh(tokens["refresh_token"], assertion=signed)).status == 200


@pytest.mark.requirement("papaver-52")
async def test_a_body_that_is_no_form_and_a_parameter_twice_are_invalid_request() -> None:
    """And one that is too large is a 413."""
    async with issuer_bench() as bench:
        pairs = [("grant_type", "refresh_token")]
        answer = await bench.post("/token", [*pairs, *pairs, ("refresh_token", "x")])
        assert (answer.status, answer.error) == (400, "invalid_request")
        json = {"content-type": "application/json"}
        answer = await bench.send("POST", ISSUER + "/token", b"{}", headers=json)
        assert (answer.status, answer.error) == (400, "invalid_request")
        answer = await bench.send("POST", ISSUER + "/token", b"a=" + b"b" * 40_000)
        assert (answer.status, answer.error) == (413, "invalid_request")
        answer = await bench.post("/token", [("grant_type", "password")])
        assert answer.error == "unsupported_grant_type"


@pytest.mark.requirement("papaver-58")
async def test_an_address_that_proves_nothing_is_limited() -> None:
    """429 with Retry-After; other addresses go on."""
    async with issuer_bench(requests_per_address=3) as bench:
        for _ in range(3):
            assert (await bench.refresh("x", assertion="")).status == 401
        answer = await bench.refresh("x", assertion="")
        assert answer.status == 429
        assert int(answer.headers.first("retry-after") or "") >= 1
        assert (await bench.refresh("x", assertion="", peer="192.0.2.99")).status == 401
        assert (await bench.begin_device()).status == 200


@pytest.mark.requirement("4.1-15")
async def test_a_client_that_cannot_be_asked_about_just_now_is_a_503() -> None:
    """Not invalid_client, which would end what the User has."""
    async with issuer_bench() as bench:
        bench.documents.failing[bench.agent.client_id] = FetchFault.UNREACHABLE
        answer = await bench.begin_device()
        assert (answer.status, answer.error) == (503, "temporarily_unavailable")
        assert answer.headers.first("retry-after")
        assert (await bench.send("GET", bench.authorize_url())).status == 503


@pytest.mark.requirement("4.7-27", "4-03")
async def test_refresh_returns_a_successor_and_both_tokens_work() -> None:
    """Rotation: what came before is replaced."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        assert second["refresh_token"] != first["refresh_token"]
        assert second["scope"] == "orders:read orders:write"
        assert await bench.good(second["access_token"])
        assert (await bench.refresh(second["refresh_token"])).status == 200


@pytest.mark.requirement("papaver-57")
async def test_b47_twenty_refreshes_at_once_are_one_family() -> None:
    """All get the same successor, and nobody is signed out."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        answers = await asyncio.gather(*(bench.refresh(first["refresh_token"]) for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        successors = {answer.json["refresh_token"] for answer in answers}
        assert len(successors) == 1
        assert (await bench.refresh(successors.pop())).status == 200


@pytest.mark.requirement("papaver-57")
async def test_b45_a_lost_answer_is_had_again_within_the_grace_and_not_later() -> None:
    """Later it is invalid_grant, and the family stands: its successor was never used."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        bench.clock.advance(60)
        again = await bench.refresh(first["refresh_token"])
        assert again.json["refresh_token"] == second["refresh_token"]
        bench.clock.advance(1)
        assert (await bench.refresh(first["refresh_token"])).error == "invalid_grant"
        assert (await bench.refresh(second["refresh_token"])).status == 200


@pytest.mark.requirement("papaver-57")
async def test_a_token_whose_successor_was_used_revokes_its_family() -> None:
    """Two parties have it then; within the grace as well."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        third = (await bench.refresh(second["refresh_token"])).json
        assert (await bench.refresh(first["refresh_token"])).error == "invalid_grant"
        assert (await bench.refresh(third["refresh_token"])).error == "invalid_grant"
        assert not await bench.good(third["access_token"])


@pytest.mark.requirement("papaver-57")
async def test_reuse_without_the_assertion_revokes_nothing() -> None:
    """A leaked old token alone does no harm."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        third = (await bench.refresh(second["refresh_token"])).json
        assert (await bench.refresh(first["refresh_token"], assertion="")).error == "invalid_client"
        forged = bench.assertion(aud="https://elsewhere.example")
        assert (await bench.refresh(first["refresh_token"], assertion=forged)).error == "invalid_client"
        assert (await bench.refresh(third["refresh_token"])).status == 200


@pytest.mark.requirement("4.4-03")
async def test_using_a_refresh_token_does_not_move_its_end() -> None:
    """Ninety days from the sign-in, however often it was used; access tokens end with it."""
    async with issuer_bench() as bench:
        token = (await bench.sign_in())["refresh_token"]
        day = 86_400
        for _ in range(89):
            bench.clock.advance(day)
            token = (await bench.refresh(token)).json["refresh_token"]
        bench.clock.advance(day - 600)
        last = (await bench.refresh(token)).json
        assert last["expires_in"] == 600
        bench.clock.advance(600)
        assert (await bench.refresh(last["refresh_token"])).error == "invalid_grant"
        assert not await bench.good(last["access_token"])


@pytest.mark.requirement("4.4-05")
async def test_a_refresh_token_serves_every_session_of_its_user() -> None:
    """Nothing of a Session is asked for; two access tokens of one family are good side by side."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        assert await bench.good(first["access_token"])
        assert await bench.good(second["access_token"])


@pytest.mark.requirement("4.4-06", "4.7-15")
async def test_c56_refresh_narrows_never_widens_and_is_bound_to_its_client() -> None:
    """A thief changes nothing; the next refresh has all scopes again."""
    thief = AgentKeys("https://thief.example/agent.json")
    async with issuer_bench() as bench:
        bench.documents.publish(thief)
        token = (await bench.sign_in())["refresh_token"]
        wide = await bench.refresh(token, [("scope", "orders:read addresses")])
        assert (wide.status, wide.error) == (400, "invalid_scope")
        assert (await bench.refresh(token, agent=thief)).error == "invalid_grant"
        narrow = (await bench.refresh(token, [("scope", "orders:read")])).json
        assert narrow["scope"] == "orders:read"
        assert (await bench.verify(narrow["access_token"])).scopes == {"orders:read"}
        assert (await bench.refresh(token, agent=thief)).error == "invalid_grant"
        whole = (await bench.refresh(narrow["refresh_token"])).json
        assert whole["scope"] == "orders:read orders:write"


@pytest.mark.requirement("5.5-11", "5.5-09")
async def test_revocation_ends_the_grant_and_its_access_tokens_at_once() -> None:
    """Whichever token of the family is sent; an unknown one is revoked already."""
    async with issuer_bench() as bench:
        first = await bench.sign_in()
        second = (await bench.refresh(first["refresh_token"])).json
        answer = await bench.revoke(first["refresh_token"])
        assert (answer.status, answer.response.body) == (200, b"")
        assert not await bench.good(first["access_token"])
        assert not await bench.good(second["access_token"])
        assert (await bench.refresh(second["refresh_token"])).error == "invalid_grant"
        assert (await bench.revoke(second["refresh_token"])).status == 200
        assert (await bench.revoke("prt_unknown")).status == 200
        assert (await bench.revoke("pat_unknown")).status == 200


@pytest.mark.requirement("5.5-11")
async def test_an_access_token_is_given_back_alone_and_by_its_client_only() -> None:
    """The refresh token goes on."""
    other = AgentKeys("https://other.example/agent.json")
    async with issuer_bench() as bench:
        bench.documents.publish(other)
        tokens = await bench.sign_in()
        assert (await bench.revoke(tokens["access_token"], agent=other)).error == "invalid_grant"
        assert (await bench.revoke(tokens["refresh_token"], agent=other)).error == "invalid_grant"
        assert await bench.good(tokens["access_token"])
        assert (await bench.revoke(tokens["access_token"])).status == 200
        assert not await bench.good(tokens["access_token"])
        assert (await bench.refresh(tokens["refresh_token"])).status == 200


@pytest.mark.requirement("4.7-24")
async def test_revoking_a_replaced_grant_leaves_the_new_one() -> None:
    """A step-up signs in again and gives the old token back; the User stays signed in."""
    async with issuer_bench() as bench:
        old = await bench.sign_in(scope="orders:read")
        new = await bench.sign_in(scope="orders:read orders:write")
        await bench.revoke(old["refresh_token"])
        assert not await bench.good(old["access_token"])
        assert await bench.good(new["access_token"])
        assert (await bench.refresh(new["refresh_token"])).status == 200


@pytest.mark.requirement("papaver-56", "5.4-09")
async def test_c58_disabling_and_disconnecting_bite_at_once() -> None:
    """Of one account, of one client, everywhere; enabling brings back what has not ended."""
    async with issuer_bench() as bench:
        dana, eve = await bench.sign_in(), await bench.sign_in(account=EVE)
        await bench.issuer.disable(DANA)
        assert not await bench.good(dana["access_token"])
        assert (await bench.refresh(dana["refresh_token"])).error == "invalid_grant"
        assert await bench.good(eve["access_token"])
        await bench.issuer.enable(DANA)
        assert await bench.good(dana["access_token"])
        assert await bench.issuer.disconnect(DANA) == 1
        assert not await bench.good(dana["access_token"])
        assert await bench.good(eve["access_token"])
        assert await bench.issuer.disconnect(client_id=bench.agent.client_id) == 1
        assert not await bench.good(eve["access_token"])
        with pytest.raises(ConfigurationError) as error:
            await bench.issuer.disconnect()
        assert error.value.rule == "issuer.disconnect"


@pytest.mark.requirement("papaver-147")
@pytest.mark.parametrize("how", ["disconnected", "disabled", "signed out", "blocked"])
async def test_readings_26_a_turn_uses_no_token_that_stopped(how: str) -> None:
    """Whatever ended it after its request was accepted."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        client = ClientId(bench.agent.client_id)
        access = AccountAccess(ath(tokens["access_token"]), client, DANA, frozenset({"orders:read"}), NOW + 600)
        assert await bench.company.sessions.holds(access)
        match how:
            case "disconnected":
                await bench.issuer.disconnect(DANA, client)
            case "disabled":
                await bench.issuer.disable(DANA)
            case "signed out":
                await bench.revoke(tokens["refresh_token"])
            case _:
                await bench.company.clients.judge(client, "blocked")
        assert not await bench.company.sessions.holds(access)


@pytest.mark.requirement("papaver-56")
async def test_a_disabled_account_gets_no_first_tokens_either() -> None:
    """Neither for a code that it approved before, nor by approving now."""
    async with issuer_bench() as bench:
        code = await bench.code()
        await bench.issuer.disable(DANA)
        assert (await bench.redeem(code)).error == "invalid_grant"
        browser = bench.browser()
        await bench.to_consent(browser)
        assert "error=access_denied" in ((await browser.decide()).headers.first("location") or "")


@pytest.mark.requirement("papaver-56")
async def test_b12_the_tokens_of_a_blocked_client_stop_with_it() -> None:
    """At the next request; held requests are looked at again by the same check."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        good = await bench.verify(tokens["access_token"])
        await bench.company.clients.judge(ClientId(bench.agent.client_id), "blocked")
        with pytest.raises(InvalidToken) as error:
            await bench.verify(tokens["access_token"])
        assert error.value.rule == "access.client-not-blocked"
        with pytest.raises(InvalidToken):
            await bench.running.verifier.recheck(digest(tokens["access_token"]), good)
        assert (await bench.refresh(tokens["refresh_token"])).error == "invalid_client"


@pytest.mark.requirement("papaver-63")
async def test_no_token_and_no_code_is_in_the_store() -> None:
    """Nor a device code, a verifier, a ticket or a cookie."""
    store = MemoryStore()
    async with issuer_bench(store=store) as bench:
        browser = bench.browser()
        answer = await browser.get(bench.authorize_url())
        interaction = interaction_of(answer)
        page = await bench.issuer.signed_in(interaction, DANA)
        await browser.get(page)
        held = await grants_of(store, bench)
        before = repr(held)
        code = parameters_of(await browser.decide())["code"]
        waiting = repr(held)
        tokens = (await bench.redeem(code)).json
        tokens = {**tokens, **(await bench.refresh(tokens["refresh_token"])).json}
        device = (await bench.begin_device()).json
        rows = before + waiting + repr(held)
        secrets = [tokens["access_token"], tokens["refresh_token"], code, device["device_code"], interaction]
        secrets += [*browser.cookies.values(), page.rpartition("ticket=")[2], device["user_code"]]
        assert not [secret for secret in secrets if secret in rows]


@pytest.mark.requirement("papaver-63")
async def test_what_is_over_is_swept() -> None:
    """Tickets and tokens when they end, grants a month later."""
    store = MemoryStore()
    async with issuer_bench(store=store) as bench:
        await bench.sign_in()
        await bench.begin_device()
        held = await grants_of(store, bench)
        bench.clock.advance(121 * 86_400)
        await bench.running.sweep()
        assert not any(held[name] for name in ("_grants", "_refresh", "_access", "_tickets"))


@pytest.mark.requirement("4.8-01")
async def test_c45_metadata_is_fetched_once_for_many_requests() -> None:
    """Client and key set, once each."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        for _ in range(5):
            tokens = (await bench.refresh(tokens["refresh_token"])).json
        assert sorted(bench.documents.asked) == [bench.agent.client_id, bench.agent.jwks_uri]
        assert ASSERTION_TYPE.endswith("jwt-bearer")

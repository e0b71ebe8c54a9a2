"""Direct Sign-In at an embedded issuer: the authorization endpoint, consent, and the code (4.2)."""

from __future__ import annotations

import json

import pytest

from papaver.company import EmbeddedIssuer
from papaver.company.authserver import InteractionOver
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.issuer import DANA, ISSUER, VERIFIER, interaction_of, issuer_bench, parameters_of
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio
EVE = AccountId("acct_eve")


def device_only(client_id: str, kind: str) -> bool:
    return kind == "device"


def reading_only(client_id: str, scope: str) -> bool:
    return scope == "orders:read"


@pytest.mark.requirement("4.2-03", "4.7-19", "4.7-29")
async def test_the_user_approves_some_scopes_and_the_response_says_which() -> None:
    """Two asked, one ticked."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in(["orders:read"])
        assert tokens["scope"] == "orders:read"
        assert (await bench.verify(tokens["access_token"])).scopes == {"orders:read"}


@pytest.mark.requirement("4.7-30", "4.2-07")
@pytest.mark.parametrize(("decision", "scopes"), [("decline", ["orders:read"]), ("approve", [])])
async def test_c53_a_decline_and_no_scope_at_all_are_access_denied_with_iss(decision: str, scopes: list[str]) -> None:
    """The browser goes back to the agent with state and iss, and without a code."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        await bench.to_consent(browser)
        answer = await browser.decide(decision, scopes)
        assert (answer.headers.first("location") or "").startswith(bench.redirect_uri + "?")
        found = parameters_of(answer)
        assert (found["error"], found["iss"], found["state"]) == ("access_denied", ISSUER, "st_Xq81vR")
        assert "code" not in found


@pytest.mark.requirement("4.7-15")
async def test_no_scope_is_granted_that_was_not_asked_for() -> None:
    """A forged box of the consent form is left out."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in(["orders:read", "addresses", "orders:write", "admin"], scope="orders:read")
        assert tokens["scope"] == "orders:read"


@pytest.mark.requirement("4.7-26", "4.8-01")
async def test_sign_in_returns_access_and_refresh_token_to_the_proven_client() -> None:
    """And the answer may not be stored."""
    async with issuer_bench() as bench:
        answer = await bench.redeem(await bench.code())
        assert answer.json.keys() == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
        assert answer.json["expires_in"] == 3600
        assert answer.headers.first("cache-control") == "no-store"
        token = await bench.verify(answer.json["access_token"])
        assert (token.client_id, token.subject) == (bench.agent.client_id, DANA)


@pytest.mark.requirement("4.2-04")
async def test_a_code_used_twice_revokes_its_grant() -> None:
    """Only when assertion and verifier stand; the tokens of the first use stop."""
    async with issuer_bench() as bench:
        code = await bench.code()
        tokens = (await bench.redeem(code)).json
        assert (await bench.redeem(code, verifier="w" * 43)).error == "invalid_grant"
        assert (await bench.redeem(code, assertion="")).error == "invalid_client"
        assert await bench.good(tokens["access_token"])
        assert (await bench.redeem(code)).error == "invalid_grant"
        assert not await bench.good(tokens["access_token"])
        assert (await bench.refresh(tokens["refresh_token"])).error == "invalid_grant"


@pytest.mark.requirement("papaver-51")
async def test_b49_nothing_sent_without_verifier_redirect_uri_or_client_burns_a_code() -> None:
    """Whoever steals a code can neither use nor spoil it."""
    other = AgentKeys("https://other.example/agent.json")
    async with issuer_bench() as bench:
        bench.documents.publish(other)
        code = await bench.code()
        assert (await bench.redeem(code, agent=other)).error == "invalid_grant"
        assert (await bench.redeem(code, verifier="x" * 43)).error == "invalid_grant"
        elsewhere = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", bench.redirect_uri + "/other"),
            ("code_verifier", VERIFIER),
        ]
        assert (await bench.post("/token", elsewhere)).error == "invalid_grant"
        assert (await bench.post("/token", [*elsewhere[:2], elsewhere[3]])).error == "invalid_grant"
        assert (await bench.redeem(code)).status == 200


@pytest.mark.requirement("papaver-51")
async def test_a_code_lives_a_minute() -> None:
    """Then it is invalid_grant."""
    async with issuer_bench() as bench:
        code = await bench.code()
        bench.clock.advance(60)
        assert (await bench.redeem(code)).error == "invalid_grant"


@pytest.mark.requirement("4.2-05", "4.2-06")
async def test_redirects_go_to_listed_uris_only_with_the_port_of_a_loopback_free() -> None:
    """What is not listed is an error page, never a redirect."""
    agent = AgentKeys()
    async with issuer_bench(agent=agent) as bench:
        uris = [bench.redirect_uri, "http://127.0.0.1/cb"]
        document = agent.metadata(redirect_uris=uris)
        bench.documents.bodies[agent.client_id] = json.dumps(document).encode()
        for uri in (
            bench.redirect_uri + "/",
            "https://evil.example/",
            "http://127.0.0.1/other",
            "http://[::1]/cb",
            None,
        ):
            answer = await bench.send("GET", bench.authorize_url(redirect_uri=uri))
            assert (answer.status, answer.headers.first("location")) == (400, None)
        answer = await bench.send("GET", bench.authorize_url(redirect_uri="http://127.0.0.1:51234/cb"))
        assert answer.status == 303


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"scope": None}, "invalid_scope"),
        ({"scope": ""}, "invalid_scope"),
        ({"scope": 'a "b"'}, "invalid_scope"),
        ({"scope": "orders:read unknown"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://elsewhere.example"}, "invalid_target"),
    ],
    ids=str,
)
@pytest.mark.requirement("4.7-17", "4.7-18", "4.7-31")
async def test_c54_errors_go_back_with_iss_and_state(parameters: dict[str, str | None], error: str) -> None:
    """Once client and redirect URI are known to be good (B50 for PKCE)."""
    async with issuer_bench() as bench:
        answer = await bench.send("GET", bench.authorize_url(**parameters))
        found = parameters_of(answer)
        assert (answer.status, found["error"]) == (303, error)
        assert (found["iss"], found["state"]) == (ISSUER, "st_Xq81vR")


@pytest.mark.parametrize("client", [None, "http://agent.example/agent.json", "https://unknown.example/agent.json", "x"])
@pytest.mark.requirement("papaver-52")
async def test_c54_c62_a_bad_client_never_redirects(client: str | None) -> None:
    """It is an error page, and what is not https is not fetched."""
    async with issuer_bench() as bench:
        answer = await bench.send("GET", bench.authorize_url(client_id=client))
        assert (answer.status, answer.headers.first("location")) == (401, None)
        assert not [url for url in bench.documents.asked if url.startswith("http://")]


@pytest.mark.requirement("papaver-52")
async def test_a_parameter_that_is_there_twice_is_refused() -> None:
    """Of two values two readers could take two."""
    async with issuer_bench() as bench:
        answer = await bench.send("GET", bench.authorize_url() + "&client_id=x")
        assert (answer.status, answer.headers.first("location")) == (400, None)
        answer = await bench.send("GET", bench.authorize_url() + "&state=x")
        assert parameters_of(answer)["error"] == "invalid_request"
        assert "state" not in parameters_of(answer)


@pytest.mark.requirement("4.1-15", "4.1-17")
async def test_a_client_may_be_refused_sign_in_or_one_type_of_it() -> None:
    """unauthorized_client from the grant's own endpoint; a blocked one is invalid_client."""
    async with issuer_bench(sign_in_allowed=device_only) as bench:
        answer = await bench.send("GET", bench.authorize_url())
        assert parameters_of(answer)["error"] == "unauthorized_client"
        assert (await bench.redeem("any")).error == "unauthorized_client"
        assert (await bench.begin_device()).status == 200
        await bench.company.clients.judge(ClientId(bench.agent.client_id), "blocked")
        answer = await bench.begin_device()
        assert (answer.status, answer.error) == (401, "invalid_client")
        assert (await bench.send("GET", bench.authorize_url())).status == 401


@pytest.mark.requirement("4.7-03")
async def test_a_client_gets_only_the_scopes_that_are_for_it() -> None:
    """The others are not even shown; with none left it is invalid_scope."""
    async with issuer_bench(scope_allowed=reading_only) as bench:
        assert (await bench.sign_in())["scope"] == "orders:read"
        answer = await bench.send("GET", bench.authorize_url(scope="addresses"))
        assert parameters_of(answer)["error"] == "invalid_scope"
        assert (await bench.begin_device("addresses")).error == "invalid_scope"


@pytest.mark.requirement("3.2-18")
async def test_with_sign_in_turned_off_none_starts_and_refresh_goes_on() -> None:
    """auth.disabled, with a refresh token from before."""
    store = MemoryStore()
    await store.open()
    async with issuer_bench(store=store) as bench:
        tokens = await bench.sign_in()
        agent = bench.agent
    async with issuer_bench(store=store, agent=agent, company_sign_in_disabled=True) as bench:
        answer = await bench.send("GET", bench.authorize_url())
        assert parameters_of(answer)["error"] == "unauthorized_client"
        assert (await bench.begin_device()).error == "unauthorized_client"
        assert (await bench.refresh(tokens["refresh_token"])).status == 200
    await store.close()


@pytest.mark.requirement("papaver-53")
async def test_c53_an_interaction_is_decided_once_and_by_one_account() -> None:
    """Another account does not take it over, and a second decision finds nothing."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        answer = await browser.get(bench.authorize_url())
        interaction = interaction_of(answer)
        page = await bench.issuer.signed_in(interaction, DANA)
        with pytest.raises(InteractionOver) as refused:
            await bench.issuer.signed_in(interaction, EVE)
        assert refused.value.rule == "interaction.one-account"
        with pytest.raises(InteractionOver) as refused:
            await bench.issuer.approve(interaction, EVE, scopes=["orders:read"])
        assert refused.value.rule == "interaction.one-account"
        await browser.get(page)
        assert "code" in parameters_of(await browser.decide())
        assert (await browser.decide()).status == 400
        assert (await browser.get(page)).status == 400
        with pytest.raises(InteractionOver):
            await bench.issuer.decline(interaction)


@pytest.mark.requirement("papaver-53")
async def test_an_app_with_its_own_consent_page_approves_and_declines_itself() -> None:
    """approve and decline return where the browser goes."""
    async with issuer_bench() as bench:
        interaction = interaction_of(await bench.send("GET", bench.authorize_url()))
        url = await bench.issuer.approve(interaction, DANA, scopes=["orders:write"])
        code = url.partition("code=")[2].partition("&")[0]
        assert (await bench.redeem(code)).json["scope"] == "orders:write"
        interaction = interaction_of(await bench.send("GET", bench.authorize_url()))
        assert "error=access_denied" in await bench.issuer.decline(interaction)


@pytest.mark.requirement("papaver-53")
async def test_an_interaction_ends_after_ten_minutes() -> None:
    """The app learns that it is over, the User sees a page."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        interaction = interaction_of(await browser.get(bench.authorize_url()))
        page = await bench.issuer.signed_in(interaction, DANA)
        bench.clock.advance(600)
        assert (await browser.get(page)).status == 400
        with pytest.raises(InteractionOver) as over:
            await bench.issuer.signed_in(interaction, DANA)
        assert over.value.rule == "interaction.open"


@pytest.mark.requirement("papaver-54")
async def test_the_consent_page_belongs_to_the_browser_that_began() -> None:
    """Nobody is made to finish another's sign-in, nor opens a page that only the signed-in User was sent to."""
    async with issuer_bench() as bench:
        browser, other = bench.browser(), bench.browser()
        answer = await browser.get(bench.authorize_url())
        page = await bench.issuer.signed_in(interaction_of(answer), DANA)
        assert (await other.get(page)).status == 400
        await other.get(bench.authorize_url())
        assert (await other.get(page)).status == 400
        assert (await browser.get(page.replace("ticket=", "ticket=x"))).status == 400
        assert (await browser.get(page)).status == 200


@pytest.mark.requirement("papaver-55")
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example", "sec-fetch-site": None},
        {"origin": "null", "sec-fetch-site": None},
    ],
    ids=str,
)
async def test_a_form_from_another_origin_is_refused(headers: dict[str, str | None]) -> None:
    """Though cookie and token are right; the right one is taken afterwards."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        await bench.to_consent(browser)
        view = browser.view
        pairs = [("csrf", view.csrf), ("scope", "orders:read"), ("decision", "approve")]
        assert (await browser.submit(view.action, pairs, headers=headers)).status == 403
        assert (await browser.submit(view.action, pairs)).status == 303


@pytest.mark.requirement("papaver-55")
async def test_c63_every_form_of_a_page_needs_its_token() -> None:
    """Missing, another page's or another browser's: 403. Machines, which prove themselves, need none."""
    async with issuer_bench() as bench:
        browser, other = bench.browser(), bench.browser()
        await bench.to_consent(other)
        foreign = other.view.csrf
        await bench.to_consent(browser)
        view = browser.view
        for csrf in ("", foreign, view.csrf[:-1], "é"):
            pairs = [("csrf", csrf), ("scope", "orders:read"), ("decision", "approve")]
            assert (await browser.submit(view.action, pairs)).status == 403
        assert (await browser.submit(f"{ISSUER}/device", [("user_code", "WDJB-MJHT")])).status == 403
        assert (await bench.begin_device()).status == 200


@pytest.mark.requirement("papaver-54")
@pytest.mark.parametrize(("issuer", "prefix", "path"), [(ISSUER, "__Host-", "/"), (ISSUER + "/a", "__Secure-", "/a")])
async def test_cookies_are_the_issuers_alone(issuer: str, prefix: str, path: str) -> None:
    """HttpOnly, Secure, SameSite=Lax, for this host or path only; two that differ count as none."""
    async with issuer_bench(issuer=issuer) as bench:
        browser = bench.browser()
        answer = await browser.get(bench.authorize_url())
        cookie = answer.headers.first("set-cookie") or ""
        assert cookie.startswith(f"{prefix}papaver-browser=")
        assert set(cookie.split("; ")[1:]) == {
            "Max-Age=600",
            f"Path={path}",
            "Secure",
            "HttpOnly",
            "SameSite=Lax",
        }
        page = await bench.issuer.signed_in(interaction_of(answer), DANA)
        name, value = next(iter(browser.cookies.items()))
        planted = {"cookie": f"{name}={'A' * 43}; {name}={value}"}
        assert (await bench.send("GET", page, headers=planted)).status == 400
        assert (await browser.get(page)).status == 200


@pytest.mark.requirement("papaver-53")
async def test_the_consent_page_shows_who_asks_for_what() -> None:
    """The agent's host, its own name in one line, each scope with its description, and what it holds already."""
    async with issuer_bench() as bench:
        await bench.sign_in(["orders:read"])
        browser = bench.browser()
        await bench.to_consent(browser)
        view = browser.view
        assert (view.agent.name, view.agent.host) == ("Example Agent", "agent.example")
        assert (view.account, view.held) == ("dana@example.com", {"orders:read"})
        assert [(scope.name, scope.changes) for scope in view.scopes] == [
            ("orders:read", "none"),
            ("orders:write", "irreversible"),
        ]
        await browser.submit(view.action, [("csrf", view.csrf)])
        assert browser.view.problem


@pytest.mark.requirement("papaver-56")
async def test_operator_calls_need_a_running_issuer() -> None:
    """They name the remedy."""
    issuer = EmbeddedIssuer(ISSUER, sign_in_page="/sign-in")
    with pytest.raises(ConfigurationError) as error:
        await issuer.disable(DANA)
    assert error.value.rule == "configuration.running"
    assert issuer.connected_url() == f"{ISSUER}/connected"

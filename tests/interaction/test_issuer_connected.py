"""The page of connected agents at an embedded issuer (5.5)."""

from __future__ import annotations

import pytest

from papaver.company.authserver import InteractionOver
from papaver.protocol.terms import AccountId
from papaver.testing.issuer import DANA, ISSUER, Browser, IssuerBench, interaction_of, issuer_bench
from papaver.testing.keys import NOW

pytestmark = pytest.mark.anyio
PAGE = f"{ISSUER}/connected"


async def open_page(bench: IssuerBench, browser: Browser, account: AccountId = DANA) -> None:
    """Sign in and stand on the page."""
    answer = await browser.get(bench.issuer.connected_url())
    back = await browser.get(await bench.issuer.signed_in(interaction_of(answer), account, name="dana@example.com"))
    assert back.headers.first("location") == PAGE
    await browser.get(PAGE)


@pytest.mark.requirement("5.5-12", "papaver-62")
async def test_a_user_sees_the_agents_and_disconnects_one() -> None:
    """Every grant of that client at the account, and of no other account."""
    async with issuer_bench() as bench:
        tokens = [await bench.sign_in(["orders:read"]), await bench.sign_in(["orders:write"])]
        eve = await bench.sign_in(account=AccountId("acct_eve"))
        browser = bench.browser()
        await open_page(bench, browser)
        view = browser.view
        (agent,) = view.agents
        assert (agent.agent.host, agent.since, view.account) == ("agent.example", NOW, "dana@example.com")
        assert {scope.name for scope in agent.scopes} == {"orders:read", "orders:write"}
        pairs = [("csrf", view.csrf), ("client_id", agent.agent.client_id)]
        answer = await browser.submit(view.action, pairs)
        await browser.get(answer.headers.first("location") or "")
        assert (browser.view.agents, bool(browser.view.notice)) == ((), True)
        assert [await bench.good(one["access_token"]) for one in tokens] == [False, False]
        assert (await bench.refresh(tokens[0]["refresh_token"])).error == "invalid_grant"
        assert await bench.good(eve["access_token"])


@pytest.mark.requirement("papaver-62")
async def test_the_page_knows_a_user_for_fifteen_minutes() -> None:
    """Then it asks to sign in again; a form sent then disconnects nothing."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        browser = bench.browser()
        await open_page(bench, browser)
        view = browser.view
        bench.clock.advance(900)
        answer = await browser.submit(view.action, [("csrf", view.csrf), ("client_id", bench.agent.client_id)])
        assert "interaction=" in (answer.headers.first("location") or "")
        assert await bench.good(tokens["access_token"])


@pytest.mark.requirement("papaver-62", "papaver-55")
async def test_a_forged_form_disconnects_nothing() -> None:
    """Without the token, or from elsewhere."""
    async with issuer_bench() as bench:
        tokens = await bench.sign_in()
        browser = bench.browser()
        await open_page(bench, browser)
        view = browser.view
        client = ("client_id", bench.agent.client_id)
        assert (await browser.submit(PAGE, [client])).status == 403
        cross = {"sec-fetch-site": "cross-site"}
        assert (await browser.submit(PAGE, [("csrf", view.csrf), client], headers=cross)).status == 403
        assert await bench.good(tokens["access_token"])


@pytest.mark.requirement("papaver-62", "papaver-54")
async def test_its_ticket_is_good_once_and_in_its_browser_only() -> None:
    """And the cookie that lets the User in was seen by nobody before."""
    async with issuer_bench() as bench:
        browser, other = bench.browser(), bench.browser()
        interaction = interaction_of(await browser.get(PAGE))
        url = await bench.issuer.signed_in(interaction, DANA)
        assert (await other.get(url)).status == 400
        before = dict(browser.cookies)
        assert (await browser.get(url)).status == 303
        assert "__Host-papaver-connected" in browser.cookies.keys() - before.keys()
        assert (await browser.get(url)).status == 400


@pytest.mark.requirement("papaver-62", "papaver-53")
async def test_a_sign_in_for_this_page_approves_nothing_and_an_agents_does_not_open_it() -> None:
    """Each interaction leads where it began."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        interaction = interaction_of(await browser.get(PAGE))
        with pytest.raises(InteractionOver) as error:
            await bench.issuer.approve(interaction, DANA, scopes=["orders:read"])
        assert error.value.rule == "interaction.asks"
        url = await bench.issuer.signed_in(interaction, DANA)
        assert (await browser.get(url.replace("/connected", "/consent"))).status == 400
        asked = interaction_of(await browser.get(bench.authorize_url()))
        url = await bench.issuer.signed_in(asked, DANA)
        assert (await browser.get(url.replace("/consent", "/connected"))).status == 400

"""Device Sign-In at an embedded issuer: codes, the page, polls (4.3, RFC 8628, RFC 10027)."""

from __future__ import annotations

import pytest

from papaver.testing.issuer import DANA, ISSUER, interaction_of, issuer_bench
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("4.3-01")
async def test_device_sign_in_from_request_to_tokens() -> None:
    """Pending until the User approved; then tokens, once."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device("orders:read orders:write")).json
        assert begun["verification_uri"] == f"{ISSUER}/device"
        assert begun["verification_uri_complete"] == f"{ISSUER}/device?user_code={begun['user_code']}"
        assert (begun["expires_in"], begun["interval"]) == (600, 5)
        assert (await bench.poll(begun["device_code"])).error == "authorization_pending"
        await bench.approve_device(begun["user_code"])
        tokens = (await bench.poll(begun["device_code"])).json
        assert tokens["scope"] == "orders:read orders:write"
        assert (await bench.verify(tokens["access_token"])).subject == DANA
        assert (await bench.poll(begun["device_code"])).error == "invalid_grant"
        assert (await bench.refresh(tokens["refresh_token"])).status == 200


@pytest.mark.requirement("4.3-10")
async def test_b44_opening_the_link_approves_nothing() -> None:
    """It fills the code in; the User confirms it, signs in, sees who asks and the code, and approves."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        browser = bench.browser()
        assert (await browser.get(begun["verification_uri_complete"])).status == 200
        assert browser.view.user_code == begun["user_code"]
        assert (await bench.poll(begun["device_code"])).error == "authorization_pending"
        view = browser.view
        answer = await browser.submit(view.action, [("csrf", view.csrf), ("user_code", view.user_code)])
        await browser.get(await bench.issuer.signed_in(interaction_of(answer), DANA))
        assert browser.view.user_code == begun["user_code"]
        assert browser.view.agent.host == "agent.example"
        assert (await bench.poll(begun["device_code"])).error != "access_denied"
        done = await browser.decide()
        await browser.get(done.headers.first("location") or "")
        assert browser.view.kind == "done"
        assert (await bench.poll(begun["device_code"])).status == 200


@pytest.mark.requirement("4.3-04")
async def test_a_declined_and_an_expired_request_say_so() -> None:
    """access_denied at each poll; expired_token after ten minutes."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        browser = await bench.approve_device(begun["user_code"], "decline")
        assert (await bench.poll(begun["device_code"])).error == "access_denied"
        assert (await bench.poll(begun["device_code"])).error == "access_denied"
        late = (await bench.begin_device()).json
        bench.clock.advance(600)
        assert (await bench.poll(late["device_code"])).error == "expired_token"
        assert (await bench.enter(browser, late["user_code"])).status == 400
        assert browser.view.problem


@pytest.mark.requirement("papaver-53")
async def test_a_device_request_is_decided_once() -> None:
    """Two pages of one code: the second decision finds it decided."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        second = bench.browser()
        waiting = interaction_of(await bench.enter(second, begun["user_code"]))
        page = await bench.issuer.signed_in(waiting, DANA)
        await bench.approve_device(begun["user_code"], "decline")
        await second.get(page)
        assert (await second.decide()).status == 400
        assert (await bench.poll(begun["device_code"])).error == "access_denied"
        late = (await bench.begin_device()).json
        waiting = interaction_of(await bench.enter(second, late["user_code"]))
        bench.clock.advance(599)
        await second.get(await bench.issuer.signed_in(waiting, DANA))
        bench.clock.advance(1)
        assert (await second.decide()).status == 400


@pytest.mark.requirement("papaver-59")
async def test_b42_the_first_poll_is_never_too_early() -> None:
    """In the same second as the request."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        assert (await bench.poll(begun["device_code"])).error == "authorization_pending"


@pytest.mark.requirement("papaver-59")
async def test_b43_polls_at_the_interval_with_jitter_are_never_refused() -> None:
    """Sixty of them, each up to a second early or late."""
    async with issuer_bench(device_code=1800) as bench:
        begun = (await bench.begin_device()).json
        for count in range(60):
            assert (await bench.poll(begun["device_code"])).error == "authorization_pending"
            bench.clock.advance(5 + (count * 7 % 21 - 10) / 10)


@pytest.mark.requirement("papaver-59")
async def test_a_hasty_poll_slows_down_from_the_next_one_on_and_approval_wins() -> None:
    """Five seconds more after each; an approved request is answered at once."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        code = begun["device_code"]
        assert (await bench.poll(code)).error == "authorization_pending"
        bench.clock.advance(1)
        assert (await bench.poll(code)).error == "slow_down"
        bench.clock.advance(10)
        assert (await bench.poll(code)).error == "authorization_pending"
        bench.clock.advance(5)
        assert (await bench.poll(code)).error == "slow_down"
        await bench.approve_device(begun["user_code"])
        assert (await bench.poll(code)).status == 200


@pytest.mark.requirement("papaver-58")
async def test_b43_unknown_device_codes_are_limited_and_known_ones_are_not() -> None:
    """Per client; the good one goes on meanwhile."""
    async with issuer_bench(unknown_device_codes=3) as bench:
        begun = (await bench.begin_device()).json
        for _ in range(3):
            assert (await bench.poll("guess")).error == "invalid_grant"
        assert (await bench.poll("guess")).status == 429
        assert (await bench.poll(begun["device_code"])).error == "authorization_pending"


@pytest.mark.requirement("papaver-58")
async def test_user_codes_are_tried_ten_times_a_minute_and_entered_ten_times_at_most() -> None:
    """Per address, and per code whoever enters it."""
    async with issuer_bench() as bench:
        browser = bench.browser()
        for _ in range(10):
            assert (await bench.enter(browser, "WDJB-MJHT")).status == 400
        answer = await bench.enter(browser, "WDJB-MJHT")
        assert answer.status == 429
        assert answer.headers.first("retry-after")
        begun = (await bench.begin_device()).json
        assert (await bench.enter(browser, begun["user_code"])).status == 429
        for number in range(10):
            assert (await bench.enter(browser, begun["user_code"], peer=f"192.0.2.{100 + number}")).status == 303
        assert (await bench.enter(browser, begun["user_code"], peer="192.0.2.200")).status == 400


@pytest.mark.requirement("4.3-04")
async def test_a_user_code_may_be_typed_as_people_do() -> None:
    """Small letters, spaces, no hyphen; what is no code is told as unknown."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        browser = bench.browser()
        typed = begun["user_code"].lower().replace("-", " ")
        assert (await bench.enter(browser, typed)).status == 303
        assert (await bench.enter(browser, "no code")).status == 400
        assert (await bench.enter(browser, "")).status == 400


@pytest.mark.requirement("4.3-01")
async def test_a_device_code_belongs_to_its_client() -> None:
    """Another one gets nothing by it, before and after approval."""
    other = AgentKeys("https://other.example/agent.json")
    async with issuer_bench() as bench:
        bench.documents.publish(other)
        begun = (await bench.begin_device()).json
        assert (await bench.poll(begun["device_code"], agent=other)).error == "invalid_grant"
        await bench.approve_device(begun["user_code"])
        assert (await bench.poll(begun["device_code"], agent=other)).error == "invalid_grant"
        assert (await bench.poll(begun["device_code"])).status == 200


@pytest.mark.requirement("4.7-17", "4.7-18", "4.7-31")
@pytest.mark.parametrize(
    ("scope", "resource", "error"),
    [
        ("", None, "invalid_scope"),
        ("unknown", None, "invalid_scope"),
        ("orders:read  addresses", None, "invalid_scope"),
        ("orders:read", "https://elsewhere.example", "invalid_target"),
    ],
)
async def test_device_requests_are_refused_as_authorization_requests_are(
    scope: str, resource: str | None, error: str
) -> None:
    """Scope and resource."""
    async with issuer_bench() as bench:
        answer = await bench.begin_device(scope, [] if resource is None else [("resource", resource)])
        assert (answer.status, answer.error) == (400, error)


@pytest.mark.requirement("papaver-53")
async def test_an_app_may_decide_a_device_request_on_its_own_page() -> None:
    """approve and decline lead to a page that says what happened."""
    async with issuer_bench() as bench:
        begun = (await bench.begin_device()).json
        waiting = interaction_of(await bench.enter(bench.browser(), begun["user_code"]))
        assert await bench.issuer.approve(waiting, DANA, scopes=["orders:read"]) == f"{ISSUER}/consent?done=approved"
        assert (await bench.poll(begun["device_code"])).status == 200

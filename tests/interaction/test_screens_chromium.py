"""The pages of sign-in in a real browser: laid out, accessible, by keyboard, without script, and in nobody's frame."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from papaver.web.messages import Headers, Response
from tests.house.account_shop import SHOP, AccountShop, account_shop
from tests.house.browser import chromium, faults_of, served
from tests.house.views import ISSUER, pages, responses
from tests.interop.processes import papaver

pytestmark = pytest.mark.needs("chromium")
NAMES = sorted(pages())


@pytest.fixture(name="shop", scope="module")
def start_shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[AccountShop]:
    """A Company with its issuer, and a Personal Agent that is registered there."""
    with account_shop(tmp_path_factory.mktemp("shop")) as shop:
        yield shop


@pytest.fixture(name="browser", scope="module")
def start_browser(shop: AccountShop) -> Generator[Browser]:
    """One for all of this file, which finds the shop on this machine."""
    hosts = (SHOP, "auth.shop.example")
    with chromium(shop.folder / f"{SHOP}.pem", ports=dict.fromkeys(hosts, shop.port)) as browser:
        yield browser


@pytest.fixture(name="page")
def open_page(browser: Browser) -> Generator[Page]:
    """A page that reaches our views and nothing else; whatever its console says fails the test."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    served(page, responses())
    yield page
    context.close()
    # A page that is answered with an error status is told on the console, and meant.
    assert [text for text in said if "status of 400" not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_page_scrolls_sideways_on_a_small_screen(page: Page, name: str) -> None:
    """At 360 pixels, with hostile names too."""
    page.goto(f"{ISSUER}/{name}")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.needs("node", "npm")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(page: Page, name: str, scheme: str) -> None:
    """Contrast, names, roles and landmarks, in both colour schemes."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"{ISSUER}/{name}")
    assert faults_of(page) == []


def test_no_other_page_frames_ours(browser: Browser) -> None:
    """Clickjacking: the browser refuses, says why, and shows nothing of it."""
    framing = Response(
        200, Headers([("content-type", "text/html")]), f'<iframe src="{ISSUER}/consent"></iframe>'.encode()
    )
    said: list[str] = []
    other = browser.new_page()
    other.on("console", lambda message: said.append(message.text))
    served(other, {**responses(), "https://evil.example/": framing})
    other.goto("https://evil.example/")
    assert any("frame-ancestors" in text for text in said), said
    assert all("Allow this agent" not in frame.content() for frame in other.frames)
    other.close()


# ── the whole way, at a real Company ────────────────────────────────────────────────────────────────────────────


@pytest.fixture(name="user")
def open_user_page(browser: Browser) -> Generator[Page]:
    """The User's, with JavaScript switched off and without cookies from before."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.set_default_timeout(20_000)
    yield page
    context.close()


def command_of(shop: AccountShop, name: str, *arguments: str) -> dict[str, Any]:
    """The last line of a command, in a process of its own: the browser's driver has this one's event loop."""
    done = papaver(name, SHOP, *arguments, "--json", *shop.options, cwd=shop.folder)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def focus(page: Page, selector: str) -> None:
    """Move the focus there with the Tab key, as somebody without a mouse does."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"{selector} is not reached by Tab")


@pytest.mark.requirement("4.2-03")
def test_direct_sign_in_by_keyboard_and_without_script(shop: AccountShop, user: Page) -> None:
    """One scope is unticked with the space bar, then approved; the agent gets the other one, and says so."""
    command = ("sign-in", SHOP, "--no-open", "--scope", "orders:read orders:write")
    with shop.started(*command) as running:
        user.goto(shop.said(running)["authorization_url"])
        assert "agent.example" in user.inner_text("main")
        focus(user, 'input[value="orders:write"]')
        user.keyboard.press("Space")
        focus(user, 'button[value="approve"]')
        user.keyboard.press("Enter")
        assert shop.said(running)["scope"] == "orders:read"
        assert "close this window" in user.inner_text("body")
    assert command_of(shop, "sign-out")


@pytest.mark.requirement("4.7-30")
def test_a_decline_by_keyboard_ends_the_sign_in(shop: AccountShop, user: Page) -> None:
    """Nothing is held afterwards."""
    with shop.started("sign-in", SHOP, "--no-open", "--scope", "orders:read") as running:
        user.goto(shop.said(running)["authorization_url"])
        focus(user, 'button[value="decline"]')
        user.keyboard.press("Enter")
        assert shop.said(running)["error"] == "access_denied"


@pytest.mark.requirement("4.3-10")
def test_device_sign_in_and_disconnect(shop: AccountShop, user: Page) -> None:
    """Opening the link approves nothing; the code, the consent page that shows it, and later the disconnect."""
    with shop.started("sign-in", SHOP, "--device", "--scope", "orders:read") as running:
        told = shop.said(running)
        user.goto(f"{told['verification_uri']}?user_code={told['user_code']}")
        assert user.input_value('input[name="user_code"]') == told["user_code"]
        focus(user, "button.main")
        user.keyboard.press("Enter")
        assert told["user_code"] in user.inner_text("main")
        focus(user, 'button[value="approve"]')
        user.keyboard.press("Enter")
        user.wait_for_selector("text=Approved")
        assert shop.said(running)["scope"] == "orders:read"
    assert command_of(shop, "api", "listOrders")["status"] == 200
    user.goto("https://auth.shop.example/connected")
    focus(user, 'button[aria-label="Disconnect agent.example"]')
    user.keyboard.press("Enter")
    user.wait_for_selector("text=No agent is connected.")
    assert command_of(shop, "api", "listOrders")["error"] == "sign_in_needed"


def test_a_form_from_elsewhere_decides_nothing(shop: AccountShop, user: Page) -> None:
    """CSRF: another site sends the User's browser to the consent page with a form of its own, token and all."""
    with shop.started("sign-in", SHOP, "--no-open", "--scope", "orders:read") as running:
        user.goto(shop.said(running)["authorization_url"])
        csrf = user.locator('input[name="csrf"]').get_attribute("value")
        action = user.locator("form").get_attribute("action")
        forged = (
            f'<form method="post" action="{action}"><input name="csrf" value="{csrf}">'
            '<input name="scope" value="orders:read"><button name="decision" value="approve">Win</button></form>'
        )
        user.route(
            "https://evil.example/", lambda route: route.fulfill(status=200, content_type="text/html", body=forged)
        )
        user.goto("https://evil.example/")
        with user.expect_response(lambda response: response.url.startswith("https://auth.shop.example/")) as answered:
            user.click("button")
        assert answered.value.status in (400, 403)
        assert "close this window" not in user.inner_text("body")

"""The staff console in real browsers: laid out, accessible, by keyboard, live for two at once, and without script."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from papaver.web.messages import Headers, Response
from tests.house.account_shop import SHOP, AccountShop, account_shop
from tests.house.browser import chromium, faults_of, served
from tests.house.staff_views import ORIGIN, staff_pages, staff_responses
from tests.interop.processes import Running, papaver

pytestmark = pytest.mark.needs("chromium")
NAMES = sorted(staff_pages())
CONSOLE = f"https://{SHOP}/poppy/staff"

MODULE = """
from papaver import Company, SqliteStore, Turn
from papaver.adapters.fastapi import Poppy
from papaver.adapters.httpx2 import NetworkSettings
from papaver.company import EmbeddedIssuer, Scope
from papaver.company.people import Person
from fastapi import FastAPI

company = Company(
    domain="shop.example",
    name="Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("shop.db"),
    staffed=True,
    sign_in=EmbeddedIssuer("https://auth.shop.example", sign_in_page="https://shop.example/sign-in"),
    scopes=[Scope("orders:read", "See your orders", "none", True), Scope("orders:write", "Order", "reversible", True)],
)

@company.conversation
async def answer(turn: Turn) -> str:
    if "person" in turn.text:
        turn.hand_off()
    return f"You said: {turn.text}"

async def who(visit):
    name = visit.cookie("who")
    return Person(f"aut_{name}", name.title()) if name else None

company.staff_console(authenticate=who)
app = FastAPI()
Poppy(app, company, network=NetworkSettings.from_environment())
"""


@pytest.fixture(name="shop", scope="module")
def start_shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[AccountShop]:
    """A Company with a console, and a Personal Agent that is registered there."""
    with account_shop(tmp_path_factory.mktemp("shop"), module=MODULE) as shop:
        yield shop


@pytest.fixture(name="browser", scope="module")
def start_browser(shop: AccountShop) -> Generator[Browser]:
    """One for all of this file, which finds the shop on this machine."""
    with chromium(shop.folder / f"{SHOP}.pem", ports={SHOP: shop.port}) as browser:
        yield browser


# ── each page by itself ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(name="page")
def open_page(browser: Browser) -> Generator[Page]:
    """A page that reaches our views and nothing else; whatever its console says fails the test."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    served(page, staff_responses())
    yield page
    context.close()
    # A page that is answered with an error status is told on the console, and meant.
    assert [text for text in said if "responded with a status of 40" not in text] == []


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("name", NAMES)
def test_no_page_scrolls_sideways(page: Page, name: str, width: int) -> None:
    """On a small screen and a large one, with hostile words too, and with everything unfolded."""
    page.set_viewport_size({"width": width, "height": 740})
    page.goto(f"{ORIGIN}/{name}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.needs("node", "npm")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(page: Page, name: str, scheme: str) -> None:
    """Contrast, names, roles and landmarks, in both colour schemes and widths, with everything unfolded."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"{ORIGIN}/{name}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for width in (360, 1200):
        page.set_viewport_size({"width": width, "height": 740})
        assert faults_of(page) == []


def test_no_other_page_frames_the_console(browser: Browser) -> None:
    """Clickjacking: the browser refuses, also the fragment that our own page frames."""
    frames = "".join(f'<iframe src="{ORIGIN}/{name}"></iframe>' for name in ("queue", "mine", "live"))
    evil = Response(200, Headers([("content-type", "text/html")]), frames.encode())
    said: list[str] = []
    other = browser.new_page()
    other.on("console", lambda message: said.append(message.text))
    served(other, {**staff_responses(), "https://evil.example/": evil})
    other.goto("https://evil.example/")
    assert len([text for text in said if "frame-ancestors" in text]) >= 3, said
    assert all("agent.example" not in frame.content() for frame in other.frames)
    other.close()


# ── two people at a real Company ────────────────────────────────────────────────────────────────────────────────


class People:
    """Windows of people, each in a browser profile of its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.contexts: list[BrowserContext] = []

    def window(self, name: str, *, script: bool = True, width: int = 1200) -> Page:
        context = self._browser.new_context(
            java_script_enabled=script, viewport={"width": width, "height": 900}, reduced_motion="reduce"
        )
        context.add_cookies([{"name": "who", "value": name, "url": f"https://{SHOP}/"}])
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        return page


@pytest.fixture(name="people")
def open_windows(browser: Browser) -> Generator[People]:
    """As many as a test wants."""
    people = People(browser)
    yield people
    for context in people.contexts:
        context.close()


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ask(shop: AccountShop, *arguments: str) -> list[dict[str, Any]]:
    """What the Personal Agent hears until the Company is idle; in a process of its own."""
    done = papaver("ask", SHOP, *arguments, "--json", *shop.options, cwd=shop.folder)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return lines_of(done.stdout)


def last_of(shop: AccountShop, asking: Running) -> dict[str, Any]:
    """The last line of a command that waits until the Company is idle."""
    while True:
        line = shop.said(asking)
        if "event" not in line:
            return line


def heard(lines: list[dict[str, Any]]) -> list[Any]:
    """Texts, and whatever else there is by its type."""
    events = [line["event"] for line in lines if "event" in line]
    return [one["message"].get("text") if one["type"] == "message" else one["type"] for one in events]


def focus(page: Page, selector: str) -> None:
    """Move the focus there with the Tab key, as somebody without a mouse does."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"{selector} is not reached by Tab")


@pytest.mark.requirement("papaver-146", "8.9-03", "8.9-05")
def test_two_windows_one_conversation(shop: AccountShop, people: People) -> None:
    """Queued, seen by both, taken by one, answered live, brought on with the User and scopes, handed back, closed."""
    alex, kim = people.window("alex"), people.window("kim", width=360)
    alex.goto(CONSOLE)
    kim.goto(CONSOLE)
    expect(alex.get_by_text("Nobody waits.")).to_be_visible()
    with shop.started("ask", SHOP, "I need a person") as asking:
        # Both see it come, without a reload.
        for window in (alex, kim):
            window.wait_for_selector(".row .go")
            assert window.title().startswith("(1)")
            window.click(".row .go")
        conversation = alex.url.rpartition("/")[2]
        assert kim.url == alex.url
        focus(alex, "button.main")
        alex.keyboard.press("Enter")
        expect(alex.locator("#standing")).to_contain_text("You have this conversation.")
        # The other one is told who has it, at once, and has nothing to press.
        expect(kim.locator("#standing")).to_contain_text("Alex has this conversation.")
        expect(kim.get_by_role("button", name="Take over")).to_have_count(0)
        assert last_of(shop, asking)["responder"] == "human"
    # A message comes while Alex types: it appears, and what is typed stays.
    focus(alex, "#say")
    alex.keyboard.type("Hello, I am Alex")
    assert ask(shop, "Are you there?", "--conversation", conversation)
    expect(alex.locator("#events")).to_contain_text("Are you there?")
    expect(kim.locator("#events")).to_contain_text("Are you there?")
    expect(alex.locator("#say")).to_have_value("Hello, I am Alex")
    assert alex.locator("#say:focus").count() == 1
    alex.keyboard.press("Control+Enter")
    expect(alex.locator(".event.person .text")).to_have_text("Hello, I am Alex")
    expect(alex.locator("#say")).to_have_value("")
    # What could not be sent is not lost either.
    alex.fill("#say", "Into the void")
    alex.context.set_offline(True)
    expect(alex.locator("#lost")).to_have_text("The connection is lost. Trying again.", timeout=30_000)
    alex.get_by_role("button", name="Send").click()
    alex.context.set_offline(False)
    alex.goto(f"{CONSOLE}/conversations/{conversation}")
    expect(alex.locator("#say")).to_have_value("Into the void")
    alex.fill("#say", "")
    expect(kim.locator(".event.person .by")).to_have_text("Alex")
    assert "Hello, I am Alex" in heard(ask(shop, "Good.", "--conversation", conversation))
    # The User, by keyboard; what was begun in the other field is not lost.
    alex.fill("#say", "One more thing")
    focus(alex, ".way summary")
    alex.keyboard.press("Enter")
    focus(alex, "#reason")
    alex.keyboard.type("To confirm the exchange.")
    focus(alex, ".way[open] button.main")
    alex.keyboard.press("Enter")
    expect(alex.locator(".notice.done")).to_have_text("The Personal Agent was asked to bring the User.")
    expect(alex.locator("#say")).to_have_value("One more thing")
    alex.get_by_text("Ask for scopes").click()
    alex.get_by_label("See your orders").check()
    alex.locator(".way[open] button.main").click()
    expect(alex.locator("#events")).to_contain_text("The User was asked to sign in and allow:")
    done = papaver("ask", SHOP, "--conversation", conversation, "Fine.", "--json", *shop.options, cwd=shop.folder)
    told = heard(lines_of(done.stdout))
    assert {"user_requested", "authorization"} <= set(told)
    # Back to the Company Agent, which answers again.
    alex.get_by_role("button", name="Hand back to the Company Agent").click()
    expect(alex.locator(".notice.done")).to_have_text("The Company Agent has it again.")
    expect(kim.get_by_role("button", name="Take over")).to_be_visible()
    expect(kim.locator("#events")).to_contain_text("You said: Good.")
    assert "You said: Good.\n\nFine." in heard(ask(shop, "--conversation", conversation))
    # Closing: unfolded first, then confirmed.
    kim.get_by_text("Close the conversation").click()
    kim.get_by_role("button", name="Close it for good").click()
    expect(kim.locator(".notice.done")).to_have_text("The conversation is closed.")
    expect(kim.get_by_text("Nobody waits.")).to_be_visible()


def test_without_script_it_works_too(shop: AccountShop, people: People) -> None:
    """Two take it and one is told who; a frame shows what is new while the form stays as it is."""
    alex, kim = people.window("alex", script=False, width=360), people.window("kim", script=False)
    with shop.started("ask", SHOP, "A person, please") as asking:
        alex.goto(CONSOLE)
        alex.wait_for_selector(".row .go")
        alex.click(".row .go")
        kim.goto(alex.url)
        conversation = alex.url.rpartition("/")[2]
        alex.click("text=Take over")
        with kim.expect_navigation() as answered:
            kim.click("text=Take over")
        assert answered.value is not None
        assert answered.value.status == 409
        assert "Alex handles this conversation already." in kim.inner_text("main")
        assert last_of(shop, asking)["responder"] == "human"
    alex.fill("#say", "Half a sentence")
    assert ask(shop, "Hello?", "--conversation", conversation)
    alex.frame_locator("iframe.live").get_by_text("Hello?").wait_for()
    assert alex.input_value("#say") == "Half a sentence"
    alex.get_by_role("button", name="Send").click()
    assert "Half a sentence" in alex.inner_text("#events")
    alex.click("text=Close the conversation")
    alex.click("text=Close it for good")
    assert "The conversation is closed." in alex.inner_text("main")


def test_a_form_from_elsewhere_takes_nothing(shop: AccountShop, people: People) -> None:
    """CSRF: another site sends the person's own browser to the console with a form, token and all."""
    alex = people.window("alex")
    with shop.started("ask", SHOP, "A person, please") as asking:
        alex.goto(CONSOLE)
        alex.wait_for_selector(".row .go")
        alex.click(".row .go")
        where = alex.url
        action = alex.locator("form").first.get_attribute("action")
        csrf = alex.locator('input[name="csrf"]').first.get_attribute("value")
        forged = (
            f'<form method="post" action="https://{SHOP}{action}"><input name="csrf" value="{csrf}">'
            "<button>Win</button></form>"
        )
        alex.route(
            "https://evil.example/", lambda route: route.fulfill(status=200, content_type="text/html", body=forged)
        )
        alex.goto("https://evil.example/")
        with alex.expect_response(lambda response: response.url.startswith(CONSOLE)) as answered:
            alex.click("button")
        assert answered.value.status == 403
        alex.goto(where)
        expect(alex.locator("#standing")).to_contain_text("Waiting for a person.")
        alex.get_by_text("Nobody is available").click()
        alex.get_by_role("button", name="Let the Company Agent go on").click()
        assert last_of(shop, asking)["responder"] == "agent"

"""`sign-in`, `sign-out`, `status`, `api` and `ask` against a real Company with an issuer, as processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.account_shop import SHOP, AccountShop, account_shop


@pytest.fixture(name="shop", scope="module")
def make_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountShop]:
    """One Company for all; each test has a User of its own."""
    with account_shop(tmp_path_factory.mktemp("account")) as shop:
        yield shop


@pytest.mark.requirement("papaver-103")
def test_direct_sign_in_comes_back_to_this_machine(shop: AccountShop) -> None:
    """Link, browser, callback; then scopes, account and when the access token expires; status shows them."""
    user = ["--user", "direct"]
    with shop.started("sign-in", SHOP, "--scope", "orders:read orders:write", "--no-open", *user) as running:
        begun = shop.said(running)
        assert (begun["company_name"], begun["domain"]) == ("Shop", SHOP)
        assert begun["requested"] == "orders:read orders:write"
        page = shop.browser().approve(begun["authorization_url"])
        assert page.url.startswith("http://127.0.0.1:")
        assert (page.status, "You can close this window" in page.document) == (200, True)
        end = shop.said(running)
        assert running.process.wait(30) == 0
    assert (end["scope"], end["account"]) == ("orders:read orders:write", "default")
    accounts = [line for line in shop.lines("status", SHOP) if line.get("user") == "direct"]
    assert [(one["state"], one["scope"]) for one in accounts] == [("signed_in", "orders:read orders:write")]
    assert accounts[0]["expires_at"] == end["expires_at"]
    assert "signed in" in shop.run("status").stdout


def test_a_user_who_declines_ends_it(shop: AccountShop) -> None:
    """The error of OAuth, and nothing that was held is lost."""
    with shop.started("sign-in", SHOP, "--scope", "orders:read", "--no-open", "--user", "declines") as running:
        browser = shop.browser()
        page = browser.open(shop.said(running)["authorization_url"])
        browser.send(page, {"decision": "decline"})
        told = shop.said(running)
        assert running.process.wait(30) == 1
    assert told["error"] == "access_denied"


def test_what_was_not_approved_is_told(shop: AccountShop) -> None:
    """Some scopes were unticked."""
    end = shop.sign_in("--scope", "orders:read", "--scope", "orders:write", "--user", "some", without=("orders:write",))
    assert end["scope"] == "orders:read"


def test_the_address_may_be_pasted(shop: AccountShop) -> None:
    """For a browser on another machine: a wrong paste is told, the right one ends it."""
    process = shop.typed("sign-in", SHOP, "--scope", "orders:read", "--no-open", "--user", "paste")
    assert process.stdin is not None
    assert process.stdout is not None
    url = next(line.strip() for line in process.stdout if line.strip().startswith("https://"))
    callback = shop.browser().approve(url, stop="http://127.0.0.1").url
    process.stdin.write(f"\nnonsense\n{callback}\n")
    process.stdin.flush()
    said = process.stdout.read()
    process.stdin.close()
    process.stdout.close()
    assert process.wait(30) == 0
    assert "that is not the URL that the browser came back to" in said
    assert f"Signed in at Shop ({SHOP}): orders:read" in said
    assert callback not in said


@pytest.mark.requirement("4.3-06", "4.3-09")
def test_device_sign_in_shows_link_code_and_whose_they_are(shop: AccountShop) -> None:
    """The Company's name and domain beside them; the device code is nowhere."""
    with shop.started("sign-in", SHOP, "--scope", "orders:read", "--device", "--user", "device") as running:
        shown = shop.said(running)
        assert (shown["company_name"], shown["domain"]) == ("Shop", SHOP)
        assert shown["verification_uri"] == "https://auth.shop.example/device"
        assert shown["user_code"] in shown["verification_uri_complete"]
        assert "device_code" not in shown
        browser = shop.browser()
        consent = browser.send(browser.open(shown["verification_uri"]), {"user_code": shown["user_code"]})
        browser.send(consent, {"decision": "approve"})
        end = shop.said(running)
        assert running.process.wait(30) == 0
    assert end["scope"] == "orders:read"


@pytest.mark.requirement("4.7-01")
def test_a_scope_that_only_the_api_documents_is_asked_for(shop: AccountShop) -> None:
    """It is not among `scopes_supported`, and the operation names it."""
    (gifts,) = [one for one in shop.lines("api", SHOP) if one["operation_id"] == "gifts"]
    assert gifts["scope"] == "gifts"
    (needed,) = shop.lines("api", SHOP, "gifts", "--user", "gifts", status=3)[-1:]
    assert needed["next"] == f"papaver sign-in {SHOP} --scope gifts --user gifts"
    assert shop.sign_in("--scope", "gifts", "--user", "gifts")["scope"] == "gifts"
    assert shop.lines("api", SHOP, "gifts", "--user", "gifts") == [{"status": 200, "body": {"cards": 1}}]


@pytest.mark.requirement("papaver-102")
def test_operations_are_listed_and_called(shop: AccountShop) -> None:
    """What each asks for; signed out what needs no account; then with it; a wider need asks for the union."""
    listed = {one["operation_id"]: one for one in shop.lines("api", SHOP)}
    assert listed["listOrders"]["path"] == "/orders"
    assert listed["order"]["parameters"] == [{"name": "sku", "in": "path", "required": True}]
    assert "listOrders" in shop.run("api", SHOP).stdout
    me = ["--user", "caller"]
    assert shop.lines("api", SHOP, "cart", *me)[0]["status"] == 200
    assert shop.lines("api", SHOP, "GET /cart", "--anonymous")[0]["status"] == 200
    answered, needed = shop.lines("api", SHOP, "listOrders", *me, status=3)
    assert answered["status"] == 401
    assert (needed["error"], needed["next"]) == (
        "sign_in_needed",
        f"papaver sign-in {SHOP} --scope orders:read --user caller",
    )
    shop.sign_in("--scope", "orders:read", *me)
    called = shop.lines("api", SHOP, "listOrders", "--param", "state=open", *me)
    assert called == [{"status": 200, "body": {"account": "acct_dana", "state": "open"}}]
    order = ["api", SHOP, "order", "--param", "sku=a b", "--body", '{"count": 2}', *me]
    wider = shop.lines(*order, status=3)[-1]
    assert wider["next"] == f"papaver sign-in {SHOP} --scope 'orders:read orders:write' --user caller"
    shop.sign_in("--scope", "orders:read orders:write", *me)
    assert shop.lines(*order) == [{"status": 200, "body": {"ordered": "a b", "count": 2}}]


@pytest.mark.requirement("papaver-101")
@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["nothing"], 2, "usage"),
        (["order"], 1, "invalid_parameter"),
        (["cart", "--param", "x=1"], 1, "invalid_parameter"),
        (["cart", "--body", "{"], 2, "usage"),
        (["cart", "--param", "x"], 2, "usage"),
        (["--param", "x=1"], 2, "usage"),
    ],
)
def test_a_call_that_is_wrong_is_told(shop: AccountShop, arguments: list[str], status: int, error: str) -> None:
    """Before anything is sent, with what to do."""
    told = shop.lines("api", SHOP, *arguments, status=status)[-1]
    assert told["error"] == error
    assert told["next"]


def test_an_answer_that_is_a_refusal_is_exit_status_1(shop: AccountShop) -> None:
    """With the Company's own answer above it."""
    shop.sign_in("--scope", "orders:write", "--user", "wrong")
    order = ["api", SHOP, "order", "--param", "sku=a1", "--body", '{"count": "many"}', "--user", "wrong"]
    answered, told = shop.lines(*order, status=1)
    assert answered["status"] == 422
    assert told["error"] == "refused"
    assert "many" in shop.run(*order, status=1).stdout


def test_a_conversation_goes_on_after_sign_in(shop: AccountShop) -> None:
    """`ask` ends with 3 and the command to type; the same conversation then goes on, and nothing is sent again."""
    me = ["--user", "talks"]
    *_, end, needed = shop.lines("ask", SHOP, "Where is my order?", *me, status=3)
    assert needed["next"] == f"papaver sign-in {SHOP} --scope orders:read --user talks"
    shop.sign_in("--scope", "orders:read", *me)
    *events, last = shop.lines("ask", SHOP, "--conversation", end["conversation_id"], *me)
    assert last["conversation_id"] == end["conversation_id"]
    texts = [one["event"]["message"]["text"] for one in events if one["event"]["type"] == "message"]
    assert texts[-1] == "The order of acct_dana is on its way."


def test_sign_out_revokes_and_the_next_call_is_signed_out(shop: AccountShop) -> None:
    """And no sign-in begins by itself any more (5.5); who has no account is told that."""
    me = ["--user", "leaves"]
    assert shop.lines("sign-out", SHOP, *me) == [{"signed_out": True, "account": "default", "revoked": True}]
    shop.sign_in("--scope", "orders:read", *me)
    assert shop.lines("sign-out", SHOP, *me)[0]["revoked"] is True
    (account,) = [line for line in shop.lines("status") if line.get("user") == "leaves" and "state" in line]
    assert (account["state"], account["scope"], account["unrevoked"]) == ("signed_out", "", 0)
    needed = shop.lines("api", SHOP, "listOrders", *me, status=3)[-1]
    assert needed["next"].startswith("only if the User asks for it")
    assert "Signed out at Shop" in shop.run("sign-out", SHOP, *me).stdout


def test_a_callback_of_our_own_site_is_taken_by_the_process_that_serves_it(tmp_path: Path) -> None:
    """`identity --serve` completes the sign-in, and `sign-in` sees it in the vault; pasting would do, too."""
    with account_shop(tmp_path, "--redirect-uri", "https://agent.example/callback") as shop:
        with shop.started("sign-in", SHOP, "--scope", "orders:read", "--no-open") as running:
            page = shop.browser().approve(shop.said(running)["authorization_url"])
            assert (page.status, "You can close this window" in page.document) == (200, True)
            end = shop.said(running)
        assert end["scope"] == "orders:read"
        again = shop.browser().open(f"{page.url}")
        assert (again.status, "This sign-in is over" in again.document) == (410, True)

"""The README's Company with accounts, served as it says, and a Personal Agent that signs its User in there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.account_shop import SHOP, account_shop

SAMPLE = Path(__file__).parents[2] / "docs_src" / "company_issuer.py"


@pytest.mark.requirement("4.2-01", "4.2-03")
def test_the_shop_of_the_readme_signs_its_users_in(tmp_path: Path) -> None:
    """A question that needs the account, the command that it names, the User's pages, and the answer; then the API."""
    with account_shop(tmp_path, module=SAMPLE.read_text(encoding="utf-8")) as shop:
        (need,) = [line for line in shop.lines("ask", SHOP, "Where is my order?", status=3) if "error" in line]
        assert f"papaver sign-in {SHOP} --scope orders:read" in need["next"]
        with shop.started("sign-in", SHOP, "--no-open", "--scope", "orders:read") as running:
            browser = shop.browser()
            page = browser.open(shop.said(running)["authorization_url"])
            wrong = browser.send(page, {"email": "dana@example.com", "password": "wrong"})
            assert (wrong.status, "wrong" in wrong.document) == (400, True)
            consent = browser.send(page, {"email": "dana@example.com", "password": "correct horse"})
            assert "See your orders" in consent.document
            browser.send(consent, {"decision": "approve"})
            assert shop.said(running)["scope"] == "orders:read"
        asked = shop.run("ask", SHOP, "Where is my order?")
        assert "acct dana@example.com has one order: a jacket, on its way." in asked.stdout
        assert shop.lines("api", SHOP, "listOrders")[-1]["body"] == ["a jacket for acct dana@example.com"]

"""No command shows a token, a code, a verifier, a device code, an assertion or a proof, whatever it is asked for."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from papaver.personal_agent.records import ACCOUNT
from papaver.stores.sqlite.vault import SqliteVault
from tests.house.account_shop import SHOP, AccountShop, account_shop

JWT = re.compile(r"eyJ[\w-]{10,}\.[\w-]+\.[\w-]+")


async def _account(home: Path) -> dict[str, Any]:
    """The account's row, with everything that is secret in it."""
    vault = SqliteVault(home / "agent.db")
    await vault.open()
    try:
        [(_, value)] = await vault.rows(ACCOUNT)
    finally:
        await vault.close()
    return json.loads(value)


def test_nothing_of_an_account_is_ever_shown(tmp_path: Path) -> None:
    """Both sign-in types, calls, a conversation, step-up and sign-out, with every exchange traced on both sides."""
    planted = set[str]()

    def plant(shop: AccountShop) -> None:
        row = asyncio.run(_account(tmp_path / "home"))
        planted.update(one["token"] for one in row["tokens"])
        planted.update((row["refresh_token"], row["dpop_jwk"]["d"]))

    with account_shop(tmp_path, trace=True) as shop:
        with shop.started("sign-in", SHOP, "--scope", "orders:read", "--no-open") as running:
            begun = shop.said(running)
            callback = shop.browser().approve(begun["authorization_url"], stop="http://127.0.0.1").url
            planted.add(re.findall(r"[?&]code=([^&]+)", callback)[0])
            assert shop.browser().open(callback).status == 200
            assert shop.said(running)["scope"] == "orders:read"
        plant(shop)
        shop.run("api", SHOP, "listOrders")
        shop.run("ask", SHOP, "Where is my order?")
        shop.run("api", SHOP, "order", "--param", "sku=a", "--body", '{"count": 1}', status=3)
        with shop.started("sign-in", SHOP, "--scope", "orders:write", "--device") as running:
            shown = shop.said(running)
            browser = shop.browser()
            consent = browser.send(browser.open(shown["verification_uri"]), {"user_code": shown["user_code"]})
            browser.send(consent, {"decision": "approve"})
            assert shop.said(running)["scope"] == "orders:read orders:write"
        plant(shop)
        shop.run("status")
        shop.run("sign-out", SHOP)
    shown_text = "\n".join(shop.told)
    assert "> POST https://auth.shop.example/token" in shown_text
    assert "> POST https://auth.shop.example/device_authorization" in shown_text
    assert len(planted) >= 6
    assert [one for one in planted if one in shown_text] == []
    assert JWT.findall(shown_text) == []
    for name in ("code_verifier", "device_code", "client_assertion", "refresh_token", "access_token"):
        assert re.findall(rf'{name}["=:]', shown_text) == []

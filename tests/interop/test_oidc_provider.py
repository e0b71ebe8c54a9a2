"""A Company whose issuer is oidc-provider 9 from npm, and our Personal Agent there: what docs/external-issuer.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.account_shop import SHOP, AccountShop
from tests.interop.external_shop import ISSUER, approve, approve_device, external_shop

pytestmark = pytest.mark.needs("node", "npm")


@pytest.fixture(name="shop", scope="module", params=["jwt", "opaque"])
def make_shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountShop]:
    """Both ways to judge a token: by the issuer's keys, or by its word."""
    with external_shop(tmp_path_factory.mktemp("external"), opaque=request.param == "opaque") as shop:
        yield shop


def sign_in(shop: AccountShop, user: str, scopes: str) -> dict[str, object]:
    """Direct Sign-In to the account of the same name."""
    with shop.started("sign-in", SHOP, "--scope", scopes, "--no-open", "--user", user) as running:
        page = approve(shop.browser(), shop.said(running)["authorization_url"], user)
        assert page.url.startswith("http://127.0.0.1:"), (page.url, page.document)
        end = shop.said(running)
        assert running.process.wait(30) == 0, end
    return end


def test_direct_sign_in_calls_and_talks(shop: AccountShop) -> None:
    """With DPoP and nonces; the API takes the default token, the conversation one for its own `resource`."""
    assert sign_in(shop, "dana", "orders:read")["scope"] == "orders:read"
    called = shop.lines("api", SHOP, "listOrders", "--user", "dana")
    assert called == [{"status": 200, "body": {"account": "dana"}}]
    said = shop.lines("ask", SHOP, "Where is my order?", "--user", "dana")
    assert "The order of dana is on its way." in json.dumps(said)


def test_device_sign_in_refreshes_widens_and_signs_out(shop: AccountShop) -> None:
    """The code typed at its pages; wider scopes by a second sign-in; after sign-out nothing of it is good there."""
    with shop.started("sign-in", SHOP, "--scope", "orders:read", "--device", "--user", "erin") as running:
        shown = shop.said(running)
        assert shown["verification_uri"] == f"{ISSUER}/device"
        page = approve_device(shop.browser(), shown["verification_uri"], shown["user_code"], "erin")
        assert "Sign-in Success" in page.document
        end = shop.said(running)
        assert running.process.wait(30) == 0, end
    assert end["scope"] == "orders:read"
    assert shop.lines("api", SHOP, "listOrders", "--user", "erin")[0]["body"] == {"account": "erin"}
    # Another service's token, and it costs a refresh: the endpoint's own (`resource`).
    assert "The order of erin" in json.dumps(shop.lines("ask", SHOP, "And mine?", "--user", "erin"))
    needed = shop.lines("api", SHOP, "order", "--param", "sku=1", "--user", "erin", status=3)[-1]
    assert needed["next"].startswith(f"papaver sign-in {SHOP} --scope 'orders:read orders:write'")
    assert sign_in(shop, "erin", "orders:read orders:write")["scope"] == "orders:read orders:write"
    ordered = shop.lines("api", SHOP, "order", "--param", "sku=1", "--user", "erin")
    assert ordered == [{"status": 200, "body": {"ordered": "1"}}]
    shop.run("sign-out", SHOP, "--user", "erin")
    states = [line["state"] for line in shop.lines("status", SHOP) if line.get("user") == "erin" and "state" in line]
    assert states == ["signed_out"]
    assert shop.lines("api", SHOP, "listOrders", "--user", "erin", status=3)[-1]["error"] == "sign_in_needed"

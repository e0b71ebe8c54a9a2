"""A Company whose issuer is oidc-provider 9 from npm, and our Personal Agent there, by docs/external-issuer.md."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from papaver.adapters.httpx2.poster import GuardedPoster
from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
from papaver.adapters.keyfile import KeyFile
from papaver.oauth.assertions import make_assertion
from papaver.oauth.tokens import revocation_request
from papaver.protocol.terms import ClientId
from papaver.values.secret import Secret
from tests.house.account_shop import ME, SHOP, AccountShop
from tests.interop.external_shop import ISSUER, approve, approve_device, external_shop, noted
from tests.interop.processes import papaver

pytestmark = pytest.mark.needs("node", "npm")


@pytest.fixture(name="shop", scope="module", params=["jwt", "opaque"])
def make_shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountShop]:
    """Both ways to judge a token: by the issuer's keys, or by its word."""
    with external_shop(tmp_path_factory.mktemp(request.param), opaque=request.param == "opaque") as shop:
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
    issued = [one for one in noted(shop, "access_token") if one["account"] == "dana"]
    assert [(one["aud"], one["scope"]) for one in issued] == [
        (f"https://{SHOP}", "orders:read"),
        (f"https://{SHOP}/poppy/conversations", "orders:read"),
    ]
    assert len({one["jkt"] for one in issued} | {None}) == 2
    assert {one["format"] for one in issued} == {shop.folder.name.rstrip("0123456789")}


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
    revoked = len(noted(shop, "grant_revoked"))
    shop.run("sign-out", SHOP, "--user", "erin")
    assert len(noted(shop, "grant_revoked")) > revoked
    states = [line["state"] for line in shop.lines("status", SHOP) if line.get("user") == "erin" and "state" in line]
    assert states == ["signed_out"]
    assert shop.lines("api", SHOP, "listOrders", "--user", "erin", status=3)[-1]["error"] == "sign_in_needed"


def test_a_conversation_begun_signed_out_is_the_accounts_from_then_on(shop: AccountShop) -> None:
    """After the sign-in its turn goes on, and another account of the same User has no part in it (5.4)."""
    *begun, needed = shop.lines("ask", SHOP, "Where is my order?", "--user", "finn", status=3)
    assert needed["error"] == "sign_in_needed"
    (conversation,) = {one["conversation_id"] for one in begun if "conversation_id" in one}
    sign_in(shop, "finn", "orders:read")
    same = ["ask", SHOP, "And now?", "--conversation", conversation, "--user", "finn"]
    assert "The order of finn is on its way." in json.dumps(shop.lines(*same))
    shop.run("sign-out", SHOP, "--user", "finn")
    with shop.started("sign-in", SHOP, "--scope", "orders:read", "--no-open", "--user", "finn") as running:
        approve(shop.browser(), shop.said(running)["authorization_url"], "gwen")
        shop.said(running)
        assert running.process.wait(30) == 0
    refused = shop.lines(*same, status=1)[-1]
    assert refused["error"] == "conversation_not_found"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("audience", "answered"), [(ISSUER, 200), (f"{ISSUER}/token", 401), (f"{ISSUER}/token/revocation", 401)]
)
async def test_it_takes_assertions_for_the_issuer_alone(shop: AccountShop, audience: str, answered: int) -> None:
    """By what the page says; its default takes endpoints, too (4.1)."""
    key = KeyFile(shop.folder / "home" / "keys.json").current
    jti = f"{answered}-{len(audience)}-of-a-test"
    assertion = make_assertion(key, client_id=ClientId(ME), issuer=audience, now=time.time(), jti=jti)
    asked = revocation_request(
        f"{ISSUER}/token/revocation", client_id=ClientId(ME), assertion=assertion, token=Secret("nonsense")
    )
    there = ResolveMap.read([f"auth.shop.example:443=127.0.0.1:{shop.port}"])
    poster = GuardedPoster(NetworkSettings(there, shop.ca_file))
    answer = await poster.post(asked, 30, 10_000)
    await poster.aclose()
    assert (answer.status, b"invalid_client" in answer.body) == (answered, answered == 401)


def test_its_metadata_lacks_nothing(shop: AccountShop) -> None:
    """`company check` reads it as a Personal Agent does, at its RFC 8414 URL."""
    env = {"COMPANY_SECRET": "not asked", "COMPANY_ASKS": ""}
    network = [one for one in shop.options if not one.startswith("--home") and one != str(shop.folder / "home")]
    done = papaver("company", "check", "shop:company", "--json", *network, cwd=shop.folder, env=env)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one for one in said if "error" in one] == []

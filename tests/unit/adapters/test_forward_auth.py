"""Forward authentication: a trusted proxy's question about another request (B22)."""

from __future__ import annotations

import pytest

from papaver.adapters.forward_auth import ForwardAuth
from papaver.protocol.errors import ConfigurationError
from papaver.testing.issuers import HeldIssuer
from papaver.testing.keys import NOW
from tests.unit.adapters.asgi_calls import AGENT, call, served, shop, signed

pytestmark = pytest.mark.anyio

ORDERS = "https://api.example.com/orders"


async def test_b22_the_original_requests_method_and_url_are_verified() -> None:
    """The sub-request is a GET of something else; who it was for is told in fields."""
    company = shop()
    async with served(company):
        app = ForwardAuth(company, trusted_proxies=["192.0.2.0/24", "::1"])
        fields = signed(
            company, "POST", ORDERS, x_forwarded_method="POST", x_forwarded_uri="/orders?page=2", host="auth:9000"
        )
        answer = await call(app, "GET", "/check", headers=fields)
        assert answer.status == 204
        assert answer.fields == {
            "poppy-client-id": "https://agent.example/agent.json",
            "poppy-user-id": "usr_dana",
            "poppy-sid": "sid_Yx2b7Qd",
            "cache-control": "no-store",
        }
        again = signed(company, "POST", ORDERS, x_forwarded_method="DELETE", x_forwarded_uri="/orders")
        refused = await call(app, "GET", "/check", headers=again)
        assert (refused.status, refused.json["error"]) == (400, "invalid_session")


@pytest.mark.parametrize("peer", ["198.51.100.7", "not an address", None])
async def test_b22_a_stranger_is_not_believed(peer: str | None) -> None:
    """Whoever reaches the app directly could name any request it once saw signed."""
    company = shop()
    async with served(company):
        app = ForwardAuth(company, trusted_proxies=["192.0.2.7"])
        fields = signed(company, "POST", ORDERS, x_forwarded_method="POST", x_forwarded_uri="/orders")
        answer = await call(app, "GET", "/check", headers=fields, peer=peer)
        assert (answer.status, answer.json["error"]) == (400, "invalid_session")


@pytest.mark.parametrize(
    "named",
    [
        [("x-forwarded-method", "GET")],
        [("x-forwarded-uri", "/orders")],
        [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/orders"), ("x-forwarded-uri", "/other")],
        [("x-forwarded-method", "GET"), ("x-forwarded-uri", "https://evil.example/orders")],
        [("x-forwarded-method", "GET"), ("x-forwarded-uri", "")],
    ],
)
async def test_b22_the_proxy_names_the_original_request_once(named: list[tuple[str, str]]) -> None:
    """A field that a caller slipped in beside the proxy's is refused, and so is another host."""
    company = shop()
    async with served(company):
        app = ForwardAuth(company, trusted_proxies=["192.0.2.7"])
        answer = await call(app, "GET", "/check", headers=[*signed(company, "GET", ORDERS).items(), *named])
        assert (answer.status, answer.json["error"]) == (400, "invalid_session")


async def test_a_credential_in_the_original_url_is_refused() -> None:
    """As at every door (5.6)."""
    company = shop()
    async with served(company):
        app = ForwardAuth(company, trusted_proxies=["192.0.2.7"])
        target = "/orders?access_token=abc"
        fields = signed(company, "GET", ORDERS, x_forwarded_method="GET", x_forwarded_uri=target)
        assert (await call(app, "HEAD", "/check", headers=fields)).status == 400
        assert (await call(app, type="lifespan")).messages == []


def test_networks_are_checked_when_it_is_built() -> None:
    """A typing error must not trust nobody, or everybody, in silence."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "forward-auth.networks"):
        ForwardAuth(shop(), trusted_proxies=["10.0.0.0/33"])


async def test_a_signed_in_request_is_told_with_its_account() -> None:
    """With the account and scopes of its token; `scopes` let nobody through without."""
    issuer = HeldIssuer()
    company = shop(sign_in=issuer)
    async with served(company):
        token = issuer.issue("t", "dana & co", "orders:write", "orders:read")
        header = AGENT.header("GET", ORDERS, company.id, now=NOW, access_token=token)
        fields = {
            **signed(company, "GET", ORDERS, x_forwarded_method="GET", x_forwarded_uri="/orders"),
            "poppy-session": header,
            "authorization": f"Bearer {token}",
        }
        trusted = ["192.0.2.7"]
        answer = await call(ForwardAuth(company, trusted_proxies=trusted), headers=fields)
        assert answer.status == 204
        assert answer.fields["poppy-account-id"] == "dana%20%26%20co"
        assert answer.fields["poppy-scopes"] == "orders:read orders:write"
        guarded = ForwardAuth(company, trusted_proxies=trusted, scopes=["orders:read"])
        assert (await call(guarded, headers=fields)).status == 204
        out = signed(company, "GET", ORDERS, x_forwarded_method="GET", x_forwarded_uri="/orders")
        refused = await call(guarded, headers=out)
        assert (refused.status, refused.body) == (401, b"")
        assert refused.fields["www-authenticate"].startswith('Bearer scope="orders:read"')


@pytest.mark.requirement("papaver-73")
def test_scopes_need_an_issuer() -> None:
    """Nobody could be let through."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.signed-in"):
        ForwardAuth(shop(), trusted_proxies=[], scopes=["orders:read"])

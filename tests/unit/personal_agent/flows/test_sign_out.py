"""Sign-out: every refresh token is revoked, no token goes out any more, and the Session goes on (4.6, 5.5)."""

from __future__ import annotations

import pytest

from papaver.personal_agent.flows.access import drop_token, token_for
from papaver.personal_agent.flows.sign_out import sign_out
from tests.house.agent_issuer import AccountWorld, publish
from tests.house.agent_world import DOMAIN, answer, error, unreachable


@pytest.mark.requirement("4.6-01", "5.5-08", "5.5-10")
def test_a_sign_out_revokes_what_is_held_and_goes_on_signed_out() -> None:
    """One revocation per stored token, none for another account; the same `sid`, without a token."""
    world = AccountWorld()
    live, other = world.live(), world.live(account="business")
    world.signed_in(live, "a")
    world.signed_in(other, "a")
    held = world.account()["refresh_token"]
    world.read(live)
    assert world.run(sign_out(live))
    [form] = world.auth.named("revoke")
    assert (form.one("token"), form.one("token_type_hint")) == (held, "refresh_token")
    assert form.one("client_assertion") is not None
    world.read(live)
    assert [one is None for one in world.shop.carried] == [False, True]
    assert len({proven.sid for proven in world.shop.proven}) == 1
    assert world.account("business")["state"] == "signed_in"
    row = world.account()
    assert (row["state"], row.get("refresh_token"), row.get("tokens"), row.get("dpop_jwk")) == (
        "signed_out",
        None,
        None,
        None,
    )


@pytest.mark.requirement("papaver-87")
@pytest.mark.parametrize("failure", [unreachable(), answer(503), answer(429), error("invalid_client", 401)])
def test_a_sign_out_that_the_company_did_not_hear_holds_here(failure: object) -> None:
    """No token is sent, and the next `sign_out` tells the Company."""
    world = AccountWorld(token_attempts=1)
    live = world.live()
    world.signed_in(live, "a")
    world.auth.script = [failure]
    assert not world.run(sign_out(live))
    world.read(live)
    assert world.shop.carried == [None]
    assert len(world.account()["unrevoked"]) == 1
    assert world.run(sign_out(live))
    assert world.auth.refresh == {}
    assert "unrevoked" not in world.account()


def test_a_sign_out_revokes_at_no_endpoint_that_cannot_be_verified() -> None:
    """B39: the refresh token stays here, and no request carries a token."""
    world = AccountWorld()
    world.signed_in(world.live(), "a")
    world.auth.extra = {"revocation_endpoint": "https://evil.example/revoke"}
    publish(world.shop)
    world.clock.advance(4000)
    live = world.live()
    world.auth.extra["protected_resources"] = ["https://other.example"]
    publish(world.shop)
    assert not world.run(sign_out(live))
    assert world.auth.named("revoke") == []
    assert world.account()["state"] == "signed_out"


def test_a_sign_out_of_nothing_is_done_at_once() -> None:
    """No account, an account that ended, a Company without an issuer, an anonymous Session."""
    world = AccountWorld()
    live = world.live()
    assert world.run(sign_out(live))
    assert world.run(sign_out(world.live(anonymous=True)))
    world.signed_in(live, "a")
    world.auth.refresh.clear()
    opened = world.run(live.opened())
    access = world.run(token_for(live, opened, None))
    assert access is not None
    world.run(drop_token(live, opened, access.token))
    assert world.run(token_for(live, opened, None)) is None
    assert world.run(sign_out(live))
    assert world.account()["state"] == "signed_out"
    bare = AccountWorld()
    bare.shop.documents[f"https://{DOMAIN}/.well-known/oauth-protected-resource"] = 404
    bare.shop.identifier = f"https://{DOMAIN}"
    assert bare.run(sign_out(bare.live()))
    assert (world.auth.named("revoke"), bare.auth.asked) == ([], [])

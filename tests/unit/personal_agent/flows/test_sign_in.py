"""Sign-in as flows: what is asked for and where, what comes back, what is kept, and what stays as it was."""

from __future__ import annotations

import pickle
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from papaver.oauth.errors import (
    AccessDenied,
    ExpiredToken,
    InvalidGrant,
    InvalidOAuthResponse,
    InvalidScope,
    UnauthorizedClient,
)
from papaver.oauth.pkce import challenge_of
from papaver.personal_agent.flows.sign_in import BegunDevice, begin, poll
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.sign_in_checks import SignInUnavailable, SignInUnknown
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import ConfigurationError, Misbehaved
from papaver.testing.rules import switched_off
from tests.house.agent_issuer import (
    AUTH,
    CALLBACK,
    DEVICE,
    ISSUER,
    AccountWorld,
    ScriptedIssuer,
    account_company,
    complete,
    publish,
)
from tests.house.agent_world import CLIENT_ID, DOMAIN, answer, document, error, refused, unreachable


def query_of(url: str) -> dict[str, str]:
    """The parameters of an authorization URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}


def device(world: AccountWorld, live: LiveSession, *scopes: str) -> BegunDevice:
    """A Device Sign-In that has begun."""
    begun = world.run(begin(live, scopes or ("orders:read",), None, True))
    assert isinstance(begun, BegunDevice)
    return begun


def polled(world: AccountWorld, live: LiveSession, begun: BegunDevice) -> Any:
    """What the polling came to."""
    return world.run(poll(live.setup, begun, live.nonces))


@pytest.mark.requirement("4.2-02", "4.2-09", "4.7-16")
def test_a_direct_sign_in_asks_with_everything_and_redeems_the_code_once() -> None:
    """The User's browser gets the URL; the code is exchanged by us, with the assertion and the verifier."""
    world = AccountWorld()
    live = world.live()
    begun = world.begun(live, "orders:read", "orders:write")
    asked = query_of(begun.url)
    assert begun.url.startswith(f"{ISSUER}/authorize?")
    assert (asked["response_type"], asked["client_id"], asked["redirect_uri"]) == ("code", CLIENT_ID, CALLBACK)
    assert (asked["scope"], asked["code_challenge_method"]) == ("orders:read orders:write", "S256")
    signed_in = world.run(complete(live.setup, world.auth.approve(begun.url)))
    assert (signed_in.company_name, signed_in.domain, signed_in.scopes) == (
        "Shop",
        DOMAIN,
        ("orders:read", "orders:write"),
    )
    [form] = world.auth.named("token")
    assert (form.one("grant_type"), form.one("redirect_uri")) == ("authorization_code", CALLBACK)
    assert challenge_of(form.one("code_verifier") or "") == asked["code_challenge"]


@pytest.mark.requirement("4-01", "4.1-06", "4.1-07")
def test_every_oauth_request_is_authenticated_for_the_issuer() -> None:
    """The scripted issuer verifies each assertion, whose `aud` is its identifier as one string."""
    world = AccountWorld(account_company(ScriptedIssuer(issuer=f"{ISSUER}/shop/")))
    live = world.live()
    world.signed_in(live, "orders:read")
    world.auth.device = ("orders:read",)
    polled(world, live, device(world, live))
    assert [name for name, _ in world.auth.asked] == ["token", "device", "token", "revoke"]
    assert len(set(world.auth.jtis)) == 4


@pytest.mark.requirement("4.2-08")
@pytest.mark.parametrize("iss", ["https://evil.example", f"{ISSUER}/", "https://AUTH.shop.example"])
def test_b40_a_callback_of_another_issuer_ends_the_sign_in(iss: str) -> None:
    """RFC 9207 by the byte: nothing is sent to the token endpoint, and the sign-in is used up."""
    world = AccountWorld()
    live = world.live()
    callback = world.auth.approve(world.begun(live, "orders:read").url, iss=iss)
    with pytest.raises(InvalidOAuthResponse) as caught:
        world.run(complete(live.setup, callback))
    assert caught.value.rule == "oauth.response-iss"
    assert world.auth.asked == []
    with pytest.raises(SignInUnknown):
        world.run(complete(live.setup, callback))


def test_b40_a_denial_without_iss_is_no_denial() -> None:
    """On errors, too."""
    world = AccountWorld()
    live = world.live()
    callback = world.auth.decline(world.begun(live, "orders:read").url)
    with pytest.raises(InvalidOAuthResponse) as caught:
        world.run(complete(live.setup, callback.partition("&iss=")[0]))
    assert caught.value.rule == "oauth.response-iss"


@pytest.mark.requirement("papaver-85")
def test_a_callback_is_taken_once_and_not_for_ever() -> None:
    """The pending sign-in is a row of the vault: another process may finish it, nobody twice, nobody late."""
    world = AccountWorld()
    live = world.live()
    callback = world.auth.approve(world.begun(live, "orders:read").url)
    late = world.auth.approve(world.begun(live, "orders:read").url)
    world.run(complete(world.setup(), f" {callback}\n"))
    with pytest.raises(SignInUnknown) as again:
        world.run(complete(world.setup(), callback))
    assert again.value.rule == "sign-in.known"
    world.clock.advance(live.setup.limits.sign_in_kept + 1)
    with pytest.raises(SignInUnknown) as old:
        world.run(complete(world.setup(), late))
    assert old.value.rule == "sign-in.fresh"
    assert world.of_kind("sign-in") == []
    assert len(world.auth.named("token")) == 1


@pytest.mark.requirement("papaver-86")
def test_who_comes_back_is_who_began() -> None:
    """Else an attacker's sign-in could be finished in the User's browser. It is not used up by the wrong one."""
    world = AccountWorld()
    live = world.live()
    begun = world.begun(live, "orders:read")
    callback = world.auth.approve(begun.url)
    with pytest.raises(SignInUnknown) as caught:
        world.run(complete(live.setup, callback, user="eve"))
    assert caught.value.rule == "sign-in.same-user"
    with pytest.raises(SignInUnknown):
        world.run(complete(live.setup, callback, state="another"))
    assert world.run(complete(live.setup, callback, user="dana")).user == "dana"


@pytest.mark.parametrize("url", ["", "nonsense", "https://agent.example/oauth/callback", f"{CALLBACK}?state=a&state=b"])
def test_what_is_no_callback_is_told_so(url: str) -> None:
    """A pasted text that is another one."""
    world = AccountWorld()
    with pytest.raises(SignInUnknown):
        world.run(complete(world.setup(), url))


def test_a_sign_in_that_was_taken_meanwhile_is_gone() -> None:
    """Two processes get the same callback: one of them has it."""
    world = AccountWorld()
    live = world.live()
    callback = world.auth.approve(world.begun(live, "orders:read").url)
    flow = complete(live.setup, callback)
    effect = next(flow)
    row = world.perform(effect)
    world.rows = {key: value for key, value in world.rows.items() if key[0] != "sign-in"}
    with pytest.raises(SignInUnknown):
        flow.send(world.perform(flow.send(row)))


@pytest.mark.requirement("3.2-17")
def test_a_company_that_turned_sign_in_off_is_asked_nothing() -> None:
    """`auth.disabled`: no URL is made, and no request sent."""
    company = account_company()
    company.documents[f"https://{DOMAIN}/.well-known/poppy.json"] = document(auth={"disabled": True})
    world = AccountWorld(company)
    for chosen in (None, True, False):
        with pytest.raises(SignInUnavailable) as caught:
            world.run(begin(world.live(), ["orders:read"], None, chosen))
        assert caught.value.rule == "sign-in.enabled"
    assert world.auth.asked == []
    assert world.of_kind("sign-in") == []


@pytest.mark.requirement("5.1-07", "5.4-03")
def test_nobody_signs_in_in_an_anonymous_session() -> None:
    """The User ID of it has no account, and gets none."""
    world = AccountWorld()
    with pytest.raises(ConfigurationError) as caught:
        world.run(begin(world.live(anonymous=True), ["orders:read"], None, None))
    assert caught.value.rule == "account.not-anonymous"


@pytest.mark.requirement("papaver-91")
def test_an_issuer_without_the_endpoint_of_a_grant_is_not_used() -> None:
    """Its metadata lists the grant and leaves out where it is."""
    world = AccountWorld()
    world.auth.extra = {"device_authorization_endpoint": None}
    metadata = {name: value for name, value in world.auth.metadata().items() if value is not None}
    world.shop.documents[f"https://{AUTH}/.well-known/oauth-authorization-server"] = metadata
    with pytest.raises(Misbehaved) as caught:
        device(world, world.live())
    assert caught.value.rule == "issuer.endpoint-offered"


@pytest.mark.requirement("papaver-91")
def test_a_sign_in_names_its_scopes_and_needs_an_issuer() -> None:
    """4.7: there is no "all scopes"."""
    world = AccountWorld()
    with pytest.raises(InvalidScope):
        world.run(begin(world.live(), [], None, None))
    bare = AccountWorld()
    bare.shop.documents[f"https://{DOMAIN}/.well-known/oauth-protected-resource"] = 404
    bare.shop.identifier = f"https://{DOMAIN}"
    with pytest.raises(ConfigurationError) as caught:
        bare.run(begin(bare.live(), ["a"], None, None))
    assert caught.value.rule == "account.issuer-known"


@pytest.mark.requirement("4.7-01", "4.7-20")
def test_scopes_are_the_callers_and_no_others() -> None:
    """One that `scopes_supported` leaves out may be asked for, and nothing is added."""
    world = AccountWorld()
    assert query_of(world.begun(world.live(), "returns:write").url)["scope"] == "returns:write"


@pytest.mark.requirement("4.7-21", "4.7-22", "4.7-23")
def test_a_step_up_asks_for_the_union_and_revokes_what_it_replaces() -> None:
    """The new refresh token takes the old one's place, and only that one is revoked."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    before, chain = world.account()["refresh_token"], world.account()["chain"]
    assert query_of(world.begun(live, "b").url)["scope"] == "a b"
    world.signed_in(live, "b")
    row = world.account()
    assert (row["scopes"], row["chain"], row.get("unrevoked")) == (["a", "b"], chain, None)
    assert row["refresh_token"] != before
    [revoked] = world.auth.named("revoke")
    assert (revoked.one("token"), revoked.one("token_type_hint")) == (before, "refresh_token")
    assert list(world.auth.refresh) == [row["refresh_token"]]


@pytest.mark.requirement("papaver-87")
def test_a_revocation_that_fails_undoes_nothing_and_is_made_later() -> None:
    """The sign-in stands; the next one tells the Company of both."""
    world = AccountWorld(token_attempts=1)
    live = world.live()
    world.signed_in(live, "a")
    first = world.account()["refresh_token"]
    callback = world.auth.approve(world.begun(live, "b").url)
    world.auth.script = [None, unreachable()]
    world.run(complete(live.setup, callback))
    assert world.account()["unrevoked"] == [first]
    assert world.account()["scopes"] == ["a", "b"]
    world.signed_in(live, "c")
    assert first not in world.auth.refresh
    assert "unrevoked" not in world.account()


@pytest.mark.requirement("4.7-25")
def test_a_sign_in_that_is_pending_or_fails_leaves_the_tokens() -> None:
    """Declined, refused, unanswered: what is held is held still, and revoked by nobody."""
    world = AccountWorld(token_attempts=1)
    live = world.live()
    world.signed_in(live, "a")
    held = world.account()["refresh_token"], world.account()["tokens"]
    with pytest.raises(AccessDenied):
        world.run(complete(live.setup, world.auth.decline(world.begun(live, "b").url)))
    for scripted, failure in ((error("invalid_grant"), InvalidGrant), (unreachable(), FetchFailed)):
        callback = world.auth.approve(world.begun(live, "b").url)
        world.auth.script = [scripted]
        with pytest.raises(failure):
            world.run(complete(live.setup, callback))
    world.begun(live, "b")
    assert (world.account()["refresh_token"], world.account()["tokens"]) == held
    assert world.auth.named("revoke") == []


@pytest.mark.requirement("4.7-28")
def test_what_was_not_granted_is_told() -> None:
    """The response's scope counts, and what is missing is known before any call."""
    world = AccountWorld()
    signed_in = world.signed_in(world.live(), "a", "b", approve=("a",))
    assert (signed_in.scopes, signed_in.missing) == (("a",), ("b",))
    assert world.account()["declined"] == ["b"]
    again = world.signed_in(world.live(), "b")
    assert (again.scopes, again.missing) == (("a", "b"), ())
    assert "declined" not in world.account()


@pytest.mark.requirement("papaver-91")
def test_a_sign_in_without_a_refresh_token_is_none() -> None:
    """4.4: every sign-in has one."""
    world = AccountWorld()
    live = world.live()
    callback = world.auth.approve(world.begun(live, "a").url)
    world.auth.script = [answer(200, {"access_token": "x", "token_type": "Bearer"})]
    with pytest.raises(Misbehaved) as caught:
        world.run(complete(live.setup, callback))
    assert caught.value.rule == "sign-in.refresh-token"
    assert world.of_kind("account") == []


@pytest.mark.requirement("4.1-18")
def test_a_client_that_is_refused_sign_in_goes_on_signed_out() -> None:
    """`unauthorized_client` from either endpoint: it is told, nothing is tried again, and requests carry no token."""
    world = AccountWorld()
    live = world.live()
    world.auth.script = [error("unauthorized_client")]
    with pytest.raises(UnauthorizedClient):
        device(world, live)
    callback = world.auth.approve(world.begun(live, "a").url)
    world.auth.script = [error("unauthorized_client")]
    with pytest.raises(UnauthorizedClient):
        world.run(complete(live.setup, callback))
    assert len(world.auth.asked) == 2
    assert world.read(live).response.status == 200
    assert world.shop.carried == [None]


def test_an_issuer_that_changed_on_the_way_gets_no_code() -> None:
    """The callback was the old issuer's; the Company has another by now."""
    world = AccountWorld(document_fresh=0)
    live = world.live()
    callback = world.auth.approve(world.begun(live, "a").url)
    other = account_company(ScriptedIssuer(issuer="https://other.example"))
    world.shop.documents = other.documents
    with pytest.raises(Misbehaved) as caught:
        world.run(complete(live.setup, callback))
    assert caught.value.rule == "account.issuer-is-its-own"
    assert world.auth.asked == []


# ── Device Sign-In ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("4.3-02", "4.3-03", "4.3-11")
def test_a_device_sign_in_polls_no_faster_than_it_may() -> None:
    """Five seconds, ten after `slow_down`; each poll has an assertion of its own."""
    world = AccountWorld()
    live = world.live()
    begun = device(world, live, "a", "b")
    [asked] = world.auth.named("device")
    assert asked.one("scope") == "a b"
    world.auth.script = [error("authorization_pending"), error("slow_down"), error("authorization_pending")]
    world.auth.device = ("a", "b")
    assert polled(world, live, begun).scopes == ("a", "b")
    assert world.waits == [5, 5, 10, 10]
    assert {form.one("device_code") for form in world.auth.named("token")} == {"device_secret"}
    assert len(set(world.auth.jtis)) == 5


def test_a_token_endpoint_that_is_away_is_polled_less_often() -> None:
    """RFC 8628 3.5; and `Retry-After` is kept to."""
    world = AccountWorld()
    live = world.live()
    begun = device(world, live)
    world.auth.script = [unreachable(), answer(503), answer(429, None, Retry_After="60")]
    world.auth.device = ("orders:read",)
    polled(world, live, begun)
    assert world.waits == [5, 10, 20, 60]


def test_a_token_endpoint_that_may_not_be_reached_ends_the_polling() -> None:
    """A private address stays one."""
    world = AccountWorld()
    live = world.live()
    begun = device(world, live)
    world.auth.script = [refused()]
    with pytest.raises(FetchFailed):
        polled(world, live, begun)


@pytest.mark.parametrize(("code", "failure"), [("access_denied", AccessDenied), ("expired_token", ExpiredToken)])
def test_polling_stops_at_a_denial_and_at_the_end(code: str, failure: type[Exception]) -> None:
    """As the Company says."""
    world = AccountWorld()
    live = world.live()
    begun = device(world, live)
    world.auth.device = code
    with pytest.raises(failure):
        polled(world, live, begun)
    assert len(world.waits) == 1


def test_polling_stops_when_the_code_has_expired_by_our_own_clock() -> None:
    """A Company that says "pending" for ever is not polled for ever."""
    world = AccountWorld()
    live = world.live()
    begun = device(world, live)
    with pytest.raises(ExpiredToken) as caught:
        polled(world, live, begun)
    assert caught.value.rule == "sign-in.device-in-time"
    assert sum(world.waits) == 595


@pytest.mark.requirement("4.3-08")
@pytest.mark.parametrize("link", ["https://evil.example/", f"https://{AUTH}.evil.example/", f"http://{AUTH}/device"])
def test_b44_a_link_elsewhere_is_shown_to_nobody(link: str) -> None:
    """A Company cannot pass off another one's page as its own."""
    world = AccountWorld()
    world.auth.link = link
    with pytest.raises(InvalidOAuthResponse) as caught:
        device(world, world.live())
    assert caught.value.rule == "device.link-host"
    with switched_off("device.link-host"):
        assert device(world, world.live()).authorization.verification_uri == link


def test_a_link_below_the_issuers_host_is_the_companys() -> None:
    """On label boundaries (readings 58)."""
    world = AccountWorld()
    world.auth.link = f"https://login.{AUTH}/device"
    assert device(world, world.live()).authorization.user_code == "WDJB-MJHT"


@pytest.mark.requirement("4.3-07")
def test_what_a_device_sign_in_keeps_private_shows_nowhere() -> None:
    """The device code is in no repr and no pickle."""
    world = AccountWorld()
    begun = device(world, world.live())
    assert "device_secret" not in repr(begun)
    with pytest.raises(TypeError):
        pickle.dumps(begun)


# ── DPoP ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("4.5-04")
@pytest.mark.parametrize("dpop", [True, False])
def test_token_requests_are_proven_where_the_issuer_binds_tokens(dpop: bool) -> None:
    """`dpop_signing_alg_values_supported` decides; each account has a key of its own."""
    world = AccountWorld(account_company(ScriptedIssuer(dpop=dpop)))
    first, second = world.live(), world.live(account="business")
    begun = world.begun(first, "a")
    assert ("dpop_jkt" in query_of(begun.url)) is dpop
    world.run(complete(first.setup, world.auth.approve(begun.url)))
    world.signed_in(second, "a")
    assert len(set(world.auth.proofs) - {None}) == (2 if dpop else 0)
    if dpop:
        assert query_of(begun.url)["dpop_jkt"] == world.auth.proofs[0]


def test_a_nonce_of_the_token_endpoint_is_sent_once() -> None:
    """RFC 9449 8: the second try has it, with a new assertion; a third is not made."""
    world = AccountWorld(account_company(ScriptedIssuer(dpop=True, nonce=True)))
    world.signed_in(world.live(), "a")
    assert len(world.auth.asked) == 2
    assert len(set(world.auth.jtis)) == 2
    live = world.live()
    callback = world.auth.approve(world.begun(live, "b").url)
    refusal = error("use_dpop_nonce", DPoP_Nonce="another")
    world.auth.nonce = False
    world.auth.script = [refusal, refusal]
    with pytest.raises(Exception, match="use_dpop_nonce"):
        world.run(complete(live.setup, callback))


@pytest.mark.requirement("3.2-43", "4-05", "4.3-05")
def test_direct_is_taken_where_it_is_offered_and_device_when_asked_for() -> None:
    """The four combinations of grants, and what each choice gives."""
    direct, code = "authorization_code", DEVICE
    for grants, chosen, expected in (
        ([direct, code], None, "BegunDirect"),
        ([direct], None, "BegunDirect"),
        ([code], None, "BegunDevice"),
        ([direct, code], True, "BegunDevice"),
        ([direct, code], False, "BegunDirect"),
        ([], None, "sign-in.type-offered"),
        ([direct], True, "sign-in.type-offered"),
        ([code], False, "sign-in.type-offered"),
    ):
        world = AccountWorld()
        world.auth.extra = {"grant_types_supported": ["refresh_token", *grants]}
        publish(world.shop)
        try:
            found = type(world.run(begin(world.live(), ["a"], None, chosen))).__name__
        except SignInUnavailable as refusal:
            found = refusal.rule
        assert found == expected, (grants, chosen)

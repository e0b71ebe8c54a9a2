"""Access tokens: which one a request carries, when it is refreshed, by whom, and how an account ends."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.assertions import read_assertion
from papaver.oauth.errors import InvalidClient
from papaver.personal_agent.flows.access import access_for, can_cover, drop_token, token_for, verified
from papaver.personal_agent.flows.effects import Exclusive, Post
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.records import AccountRow, read_row
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import ConfigurationError, DiscoveryFailed, Misbehaved, RateLimited
from papaver.testing.rules import switched_off
from papaver.web.messages import Request
from tests.house.agent_issuer import ISSUER, AccountWorld, ScriptedIssuer, account_company, complete, publish
from tests.house.agent_world import DOMAIN, ENDPOINT, Crash, answer, error, refused, unreachable

READ = Request("GET", f"{ENDPOINT}/cnv_1/events")
METADATA = "https://auth.shop.example/.well-known/oauth-authorization-server"


def token(world: AccountWorld, live: LiveSession, *needed: str, resource: str | None = None) -> str | None:
    """The default access token that a request would carry."""
    opened = world.run(live.opened())
    access = world.run(token_for(live, opened, resource, needed))
    return None if access is None else access.token.reveal()


def drop(world: AccountWorld, live: LiveSession) -> None:
    """The Company refuses the token in use."""
    opened = world.run(live.opened())
    access = world.run(token_for(live, opened, None))
    assert access is not None
    world.run(drop_token(live, opened, access.token))


@pytest.mark.requirement("4.4-01", "4.4-04")
def test_a_new_refresh_token_takes_the_old_ones_place() -> None:
    """It is stored when the response has one; else the old one stays."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    first = world.account()["refresh_token"]
    drop(world, live)
    token(world, live)
    assert world.account()["refresh_token"] == f"{first}+"
    world.auth.rotate = False
    drop(world, live)
    token(world, live)
    assert world.account()["refresh_token"] == f"{first}+"
    form = world.auth.named("token")[-1]
    assert (form.one("grant_type"), form.one("refresh_token")) == ("refresh_token", f"{first}+")
    assert form.one("scope") is None


def test_a_token_is_refreshed_shortly_before_it_ends() -> None:
    """Not while it is good, and not for ever where the Company does not say."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    first = token(world, live)
    world.clock.advance(3600 - live.setup.limits.token_renewed - 1)
    assert token(world, live) == first
    world.clock.advance(1)
    world.auth.lifetime = None
    second = token(world, live)
    assert second != first
    world.clock.advance(10**7)
    assert token(world, live) == second
    assert [one["token"] for one in world.account()["tokens"]] == [second]


@pytest.mark.requirement("4.4-02")
def test_a_session_may_use_less_than_was_approved() -> None:
    """`only` asks for fewer scopes at refresh, and its tokens are not those of the other Sessions."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a", "b")
    careful = world.live(only=("a", "c"))
    narrow = token(world, careful)
    assert world.auth.named("token")[-1].one("scope") == "a"
    assert narrow is not None
    assert world.auth.tokens[narrow][0] == ("a",)
    assert token(world, careful, "b") == narrow
    whole = token(world, live, "b")
    assert whole not in (None, narrow)
    assert world.auth.refreshes() == 1
    opened = world.run(careful.opened())
    assert world.run(can_cover(careful, opened, ["a"]))
    assert not world.run(can_cover(careful, opened, ["b"]))


@pytest.mark.requirement("5.4-01")
def test_a_held_token_that_covers_is_used_and_a_refresh_brings_the_rest() -> None:
    """A need within what was approved costs one refresh, and one beyond it none."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a", "b")
    narrow = world.live(only=("a",))
    token(world, narrow)
    drop(world, live)
    assert world.auth.refreshes() == 1
    covered = token(world, live, "b")
    assert covered is not None
    assert world.auth.tokens[covered][0] == ("a", "b")
    assert world.auth.refreshes() == 2
    assert token(world, live, "c") in [one["token"] for one in world.account()["tokens"]]
    assert world.auth.refreshes() == 2


def test_b51_a_refresh_that_brings_less_is_not_asked_again() -> None:
    """What the Company took back is not held any more; no loop of refreshes for it."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a", "b")
    for granted in world.auth.refresh.values():
        granted.scopes = ("a",)
    drop(world, live)
    token(world, live, "b")
    assert world.account()["scopes"] == ["a"]
    for _ in range(5):
        token(world, live, "b")
    assert world.auth.refreshes() == 1


def test_b47_twenty_who_need_a_token_at_once_cost_one_refresh() -> None:
    """Each looks at the vault again once it has the lock."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    drop(world, live)
    opened = world.run(live.opened())
    waiting = [token_for(live if number % 2 else world.live(), opened, None) for number in range(20)]
    locks: list[tuple[Any, Exclusive]] = []
    for flow in waiting:
        effect = next(flow)
        while not isinstance(effect, Exclusive):
            effect = flow.send(world.perform(effect))
        locks.append((flow, effect))
    found: set[str] = set()
    for flow, lock in locks:
        result = world.run(lock.flow)
        with pytest.raises(StopIteration) as end:
            flow.send(result)
        found.add(end.value.value.token.reveal())
    assert len(found) == 1
    assert world.auth.refreshes() == 1
    assert len({lock.name for _, lock in locks}) == 1


def test_b47_a_response_that_was_lost_is_asked_for_again_with_the_same_token() -> None:
    """The Company made a successor and nobody heard of it: within its grace it says the same again."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    first = world.account()["refresh_token"]
    drop(world, live)
    world.auth.script = ["lost"]
    assert token(world, live) is not None
    assert [form.one("refresh_token") for form in world.auth.named("token")][1:] == [first, first]
    assert world.account()["refresh_token"] == f"{first}+"
    assert world.account()["state"] == "signed_in"
    assert len(set(world.auth.jtis)) == len(world.auth.jtis)


def test_a_crash_after_the_answer_loses_nothing() -> None:
    """The new refresh token is stored before anything is done with it; a crash before is a lost response."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    first = world.account()["refresh_token"]
    drop(world, live)
    opened = world.run(live.opened())
    flow = token_for(live, opened, None)
    effect = next(flow)
    while not isinstance(effect, Exclusive):
        effect = flow.send(world.perform(effect))
    inner = effect.flow
    step: Any = next(inner)
    while not isinstance(step, Post):
        step = inner.send(world.perform(step))
    kept: Any = inner.send(world.perform(step))
    assert kept.kind == "account"
    assert world.account()["refresh_token"] == first
    world.perform(kept)
    assert world.account()["refresh_token"] == f"{first}+"
    with pytest.raises(Crash):
        world.run(token_for(live, opened, "https://mcp.shop.example/mcp"), before=1)
    assert token(world, world.live(setup=world.setup())) is not None


@pytest.mark.requirement("5.5-13", "7-27")
def test_an_account_that_the_company_ended_is_signed_out(caplog: pytest.LogCaptureFixture) -> None:
    """`invalid_grant`: the User is told, the request goes on without a token, and nobody tries again."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.auth.refresh.clear()
    world.shop.void.update(world.auth.tokens)
    assert world.read(live).response.status == 200
    assert [one is None for one in world.shop.carried] == [False, True]
    assert world.account()["state"] == "ended"
    assert "refresh_token" not in world.account()
    assert "no longer signed in" in caplog.text
    world.read(live)
    assert world.auth.refreshes() == 1


def test_a_client_that_is_refused_keeps_the_token_for_a_sign_out() -> None:
    """`unauthorized_client` at a refresh: signed out, and the refresh token can still be revoked."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    drop(world, live)
    world.auth.script = [error("unauthorized_client")]
    assert token(world, live) is None
    assert (world.account()["state"], "refresh_token" in world.account()) == ("refused", True)
    assert token(world, live) is None
    assert world.auth.refreshes() == 1


@pytest.mark.parametrize(
    ("scripted", "failure"),
    [
        (unreachable(), FetchFailed),
        (answer(500), FetchFailed),
        (answer(503), FetchFailed),
        (refused(), FetchFailed),
        (answer(429, None, Retry_After="9"), RateLimited),
        (answer(429), RateLimited),
        (answer(307, None, Location="https://evil.example"), Misbehaved),
        (error("invalid_client", 401), InvalidClient),
    ],
)
def test_what_may_pass_keeps_everything(scripted: Any, failure: type[Exception]) -> None:
    """The account stays signed in with what it holds."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    drop(world, live)
    before = world.account()
    world.auth.script = [scripted] * 3
    with pytest.raises(failure):
        token(world, live)
    assert world.account() == before
    world.auth.script = []
    assert token(world, live) is not None


@pytest.mark.requirement("3-18")
def test_an_endpoint_that_redirects_gets_nothing_sent_on() -> None:
    """Each of the three: the redirect is a fault, and no other URL hears of it."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    drop(world, live)
    asked = len(world.auth.urls)
    world.auth.script = [answer(307, None, Location="https://evil.example/token")]
    with pytest.raises(Misbehaved) as caught:
        token(world, live)
    assert caught.value.rule == "oauth.endpoint-not-redirected"
    assert world.auth.urls[asked:] == [f"{ISSUER}/token"]
    world.auth.script = [answer(302, {"access_token": "x", "token_type": "Bearer"})]
    with switched_off("oauth.endpoint-not-redirected"), pytest.raises(Exception, match="302"):
        token(world, live)


@pytest.mark.requirement("papaver-89")
def test_b39_a_token_endpoint_that_moved_is_verified_first() -> None:
    """One discovery past every cache, then the refresh goes to the new host; after that, it is the known one."""
    world = AccountWorld()
    world.signed_in(world.live(), "a")
    world.auth.extra = {"token_endpoint": "https://login.shop.example/token"}
    publish(world.shop)
    world.clock.advance(4000)
    live = world.live()
    world.fetched.clear()
    assert token(world, live) is not None
    assert METADATA in [request.url for request in world.fetched]
    assert all(request.headers.first("cache-control") == "no-cache" for request in world.fetched)
    assert world.auth.urls[-1] == "https://login.shop.example/token"
    assert world.account()["token_host"] == "login.shop.example"
    world.fetched.clear()
    drop(world, live)
    token(world, live)
    assert world.fetched == []


@pytest.mark.requirement("papaver-89")
def test_b39_a_token_endpoint_that_cannot_be_verified_gets_no_token() -> None:
    """The issuer does not confirm the domain any more, or is another one."""
    world = AccountWorld()
    world.signed_in(world.live(), "a")
    world.auth.extra = {"token_endpoint": "https://evil.example/token"}
    publish(world.shop)
    world.clock.advance(4000)
    live = world.live()
    asked = len(world.auth.asked)
    world.auth.extra["protected_resources"] = ["https://other.example"]
    publish(world.shop)
    with pytest.raises(DiscoveryFailed):
        token(world, live)
    other = account_company(ScriptedIssuer(issuer="https://other.example"))
    world.shop.documents = other.documents
    with pytest.raises(Misbehaved) as caught:
        token(world, live)
    assert caught.value.rule == "account.issuer-is-its-own"
    assert len(world.auth.asked) == asked
    assert world.account()["state"] == "signed_in"
    row = read_row(AccountRow, world.rows["account", next(key for kind, key in world.rows if kind == "account")])
    with switched_off("account.issuer-is-its-own"):
        issuer, _ = world.run(verified(live.setup, live.found, row))
    assert issuer.server.issuer == "https://other.example"


@pytest.mark.requirement("3.2-47")
def test_the_token_endpoints_algorithms_choose_the_key_of_assertions() -> None:
    """And say nothing about delegations; none that fits is a setting of ours."""
    world = AccountWorld()
    world.auth.extra = {"token_endpoint_auth_signing_alg_values_supported": ["ES256"]}
    publish(world.shop)
    live = world.live()
    world.signed_in(live, "a")
    assert len(world.auth.asked) == 1
    world.auth.extra = {"token_endpoint_auth_signing_alg_values_supported": ["RS256"]}
    publish(world.shop)
    world.clock.advance(4000)
    with pytest.raises(ConfigurationError) as caught:
        token(world, world.live())
    assert caught.value.rule == "assertion.algorithm-accepted"
    assert world.shop.carried == []


@pytest.mark.requirement("4.1-10", "4.1-11")
def test_client_assertions_are_short_lived_and_unique() -> None:
    """As the settings say; each has an id of 128 random bits."""
    world = AccountWorld(assertion_lifetime=30)
    live = world.live()
    world.signed_in(live, "a")
    for _ in range(30):
        drop(world, live)
        token(world, live)
    assert len(set(world.auth.jtis)) == 31
    claims = [read_assertion(form).claims for _, form in world.auth.asked]
    assert {claim.exp - claim.iat for claim in claims} == {30}
    assert {len(claim.jti) for claim in claims} == {22}


@pytest.mark.requirement("5.1-07", "5.4-03")
def test_an_anonymous_session_has_no_token() -> None:
    """Not of an account that is signed in under the same User's name, and not by force."""
    world = AccountWorld()
    world.signed_in(world.live(), "a")
    live = world.live(anonymous=True)
    world.read(live)
    assert world.shop.carried == [None]
    opened = world.run(live.opened())
    assert world.run(access_for(live, opened, READ)) is None
    with pytest.raises(ConfigurationError) as caught:
        world.run(token_for(live, opened, None))
    assert caught.value.rule == "account.not-anonymous"


@pytest.mark.requirement("5.4-05")
def test_one_sign_in_serves_several_sessions() -> None:
    """And a Session goes on with a newer token under the same `sid`."""
    world = AccountWorld()
    first, second = world.live(), world.live()
    world.signed_in(first, "a")
    world.read(first)
    world.read(second)
    drop(world, first)
    world.read(first)
    carried = [one[1] for one in world.shop.carried if one]
    sids = [proven.sid for proven in world.shop.proven]
    assert (carried[0] == carried[1], carried[0] == carried[2]) == (True, False)
    assert (sids[0] == sids[2], sids[0] == sids[1]) == (True, False)


@pytest.mark.requirement("5.4-07")
def test_two_accounts_are_two_sessions_and_two_refresh_tokens() -> None:
    """An account has a local name, a Session has one; a new sign-in, perhaps another account's, gets a new `sid`."""
    world = AccountWorld()
    home, work = world.live(), world.live(account="business")
    world.signed_in(home, "a")
    world.read(work)
    world.signed_in(work, "a")
    world.read(home)
    world.read(work)
    assert [one is None for one in world.shop.carried] == [True, False, False]
    assert world.shop.carried[1] != world.shop.carried[2]
    assert world.account()["refresh_token"] != world.account("business")["refresh_token"]
    world.auth.refresh.clear()
    world.shop.void.update(world.auth.tokens)
    world.read(home)
    world.signed_in(home, "a")
    world.read(home)
    home_sids = [world.shop.proven[index].sid for index in (1, -2, -1)]
    assert (home_sids[0] == home_sids[1], home_sids[1] == home_sids[2]) == (True, False)


def test_a_stepped_up_account_keeps_its_session() -> None:
    """It is the same sign-in going on."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.read(live)
    world.signed_in(live, "b")
    world.read(live)
    assert len({proven.sid for proven in world.shop.proven}) == 1


def test_a_dpop_key_is_made_when_the_issuer_begins_to_bind_tokens() -> None:
    """At the next refresh; and none is used where it no longer does."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.auth.dpop = True
    publish(world.shop)
    world.clock.advance(4000)
    live = world.live()
    token(world, live)
    assert world.auth.proofs[-1] is not None
    world.read(live)
    assert world.shop.carried[-1] is not None
    assert world.shop.carried[-1][0] == "DPoP"
    world.auth.dpop = False
    publish(world.shop)
    world.clock.advance(4000)
    world.read(world.live())
    assert world.shop.carried[-1][0] == "Bearer"


def test_who_asks_for_an_account_that_is_none_gets_none() -> None:
    """No row, and a row that goes away while somebody waits for the lock."""
    world = AccountWorld()
    live = world.live()
    assert token(world, live) is None
    opened = world.run(live.opened())
    world.signed_in(live, "a")
    access = world.run(token_for(live, opened, None))
    assert access is not None
    drop(world, live)
    flow = token_for(live, opened, None)
    effect = next(flow)
    while not isinstance(effect, Exclusive):
        effect = flow.send(world.perform(effect))
    world.rows = {key: value for key, value in world.rows.items() if key[0] != "account"}
    assert world.run(effect.flow) is None
    world.run(drop_token(live, opened, access.token))
    assert world.of_kind("account") == []


def test_a_company_without_an_issuer_has_no_account() -> None:
    """Nothing is looked for."""
    world = AccountWorld()
    world.shop.documents[f"https://{DOMAIN}/.well-known/oauth-protected-resource"] = 404
    world.shop.identifier = f"https://{DOMAIN}"
    live = world.live()
    assert world.run(access_for(live, world.run(live.opened()), READ)) is None


def test_a_callback_of_a_signed_out_account_begins_another_chain() -> None:
    """So that the Session that was used before is left."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    chain = world.account()["chain"]
    world.auth.refresh.clear()
    drop(world, live)
    assert token(world, live) is None
    world.run(complete(live.setup, world.auth.approve(world.begun(live, "a").url)))
    assert world.account()["chain"] != chain

"""Section 7's challenges at a Personal Agent: refreshed once, covered where the account covers, else the User's."""

from __future__ import annotations

import pytest

from papaver.personal_agent.flows.request import signed
from papaver.personal_agent.flows.sign_out import sign_out
from papaver.protocol.errors import ConfigurationError
from papaver.web.messages import Headers, Request
from tests.house.agent_issuer import AccountWorld, ScriptedIssuer, account_company, complete, publish
from tests.house.agent_world import DOMAIN, ENDPOINT, answer, document

METADATA = "https://api.shop.example/.well-known/oauth-protected-resource/poppy/conversations"


@pytest.mark.requirement("5-05", "4.5-01", "5.2-18")
def test_a_signed_in_request_carries_session_and_token() -> None:
    """The scripted Company compares `ath` with the token of each request, and its absence without one."""
    world = AccountWorld()
    live = world.live()
    world.read(live)
    world.signed_in(live, "a")
    world.read(live)
    assert world.shop.carried == [None, ("Bearer", next(iter(world.auth.tokens)))]
    assert [proven.ath is None for proven in world.shop.proven] == [True, False]


@pytest.mark.requirement("4-02")
def test_signed_out_requests_need_nothing_from_the_issuer() -> None:
    """Its endpoints hear nothing."""
    world = AccountWorld()
    world.auth.script = [answer(500)] * 9
    assert world.read(world.live()).response.status == 200
    assert world.auth.asked == []


@pytest.mark.requirement("4.5-03", "5.2-21")
def test_a_bound_token_comes_with_proof_and_session_header() -> None:
    """The proof's key is the account's own, not the delegated one; the Company verifies both."""
    world = AccountWorld(account_company(ScriptedIssuer(dpop=True)))
    live = world.live()
    world.signed_in(live, "a")
    assert world.read(live).response.status == 200
    [carried] = world.shop.carried
    assert carried is not None
    assert carried[0] == "DPoP"
    bound = world.auth.tokens[carried[1]][2]
    [request] = world.shop.requests
    assert {"poppy-session", "dpop", "authorization"} <= {name for name, _ in request.headers}
    assert bound not in {row["kid"] for row in world.of_kind("delegated-key")}


def test_a_nonce_that_a_service_asks_for_is_sent_and_kept() -> None:
    """RFC 9449 9: once per request at most, and not again for the next."""
    world = AccountWorld(account_company(ScriptedIssuer(dpop=True), nonce=True))
    live = world.live()
    world.signed_in(live, "a")
    assert world.read(live).response.status == 200
    assert world.read(live).response.status == 200
    assert len(world.shop.requests) == 3


def test_a_nonce_is_no_answer_to_a_bearer_token() -> None:
    """Nothing to prove, nothing to repeat."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.shop.script = [answer(401, None, WWW_Authenticate='DPoP error="use_dpop_nonce"', DPoP_Nonce="x")]
    assert world.read(live).response.status == 401
    assert len(world.shop.requests) == 1


@pytest.mark.requirement("7-27")
def test_a_refused_token_is_refreshed_once() -> None:
    """The next try has a new one; a Company that refuses that as well is not asked for ever."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.shop.void.update(world.auth.tokens)
    assert world.read(live).response.status == 200
    assert (world.auth.refreshes(), len(world.shop.requests)) == (1, 2)
    world.shop.script = [world.shop.challenge(401, "invalid_token")] * 5
    assert world.read(live).response.status == 401
    assert (world.auth.refreshes(), len(world.shop.requests)) == (2, 4)


@pytest.mark.parametrize("code", [None, "invalid_token"])
def test_b54_a_challenge_to_a_request_without_a_token_refreshes_nothing(code: str | None) -> None:
    """Whatever code it has."""
    world = AccountWorld()
    world.shop.script = [world.shop.challenge(401, code, scope="a")] * 3
    exchange = world.read(world.live())
    assert exchange.response.status == 401
    assert (exchange.needs is None) is (code is not None)
    assert len(world.shop.requests) == 1
    assert world.auth.asked == []


@pytest.mark.requirement("7-25", "7-29")
def test_a_need_that_the_account_covers_is_met_by_a_refresh() -> None:
    """401 without a code and 403 are one: a token that covers is fetched, and the request sent again, once."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a", "b")
    world.auth.script = []
    opened = world.run(live.opened())
    held = world.account()["tokens"][0]["token"]
    world.auth.tokens[held] = (("a",), None, None)
    world.shop.needs = "b"
    for key, value in list(world.rows.items()):
        if key[0] == "account":
            world.rows[key] = value.replace(b'"scopes":["a","b"],"expires_at"', b'"scopes":["a"],"expires_at"')
    exchange = world.read(live)
    assert (exchange.response.status, exchange.needs) == (200, None)
    assert world.auth.refreshes() == 1
    assert opened is exchange.opened


@pytest.mark.requirement("4.7-21", "7-29")
def test_a_need_beyond_the_account_is_the_users_to_meet() -> None:
    """With everything that is held beside what is missing."""
    world = AccountWorld()
    live = world.live()
    world.shop.needs = "b c"
    needs = world.read(live).needs
    assert needs is not None
    assert (needs.scope, needs.only_if_asked) == ("b c", False)
    world.signed_in(live, "a", "b")
    needs = world.read(live).needs
    assert needs is not None
    assert (needs.scope, needs.only_if_asked) == ("a b c", False)
    assert world.auth.refreshes() == 0


def test_a_challenge_that_names_what_the_token_has_asks_nobody() -> None:
    """Neither a refresh nor the User could change it."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.shop.script = [world.shop.challenge(403, "insufficient_scope", scope="a")] * 2
    exchange = world.read(live)
    assert (exchange.response.status, exchange.needs) == (403, None)
    assert len(world.shop.requests) == 1


@pytest.mark.parametrize("scope", ["", 'a"b', "a  b", "é"])
def test_a_challenge_whose_scope_is_none_asks_for_an_account(scope: str) -> None:
    """What it names cannot be asked for."""
    world = AccountWorld()
    world.shop.script = [answer(401, None, WWW_Authenticate=f"Bearer scope='{scope}'")]
    needs = world.read(world.live()).needs
    assert needs is not None


@pytest.mark.requirement("5.5-16", "papaver-90")
def test_after_a_sign_out_nobody_is_asked_unless_they_ask() -> None:
    """The challenge comes back to the caller, marked."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.run(sign_out(live))
    world.shop.needs = "a"
    needs = world.read(live).needs
    assert needs is not None
    assert (needs.scope, needs.only_if_asked) == ("a", True)


def test_b52_two_needs_that_alternate_cost_two_sign_ins() -> None:
    """The union is asked for, so the second sign-in covers both for good."""
    world = AccountWorld()
    live = world.live()
    sign_ins = 0
    for number in range(10):
        world.shop.needs = "s2" if number % 2 else "s1"
        needs = world.read(live).needs
        if needs is not None and not needs.only_if_asked:
            sign_ins += 1
            world.signed_in(live, *needs.scope.split())
            assert world.read(live).needs is None
    assert sign_ins == 2


@pytest.mark.requirement("papaver-90")
@pytest.mark.parametrize("wholly", [True, False])
def test_b52_a_denied_scope_is_not_asked_for_again(wholly: bool) -> None:
    """Remembered until the User asks for it; another scope may still be asked for."""
    world = AccountWorld()
    live = world.live()
    if wholly:
        begun = world.begun(live, "s2")
        with pytest.raises(Exception, match="access_denied"):
            world.run(complete(live.setup, world.auth.decline(begun.url)))
    else:
        world.signed_in(live, "s1", "s2", approve=("s1",))
    for needed, only_if_asked in (("s2", True), ("s3", False), ("s2 s3", True)):
        world.shop.needs = needed
        needs = world.read(live).needs
        assert needs is not None
        assert needs.only_if_asked is only_if_asked, needed
    world.signed_in(live, "s2")
    world.shop.needs = "s2"
    assert world.read(live).response.status == 200


@pytest.mark.parametrize("off", ["disabled", "anonymous", "no grants"])
def test_where_nobody_can_sign_in_the_answer_is_the_callers(off: str) -> None:
    """There is nothing to ask the User for."""
    world = AccountWorld()
    if off == "disabled":
        world.shop.documents[f"https://{DOMAIN}/.well-known/poppy.json"] = document(auth={"disabled": True})
    if off == "no grants":
        world.auth.extra = {"grant_types_supported": ["refresh_token"]}
        publish(world.shop)
    world.shop.needs = "a"
    exchange = world.read(world.live(anonymous=off == "anonymous"))
    assert (exchange.response.status, exchange.needs) == (401, None)


def test_a_refresh_token_works_on_where_sign_in_was_turned_off() -> None:
    """3.2: `auth.disabled` begins no sign-in; what was granted before goes on."""
    world = AccountWorld()
    world.signed_in(world.live(), "a")
    world.shop.documents[f"https://{DOMAIN}/.well-known/poppy.json"] = document(auth={"disabled": True})
    world.clock.advance(4000)
    world.shop.needs = "a"
    assert world.read(world.live()).response.status == 200
    assert world.auth.refreshes() == 1


# ── services with tokens of their own ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("4.5-08", "4.5-09", "4.5-10")
def test_a_service_with_tokens_of_its_own_gets_one_and_keeps_it() -> None:
    """Its metadata comes before the first signed-in call; its token goes nowhere else, the default one not there."""
    company = account_company(own=ENDPOINT)
    company.documents[METADATA] = {"resource": ENDPOINT}
    world = AccountWorld(company)
    live = world.live()
    world.read(live)
    assert METADATA not in [request.url for request in world.fetched]
    world.signed_in(live, "a")
    assert world.read(live).response.status == 200
    assert [request.url for request in world.fetched].count(METADATA) == 1
    refresh = world.auth.named("token")[-1]
    assert refresh.one("resource") == ENDPOINT
    carried = world.shop.carried[-1]
    assert carried is not None
    assert world.auth.tokens[carried[1]][1] == ENDPOINT
    world.read(live)
    assert world.auth.refreshes() == 1
    assert len(world.account()["tokens"]) == 2


@pytest.mark.requirement("4.5-11")
@pytest.mark.parametrize("said", [404, 410, {"resource": f"https://{DOMAIN}"}])
def test_without_metadata_the_default_token_is_used(said: object) -> None:
    """Also where it names the domain."""
    world = AccountWorld()
    world.shop.documents[METADATA] = said
    live = world.live()
    world.signed_in(live, "a")
    world.read(live)
    assert world.auth.refreshes() == 0
    assert world.shop.carried[-1] is not None


@pytest.mark.requirement("4.5-15")
def test_metadata_that_a_challenge_names_replaces_what_was_known() -> None:
    """The service began to take only its own tokens; the next try has one, and the default token is not given up."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.read(live)
    world.shop.own = ENDPOINT
    world.shop.documents[METADATA] = {"resource": ENDPOINT}
    # The path of a request is below the service's URL; the challenge names the service's own metadata.
    assert world.read(live).response.status == 200
    assert world.auth.named("token")[-1].one("resource") == ENDPOINT
    assert len(world.account()["tokens"]) == 2


def test_metadata_of_another_service_is_not_believed() -> None:
    """A challenge that names it is a plain `invalid_token`: one refresh, and that is all."""
    world = AccountWorld()
    live = world.live()
    world.signed_in(live, "a")
    world.shop.documents["https://evil.example/.well-known/oauth-protected-resource"] = {
        "resource": "https://evil.example"
    }
    evil = "https://evil.example/.well-known/oauth-protected-resource"
    world.shop.script = [world.shop.challenge(401, "invalid_token", resource_metadata=evil)] * 2
    world.read(live)
    assert evil not in [request.url for request in world.fetched]
    assert [form.one("resource") for form in world.auth.named("token")] == [None, None]


def test_a_challenge_that_names_what_is_known_is_a_refused_token() -> None:
    """The metadata is asked for again, says the same, and the token is refreshed."""
    company = account_company(own=ENDPOINT)
    company.documents[METADATA] = {"resource": ENDPOINT}
    world = AccountWorld(company)
    live = world.live()
    world.signed_in(live, "a")
    world.read(live)
    world.shop.script = [world.shop.challenge(401, "invalid_token", resource_metadata=METADATA)]
    assert world.read(live).response.status == 200
    assert world.auth.refreshes() == 2


@pytest.mark.parametrize("name", ["Authorization", "DPoP"])
def test_who_uses_a_session_sets_no_token(name: str) -> None:
    """The Session does, or nobody."""
    world = AccountWorld()
    request = Request("GET", f"{ENDPOINT}/cnv_1/events", Headers([(name, "x")]))
    with pytest.raises(ConfigurationError) as caught:
        world.run(signed(world.live(), lambda _: request))
    assert caught.value.rule == "session.headers-ours"

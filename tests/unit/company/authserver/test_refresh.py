"""What becomes of a refresh token, by where it stands in its family (4.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.company.authserver.issue import Issue, Tokens, derive, successor
from papaver.company.authserver.refresh import Refreshing, decide_refresh, standing
from papaver.oauth.errors import InvalidGrant, InvalidScope
from papaver.oauth.tokens import TokenResponse
from papaver.ports.grants import GrantLoaded, GrantRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.values.secret import Secret

GRANT = GrantRow(
    id="g1",
    client_id=ClientId("https://agent.example/agent.json"),
    client_name="Agent",
    account_id=AccountId("dana"),
    scopes=("a", "b"),
    kind="direct",
    signed_in_at=0,
    expires_at=1000,
    current="digest2",
    previous="digest1",
    rotated_at=100,
)
TOKENS = Tokens.of(Secret("pat_new"), Secret("prt_next"))


def ask(presented: str, now: float = 110, **changes: object) -> Refreshing:
    made = Refreshing(GRANT.client_id, presented, None, Issue(now, TOKENS, 50), 60)
    return replace(made, **changes)


def test_the_newest_is_replaced_by_its_successor() -> None:
    """The family moves on; the access token never outlives it."""
    change = decide_refresh(GrantLoaded(grant=GRANT), ask("digest2"))
    (grant,), (row,) = change.grants, change.access
    assert (grant.current, grant.previous, grant.rotated_at) == (TOKENS.refresh_digest, "digest2", 110)
    assert (grant.expires_at, row.expires_at, row.scopes) == (1000, 160, ("a", "b"))
    unchanged = replace(grant, current=GRANT.current, previous=GRANT.previous, rotated_at=GRANT.rotated_at)
    assert unchanged == GRANT
    assert [one.digest for one in change.refresh] == [TOKENS.refresh_digest]
    assert decide_refresh(GrantLoaded(grant=GRANT), ask("digest2", 990)).access[0].expires_at == 1000


@pytest.mark.requirement("papaver-57")
def test_the_one_before_gets_the_same_again_and_changes_nothing() -> None:
    """Up to the end of the grace, and then an error that changes nothing either."""
    change = decide_refresh(GrantLoaded(grant=GRANT), ask("digest1", 160))
    assert isinstance(change.result, TokenResponse)
    assert (change.grants, change.refresh) == ((), ())
    with pytest.raises(InvalidGrant) as error:
        decide_refresh(GrantLoaded(grant=GRANT), ask("digest1", 161))
    assert error.value.rule == "refresh.grace"


@pytest.mark.requirement("papaver-57")
def test_an_older_one_revokes_the_family() -> None:
    """The error is the result, so that the change is written."""
    change = decide_refresh(GrantLoaded(grant=GRANT), ask("digest0"))
    assert isinstance(change.result, InvalidGrant)
    assert change.grants == (replace(GRANT, revoked_at=110),)


@pytest.mark.parametrize(
    ("loaded", "request_", "rule"),
    [
        (GrantLoaded(), ask("digest2"), "refresh.known"),
        (GrantLoaded(grant=GRANT), ask("digest0", client_id="https://other.example/a"), "refresh.grant-of-client"),
        (GrantLoaded(grant=GRANT), ask("digest0", 1000), "refresh.grant-stands"),
        (GrantLoaded(grant=replace(GRANT, revoked_at=1)), ask("digest2"), "refresh.grant-stands"),
        (GrantLoaded(grant=GRANT, disabled=True), ask("digest2"), "refresh.account-enabled"),
    ],
    ids=["unknown", "another client", "expired", "revoked", "disabled"],
)
def test_what_is_refused_changes_nothing(loaded: GrantLoaded, request_: Refreshing, rule: str) -> None:
    """It is raised, so nothing is written."""
    with pytest.raises(InvalidGrant) as error:
        decide_refresh(loaded, request_)
    assert error.value.rule == rule


@pytest.mark.requirement("4.7-15")
@pytest.mark.parametrize("presented", ["digest1", "digest2"])
def test_scopes_are_narrowed_and_never_widened(presented: str) -> None:
    """Before the token is replaced."""
    change = decide_refresh(GrantLoaded(grant=GRANT), ask(presented, scopes=("b",)))
    assert change.access[0].scopes == ("b",)
    with pytest.raises(InvalidScope) as error:
        decide_refresh(GrantLoaded(grant=GRANT), ask(presented, scopes=("a", "c")))
    assert error.value.rule == "refresh.scope-narrower"


def test_a_successor_is_always_the_same_and_of_one_store() -> None:
    """Made from the presented token and a key of its own purpose."""
    key = derive(b"s" * 32, "rotation")
    assert successor(key, "prt_a") == successor(key, "prt_a")
    assert successor(key, "prt_a") != successor(key, "prt_b")
    assert successor(key, "prt_a") != successor(derive(b"t" * 32, "rotation"), "prt_a")
    assert derive(b"s" * 32, "rotation") != derive(b"s" * 32, "forms")
    assert [standing(GRANT, one) for one in ("digest2", "digest1", "digest0")] == ["newest", "replaced", "older"]

"""Whom a turn or a request acts as, and with which roles."""

from __future__ import annotations

import re

import pytest

from papaver.company.company_agent import PERSONAL_AGENT, Actor, Principal, actor_of, principal_of, scope_role
from papaver.company.company_agent.actors import check_app_roles, default_actor
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.session import VerifiedSession
from papaver.protocol.terms import AccountId, ClientId, CompanyId, SessionId, UserId

pytestmark = pytest.mark.anyio

COMPANY = CompanyId("https://example.com")
AGENT = ClientId("https://agent.example/agent.json")
DANA = Principal(AGENT, UserId("usr_dana"))
SIGNED_IN = Principal(
    AGENT, UserId("usr_dana"), account_id=AccountId("acc_a"), scopes=frozenset({"orders:write", "orders:read"})
)


@pytest.mark.requirement("ca-22", "ca-25", "ca-26")
async def test_c26_signed_in_it_is_the_account_with_a_role_for_each_scope() -> None:
    """The roles are exactly these, and `personal_agent` is the last."""
    actor = await actor_of(COMPANY, SIGNED_IN)
    assert actor == Actor("acc_a", ("scope:orders:read", "scope:orders:write", "personal_agent"))
    assert actor.personal_agent


@pytest.mark.requirement("ca-23", "ca-25")
async def test_c26_signed_out_it_is_somebody_stable_who_is_no_account() -> None:
    """The same each time, another for another User, client or Company, however the three are cut."""
    actor = await actor_of(COMPANY, DANA)
    assert re.fullmatch("poppy:[0-9a-f]{40}", actor.id)
    assert actor.roles == (PERSONAL_AGENT,)
    assert (await actor_of(COMPANY, DANA)).id == actor.id
    others = [
        default_actor(COMPANY, Principal(AGENT, UserId("usr_eve"))),
        default_actor(COMPANY, Principal(ClientId(AGENT + "u"), UserId("sr_dana"))),
        default_actor(CompanyId(COMPANY + "x"), DANA),
        default_actor(COMPANY, SIGNED_IN),
    ]
    assert len({actor.id, *(other.id for other in others)}) == 5


@pytest.mark.requirement("ca-21")
async def test_c26_the_app_s_choice_comes_before_the_default_and_after_the_principal_s_own() -> None:
    """It is given the default one; its roles come first, each once; it may be async."""
    seen: list[tuple[Principal, Actor]] = []

    def choose(principal: Principal, actor: Actor) -> Actor:
        seen.append((principal, actor))
        return Actor(f"user:{actor.id}", ("customer", "customer"))

    async def choose_later(principal: Principal, actor: Actor) -> Actor:
        return choose(principal, actor)

    for chosen in (choose, choose_later):
        actor = await actor_of(COMPANY, SIGNED_IN, chosen)
        assert actor == Actor("user:acc_a", ("customer", "scope:orders:read", "scope:orders:write", "personal_agent"))
    assert seen == [(SIGNED_IN, Actor("acc_a"))] * 2
    own = Principal(AGENT, UserId("usr_dana"), actor=Actor("clerk", ("staff",)))
    assert await actor_of(COMPANY, own, choose) == Actor("clerk", ("staff", "personal_agent"))
    assert len(seen) == 2


@pytest.mark.requirement("ca-26", "papaver-138")
@pytest.mark.parametrize("role", ["scope:orders:write", "scope:", "personal_agent"])
async def test_a_role_of_the_app_cannot_pose_as_a_granted_scope(role: str) -> None:
    """Nor can a scope pose as a role of the app: its role begins with what none of theirs may."""
    check_app_roles(["staff", "scoped", "personal"])
    for principal, chosen in ((SIGNED_IN, Actor("x", (role,))), (DANA, Actor("x", ("staff", role)))):
        with pytest.raises(ConfigurationError) as refused:
            await actor_of(COMPANY, principal, lambda principal, actor, chosen=chosen: chosen)
        assert refused.value.rule == "actor.app-roles"
    assert scope_role("staff") == "scope:staff"


async def test_scopes_of_somebody_signed_out_are_no_roles() -> None:
    """A principal without an account has none, whatever it says."""
    odd = Principal(AGENT, UserId("usr_dana"), scopes=frozenset({"orders:write"}))
    assert (await actor_of(COMPANY, odd)).roles == (PERSONAL_AGENT,)


@pytest.mark.requirement("ca-27")
async def test_a_request_to_an_api_acts_as_the_same_kind_of_actor_as_a_turn() -> None:
    """By its verified Session: the same id and the same roles."""
    session = VerifiedSession(
        AGENT,
        SessionId("sid"),
        UserId("usr_dana"),
        None,
        AccountId("acc_a"),
        frozenset({"orders:read", "orders:write"}),
        "0.4",
        {},
        "jti",
        0,
    )
    assert await actor_of(COMPANY, principal_of(session)) == await actor_of(COMPANY, SIGNED_IN)

"""What a document says about account access, as a Personal Agent takes it: hints, and nothing that decides."""

from __future__ import annotations

import pytest

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import authorize, read, write
from papaver.personal_agent.flows.sign_out import sign_out
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.outbox import Target
from papaver.protocol.company import Access, Changes
from papaver.protocol.conversation.model import Message
from papaver.protocol.dialect import Wanted
from papaver.protocol.errors import SignInNeeded
from papaver.protocol.terms import ConversationId
from papaver.versions import DIALECTS
from tests.house.agent_issuer import AccountWorld, account_company
from tests.house.agent_world import DOMAIN, ENDPOINT, V, document

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
C1 = ConversationId("cnv_1")


def message(world: AccountWorld) -> Message:
    """A message with an id of its own."""
    return compose(message_id(world.ids), "Hello")


def with_access(value: object) -> AccountWorld:
    """A Company whose endpoint says this about access; None for nothing."""
    entry: dict[str, object] = {"type": "poppy", "endpoint": ENDPOINT}
    company = account_company()
    company.documents[POPPY] = document(agent={"protocols": [entry if value is None else {**entry, "access": value}]})
    return AccountWorld(company)


@pytest.mark.requirement("3.2-51", "3.2-56")
@pytest.mark.parametrize("value", [None, "session", "premium", 7, {}, "SIGNED_IN"])
def test_absent_and_unfamiliar_access_is_session(value: object) -> None:
    """No error, and no sign-in before the first request."""
    world = with_access(value)
    live = world.live()
    entry = live.found.document.conversations()
    assert entry is not None
    assert entry.access is Access.SESSION
    world.run(write(live, message(world)))


@pytest.mark.requirement("3.2-52")
def test_signed_in_access_arranges_the_sign_in_first() -> None:
    """Nothing is put into the outbox before; after a sign-out the User is not asked on their own."""
    world = with_access("signed_in")
    live = world.live()
    for only_if_asked in (False, True):
        with pytest.raises(SignInNeeded) as caught:
            world.run(write(live, message(world)))
        assert caught.value.only_if_asked is only_if_asked
        assert world.of_kind("outbox") == []
        world.signed_in(live, "orders:read")
        world.run(write(live, message(world), Target(C1)))
        world.rows = {key: value for key, value in world.rows.items() if key[0] != "outbox"}
        world.run(sign_out(live))


@pytest.mark.requirement("3.2-57")
def test_access_is_a_hint_and_challenges_decide() -> None:
    """`session` and a challenge: the User is needed. `signed_in`, and a challenge for more: the same."""
    for value in ("session", "signed_in"):
        world = with_access(value)
        live = world.live()
        if value == "signed_in":
            world.signed_in(live, "a")
        world.shop.needs = "b"
        with pytest.raises(SignInNeeded) as caught:
            world.run(read(live, C1, Wanted()))
        assert set(caught.value.scope.split()) == ({"b"} if value == "session" else {"a", "b"})
    anonymous = with_access("signed_in")
    anonymous.run(write(anonymous.live(anonymous=True), message(anonymous)))


@pytest.mark.requirement("4.7-10", "4.7-11", "4.7-12")
def test_hints_are_read_with_care() -> None:
    """No entry says nothing, further members are ignored, and an unfamiliar change cannot be undone."""
    hints = {
        "a": {"changes": "none", "personal_data": False, "cost": "high"},
        "b": {"changes": "delayed", "personal_data": True},
    }
    found = DIALECTS[V].documents.read(document(auth={"scope_hints": hints})).auth.scope_hints
    assert (found["a"].changes, found["a"].personal_data) == (Changes.NONE, False)
    assert found["b"].changes is Changes.IRREVERSIBLE
    assert "c" not in found


@pytest.mark.requirement("4.7-13", "5.4-08")
def test_no_hint_stands_for_the_users_approval() -> None:
    """The same link for the User and the same scopes, whatever the Company says of them."""
    asked: list[str] = []
    for hints in ({}, {"a": {"changes": "none", "personal_data": False}}):
        company = account_company()
        company.documents[POPPY] = document(auth={"scope_hints": hints})
        world = AccountWorld(company)
        asked.append(world.begun(world.live(), "a").url.partition("&state=")[0])
        assert world.auth.asked == []
        assert world.of_kind("account") == []
    assert asked[0] == asked[1]


@pytest.mark.requirement("8.11-03", "8.11-07")
def test_an_event_that_the_account_covers_is_met_by_the_next_read() -> None:
    """With a token that has what it names; a need beyond the account is the User's, with what is held beside it."""
    world = AccountWorld()
    live = world.live()
    world.shop.events[C1] = []
    assert world.run(authorize(live, C1, ["a"])) is not None
    world.signed_in(live, "a", "b")
    narrow = world.live(only=("a",))
    world.run(read(narrow, C1, Wanted()))
    assert world.run(authorize(live, C1, ["b"])) is None
    world.run(read(live, C1, Wanted(), ["b"]))
    carried = world.shop.carried[-1]
    assert carried is not None
    assert "b" in world.auth.tokens[carried[1]][0]
    need = world.run(authorize(live, C1, ["c"]))
    assert need is not None
    assert (need.scope, need.only_if_asked) == ("a b c", False)
    need = world.run(authorize(narrow, C1, ["b"]))
    assert need is not None

"""Whose conversation it is: every cell of 8.2's table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from papaver.protocol.conversation.operations import Caller
from papaver.protocol.conversation.ownership import (
    Challenged,
    Continues,
    NotFound,
    Verdict,
    check_owner,
    moves,
    ownership,
)
from papaver.protocol.conversation.state import Access, Head
from papaver.protocol.errors import AccountNeeded, ConversationNotFound
from papaver.protocol.terms import AccountId, ClientId, ConversationId, UserId

AGENT, OTHER_AGENT = ClientId("https://agent.example/a.json"), ClientId("https://other.example/a.json")
DANA, SAM = UserId("dana"), UserId("sam")
A, B = AccountId("A"), AccountId("B")

ROWS = [
    pytest.param((AGENT, DANA), None, Continues(None), Challenged(), id="same-signed-out"),
    pytest.param((AGENT, DANA), A, Continues(A), Continues(A), id="same-signed-in-to-A"),
    pytest.param((AGENT, DANA), B, Continues(B), NotFound(), id="same-signed-in-to-B"),
    pytest.param(
        (AGENT, SAM), None, NotFound(), NotFound(), id="c28-other-user", marks=pytest.mark.requirement("8.2-13")
    ),
    pytest.param((AGENT, SAM), A, NotFound(), NotFound(), id="c73-other-user-same-account"),
    pytest.param(
        (OTHER_AGENT, DANA), None, NotFound(), NotFound(), id="other-agent", marks=pytest.mark.requirement("8.2-14")
    ),
    pytest.param((OTHER_AGENT, DANA), A, NotFound(), NotFound(), id="other-agent-signed-in"),
    pytest.param((OTHER_AGENT, SAM), B, NotFound(), NotFound(), id="other-agent-other-user"),
]


def _head(account: AccountId | None = None) -> Head:
    now = datetime(2026, 10, 8, tzinfo=UTC)
    return Head(ConversationId("cnv_1"), AGENT, DANA, now, now, account_id=account, scope="orders:read")


@pytest.mark.parametrize(("caller", "account", "before", "after"), ROWS)
def test_the_table_of_8_2(
    caller: tuple[ClientId, UserId], account: AccountId | None, before: Verdict, after: Verdict
) -> None:
    """Each row of the table, before the conversation uses an account and after it uses A."""
    assert ownership((AGENT, DANA), None, caller, account) == before
    assert ownership((AGENT, DANA), A, caller, account) == after


@pytest.mark.parametrize(("caller", "account", "before", "after"), ROWS)
def test_the_check_raises_what_the_table_says(
    caller: tuple[ClientId, UserId], account: AccountId | None, before: Verdict, after: Verdict
) -> None:
    """The check passes what continues, and names its rule in what it refuses."""
    for used, verdict in ((None, before), (A, after)):
        head = _head(used)
        request = Caller(*caller, account)
        match verdict:
            case Continues():
                check_owner(head, request)
                assert moves(head, request, 0.0) == (used is None and account is not None)
            case Challenged():
                with pytest.raises(AccountNeeded) as challenged:
                    check_owner(head, request)
                assert (challenged.value.rule, challenged.value.scope) == ("conversation.owner", "orders:read")
            case NotFound():
                with pytest.raises(ConversationNotFound) as refused:
                    check_owner(head, request)
                assert refused.value.rule == "conversation.owner"


@pytest.mark.requirement("8.2-09", "8.13-03")
def test_c28_unknown_and_foreign_conversations_look_alike() -> None:
    """What is told of an unknown conversation and of another User's is the same; only our log differs."""
    with pytest.raises(ConversationNotFound) as unknown:
        check_owner(None, Caller(AGENT, DANA))
    with pytest.raises(ConversationNotFound) as foreign:
        check_owner(_head(), Caller(AGENT, SAM))
    assert (unknown.value.code, str(unknown.value)) == (foreign.value.code, str(foreign.value))
    assert unknown.value.detail != foreign.value.detail


@pytest.mark.requirement("8.2-07", "8.2-08")
def test_any_matching_session_continues_it() -> None:
    """Session and Agent ID are no part of the owner: a Caller that names neither goes on with the conversation."""
    check_owner(_head(), Caller(AGENT, DANA))
    assert ownership((AGENT, DANA), None, (AGENT, DANA), None) == Continues(None)


def test_readings_32_a_configured_minimum_is_named_first() -> None:
    """Else what the conversation itself remembers."""
    with pytest.raises(AccountNeeded) as challenged:
        check_owner(_head(A), Caller(AGENT, DANA, minimum="profile"))
    assert challenged.value.scope == "profile"


@pytest.mark.parametrize(
    ("parked", "access", "moved"),
    [
        (True, Access(("orders:read",)), True),
        (True, Access(("orders:read", "orders:write"), 11.0), True),
        (True, Access(("orders:read",), 10.0), False),
        (True, Access(("orders:write",)), False),
        (True, None, False),
        (False, Access(("orders:read",)), False),
    ],
)
def test_a_read_moves_a_parked_turn_whose_token_covers_it(parked: bool, access: Access | None, moved: bool) -> None:
    """Other reads of a conversation that has its account write nothing."""
    assert moves(replace(_head(A), parked=parked), Caller(AGENT, DANA, A, access=access), 10.0) is moved

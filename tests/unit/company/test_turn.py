"""The account as a turn may use it: what is required, what is noted, and what a check alone says."""

from __future__ import annotations

import pytest

from papaver.company.conversations import check_signed_in
from papaver.company.offer import check_conversation_scopes
from papaver.company.outcome import Outcome, read_outcome, write_outcome
from papaver.company.sign_in import Scope
from papaver.company.turn import Account, ScopesNeeded, check_scopes_held
from papaver.protocol.conversation.state import Access
from papaver.protocol.errors import AccountNeeded, ConfigurationError
from papaver.protocol.session import AccountAccess
from papaver.protocol.terms import AccountId
from papaver.testing.clock import ManualClock
from papaver.values.strict_json import JsonError

A = AccountId("acc_a")


async def good(id: AccountId, access: Access) -> bool:
    return True


def test_an_account_gives_what_its_token_covers_and_notes_the_rest() -> None:
    """All that was asked for in vain, in the order of asking, each scope once."""
    clock = ManualClock(100.0)
    account = Account(A, Access(("orders:read",), 160.0), clock.now, good)
    assert account.require(("orders:read",)) == A
    assert account.needed == ()
    for scopes in (("orders:write", "orders:read"), ("orders:write", "profile")):
        with pytest.raises(ScopesNeeded) as needed:
            account.require(scopes)
        assert (needed.value.scopes, needed.value.rule) == (scopes, "turn.scopes-held")
    assert account.needed == ("orders:write", "orders:read", "profile")
    clock.advance(60)
    with pytest.raises(ScopesNeeded):
        account.require(("orders:read",))


@pytest.mark.parametrize(
    ("id", "access"), [(None, None), (A, None), (None, Access(("orders:read",))), (A, Access(("orders:read",), 100.0))]
)
def test_without_a_token_that_lives_there_is_no_account(id: AccountId | None, access: Access | None) -> None:
    """The conversation may be the account's: who runs without a token acts on nothing."""
    account = Account(id, access, ManualClock(100.0).now, good)
    assert (account.id, account.access) == (None, None)
    with pytest.raises(ScopesNeeded):
        account.require(("orders:read",))


@pytest.mark.anyio
@pytest.mark.requirement("papaver-147")
@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_readings_26_an_account_whose_token_is_good_no_more_is_lost(how: str) -> None:
    """Once: it does not come back, and without one there is nothing to ask about."""
    clock, asked, held = ManualClock(100.0), list[tuple[AccountId, Access]](), [True]

    async def holds(id: AccountId, access: Access) -> bool:
        asked.append((id, access))
        return held[0]

    access = Access(("orders:read",), 160.0, "ath")
    account = Account(A, access, clock.now, holds)
    assert not await account.lost()
    assert (account.id, account.access, asked) == (A, access, [(A, access)])
    if how == "revoked":
        held[0] = False
    else:
        clock.advance(60)
    assert await account.lost()
    held[0] = True
    assert not await account.lost()
    assert (account.id, account.access, len(asked)) == (None, None, 2 if how == "revoked" else 1)
    with pytest.raises(ScopesNeeded):
        account.require(("orders:read",))


@pytest.mark.requirement("8.11-10")
def test_scopes_are_held_or_named_all() -> None:
    """Also those that the token has."""
    check_scopes_held(Access(("a", "b")), ("b",), 0.0)
    for access in (None, Access(("a",)), Access(("a", "b"), 0.0)):
        with pytest.raises(ScopesNeeded) as needed:
            check_scopes_held(access, ("a", "b"), 0.0)
        assert (needed.value.rule, needed.value.scopes) == ("turn.scopes-held", ("a", "b"))


@pytest.mark.requirement("papaver-96")
def test_readings_33_only_signed_in() -> None:
    """The challenge has no code: there was no token that could be wrong."""
    check_signed_in(AccountAccess("", "", A, frozenset()), "orders:read")
    with pytest.raises(AccountNeeded) as refused:
        check_signed_in(None, "orders:read")
    assert (refused.value.rule, refused.value.code) == ("conversation.signed-in-only", "")
    assert refused.value.scope == "orders:read"


@pytest.mark.requirement("papaver-98")
def test_readings_32_what_conversations_need_is_offered() -> None:
    """Name by name."""
    scopes = (Scope("orders:read", "See orders"),)
    check_conversation_scopes((), ())
    check_conversation_scopes(("orders:read",), scopes)
    for needed in (("orders:write",), ("orders:read", "Orders:read")):
        with pytest.raises(ConfigurationError) as refused:
            check_conversation_scopes(needed, scopes)
        assert refused.value.rule == "offer.conversation-scopes"


def test_an_outcome_reads_as_it_was_journaled() -> None:
    """Also one that an earlier version wrote, which knew of no need."""
    needed = Outcome(needed=("orders:read", "orders:write"))
    assert read_outcome(write_outcome(needed)) == needed
    assert b"needed" not in write_outcome(Outcome())
    assert read_outcome(b'{"failed":false,"messages":[]}') == Outcome()
    with pytest.raises(JsonError):
        read_outcome(b'{"failed":false,"messages":[],"needed":5}')

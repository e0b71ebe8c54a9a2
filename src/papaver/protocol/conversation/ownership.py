"""Whose conversation it is: the table of 8.2 as a total function, and the account that a request binds it to."""

from __future__ import annotations

from dataclasses import dataclass

from papaver.protocol.conversation.operations import Caller
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import AccountNeeded, ConversationNotFound
from papaver.protocol.terms import AccountId, ClientId, UserId
from papaver.values.rules import rule

__all__ = ["Challenged", "Continues", "NotFound", "Verdict", "check_owner", "moves", "ownership"]


@dataclass(frozen=True, slots=True)
class Continues:
    """`account` is the account that the conversation uses from now on; None while it uses none."""

    account: AccountId | None


@dataclass(frozen=True, slots=True)
class Challenged:
    """The request lacks a token for the account (8.11)."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """As if there were no such conversation (8.13)."""


Verdict = Continues | Challenged | NotFound


def ownership(
    owner: tuple[ClientId, UserId],
    used: AccountId | None,
    caller: tuple[ClientId, UserId],
    account: AccountId | None,
) -> Verdict:
    """8.2's table. `used` is the account of the conversation, `account` that of the request. Agent IDs play no part."""
    match (caller == owner, used, account):
        case (False, _, _):
            return NotFound()
        case (True, None, signed_in):
            return Continues(signed_in)
        case (True, account_used, None):
            return Challenged()
        case (True, account_used, signed_in) if signed_in == account_used:
            return Continues(account_used)
        case _:
            return NotFound()


@rule("conversation.owner")
def check_owner(head: Head | None, caller: Caller) -> None:
    """The request may go on with this conversation (8.2). A challenge names `caller.minimum`, else `head.scope`.

    Raises ConversationNotFound, the same for an unknown conversation and another's, or AccountNeeded.
    """
    if head is None:
        raise ConversationNotFound(rule="conversation.owner", detail="there is none")
    verdict = ownership(
        (head.client_id, head.user_id), head.account_id, (caller.client_id, caller.user_id), caller.account_id
    )
    match verdict:
        case Continues():
            return
        case Challenged():
            raise AccountNeeded(
                caller.minimum or head.scope, rule="conversation.owner", detail="signed out, and it uses an account"
            )
        case _:
            raise ConversationNotFound(rule="conversation.owner", detail="it belongs to another")


def moves(head: Head, caller: Caller, now: float) -> bool:
    """Whether an accepted read of this caller changes the conversation; `now` in Unix seconds.

    Either it makes it use the caller's account (readings 2), or its token is what a parked turn waits for (8.11).
    """
    if caller.account_id is None:
        return False
    resumes = head.parked and caller.access is not None and caller.access.covers(head.scope.split(), now)
    return head.account_id is None or resumes

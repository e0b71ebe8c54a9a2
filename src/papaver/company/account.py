"""The User's account as one turn may use it: what its token allows, and what was asked of it in vain (8.11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from papaver.oauth.scopes import union
from papaver.protocol.conversation.state import Access
from papaver.protocol.terms import AccountId
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = ["Account", "Holds", "ScopesNeeded", "check_scopes_held"]


Holds = Callable[[AccountId, Access], Awaitable[bool]]
"""Whether a token of the account is still good, whatever was revoked, disabled or blocked meanwhile."""


class ScopesNeeded(PapaverError):
    """`turn.require` asks for more than the User's access token allows. Let it pass: it ends the turn (8.11).

    Whoever catches it changes nothing: what the handler returns after that is dropped.
    """

    code = "scopes_needed"
    description = "the turn needs the User's account; it runs again once the User has signed in"

    def __init__(self, scopes: tuple[str, ...], *, rule: str = "") -> None:
        self.scopes = scopes
        super().__init__(rule=rule, detail=" ".join(scopes))


class Account:
    """The account as one turn may use it: what its token allows, and what was asked of it in vain.

    `id` and `access` are None when no request carried a token, or when that token has expired or was revoked.
    """

    __slots__ = ("_holds", "_now", "access", "id", "needed")

    def __init__(self, id: AccountId | None, access: Access | None, now: Callable[[], float], holds: Holds) -> None:
        lives = id is not None and access is not None and access.lives(now())
        self.id, self.access = (id, access) if lives else (None, None)
        self.needed: tuple[str, ...] = ()
        self._now, self._holds = now, holds

    async def lost(self) -> bool:
        """Ask again whether the token is good: True when the account is lost by that. It does not come back.

        Raises TemporarilyUnavailable.
        """
        if self.id is None or self.access is None:
            return False
        if self.access.lives(self._now()) and await self._holds(self.id, self.access):
            return False
        self.id = self.access = None
        return True

    def require(self, scopes: tuple[str, ...]) -> AccountId:
        """See `Turn.require`."""
        try:
            check_scopes_held(self.access, scopes, self._now())
        except ScopesNeeded as error:
            self.needed = union(self.needed, error.scopes)
            raise
        assert self.id is not None
        return self.id


@rule("turn.scopes-held")
def check_scopes_held(access: Access | None, scopes: tuple[str, ...], now: float) -> None:
    """8.11: who acts on the account holds a token for that, now; a message alone allows nothing.

    Raises ScopesNeeded with all that the call needs, not only what is missing.
    """
    if access is None or not access.covers(scopes, now):
        raise ScopesNeeded(scopes, rule="turn.scopes-held")

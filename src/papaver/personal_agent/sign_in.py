"""A sign-in that has begun: what the User is shown, and how it ends. Made by `Session.sign_in` (4.2, 4.3).

Only the User signs in: they open the link themselves, on a page of the Company (5.4). Nothing here fills in a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Never

from papaver.values.secret import Secret

__all__ = ["DeviceSignIn", "DirectSignIn", "KnownAccount", "SignedIn"]


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a sign-in came to. No token is in it.

    `user`, `account`  the local names of whose account it is
    `scopes`           what the User approved           `missing`  what was asked for beyond that (4.7)
    """

    company_name: str
    domain: str
    user: str
    account: str
    scopes: tuple[str, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """An account in the vault, and no secret of it.

    `company`       the Company's identifier         `domain`   where the User signed in
    `state`         `signed_in`; `signed_out` by the User here; `ended` by the Company or the User there (5.5);
                    `declined` when first asked; `refused`: the Company lets this Personal Agent sign nobody in (4.1)
    `signed_in_at`  Unix seconds                     `expires_at`  of the default access token that is held, or None
    `unrevoked`     refresh tokens that the Company still has to be told to revoke (4.6)
    """

    company: str
    domain: str
    user: str
    account: str
    state: str
    scopes: tuple[str, ...]
    signed_in_at: float
    expires_at: float | None
    unrevoked: int


@dataclass(frozen=True, slots=True)
class DirectSignIn:
    """Direct Sign-In (4.2): open `url` in the User's browser. Their browser comes back to `redirect_uri`.

    `scopes`      what is asked for, including what is held already (4.7)
    `expires_at`  when the callback is no longer taken, in Unix seconds
    `company_name`, `domain`  the Company, as its verified document names it

    The URL that the browser comes back to goes into `complete` here, or into `PersonalAgent.complete` in any process
    that has the same vault. Both take it once. The URL holds a code: it belongs into no log and no model's context.
    """

    url: str = field(repr=False)
    redirect_uri: str
    scopes: tuple[str, ...]
    company_name: str
    domain: str
    expires_at: float
    _complete: Callable[[Secret], Awaitable[SignedIn]] = field(repr=False, compare=False)

    async def complete(self, callback_url: str) -> SignedIn:
        """The User is back: exchange the code for tokens, and keep them. `callback_url` is the whole URL, as pasted.

        Raises AccessDenied when the User declined, another ProtocolError of OAuth as the Company says, SignInUnknown
        for another sign-in's URL, one that was used or is too old, and FetchFailed. After each of them what was held
        before is held still, and the sign-in has to begin again (4.7).
        """
        callback, callback_url = Secret(callback_url), ""  # no frame of ours shows it to whoever reads a traceback
        return await self._complete(callback)

    def __reduce__(self) -> Never:
        raise TypeError("a sign-in is never pickled; PersonalAgent.complete finishes it in another process")


@dataclass(frozen=True, slots=True)
class DeviceSignIn:
    """Device Sign-In (4.3): show the User the link, the code, and the Company's name and domain, all of it.

    `verification_uri`, `user_code`  the page, and what to type there
    `verification_uri_complete`      the same in one link, for a QR code; None when there is none
    `company_name`, `domain`         shown beside the link, so that the User sees who asks (4.3)
    `expires_at`                     Unix seconds
    `scopes`                         what is asked for, including what is held already (4.7)

    Show it in the User's own interface only, never in a message to anybody: who is sent such a link may be tricked into
    signing in somebody else (RFC 10027). Both links' hosts were checked to be the Company's.
    """

    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    company_name: str
    domain: str
    expires_at: float
    scopes: tuple[str, ...]
    _wait: Callable[[], Awaitable[SignedIn]] = field(repr=False, compare=False)

    async def wait(self) -> SignedIn:
        """Wait until the User has decided, asking no more often than the Company allows (RFC 8628 3.5).

        Raises AccessDenied when the User declined, ExpiredToken when nobody came in time, another ProtocolError as the
        Company says. After each of them what was held before is held still (4.7).
        """
        return await self._wait()

    def __reduce__(self) -> Never:
        raise TypeError("a sign-in is never pickled")

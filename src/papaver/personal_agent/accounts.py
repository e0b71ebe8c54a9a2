"""The accounts of Users at Companies, in the vault: what is held, what covers a need, and how it comes to an end (5.4).

All changes of an account are made under its lock, so that two tasks, or two processes, never spend one refresh token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from papaver.jose.keys import PrivateKey
from papaver.oauth.scopes import covers, union
from papaver.personal_agent.flows.effects import Flow, keep, load
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import ACCOUNT, AccountRow, HeldTokenRow, read_row, row_key, write_row
from papaver.personal_agent.sign_in import KnownAccount
from papaver.protocol.discovery import Discovered
from papaver.protocol.errors import SignInNeeded
from papaver.values.secret import Secret

__all__ = [
    "DECLINED",
    "ENDED",
    "REFUSED",
    "SIGNED_IN",
    "SIGNED_OUT",
    "Access",
    "AccountKey",
    "access_of",
    "account_key",
    "held_token",
    "is_in",
    "keep_account",
    "known_account",
    "left_of",
    "may_sign_in",
    "need_of",
    "stored_account",
    "within",
    "without_token",
]

SIGNED_IN: Final = "signed_in"
SIGNED_OUT: Final = "signed_out"
ENDED: Final = "ended"
REFUSED: Final = "refused"
DECLINED: Final = "declined"

DIRECT: Final = "authorization_code"
DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"


class AccountKey(NamedTuple):
    """Whose account: the Company by its identifier, the User and the account by our names."""

    company: str
    user: str
    account: str

    @property
    def row(self) -> str:
        """The row's key in the vault."""
        return row_key(*self)

    @property
    def lock(self) -> str:
        """The name under which the account is changed."""
        return f"{ACCOUNT} {self.row}"


class Access(NamedTuple):
    """An access token to send, and what it is good for. `key` makes its DPoP proofs; None for a Bearer token."""

    token: Secret
    scopes: tuple[str, ...]
    resource: str | None
    key: PrivateKey | None
    chain: str

    @property
    def authorization(self) -> Secret:
        """The `Authorization` field, with the scheme of the token's type (4.5)."""
        scheme = "Bearer" if self.key is None else "DPoP"
        return Secret(f"{scheme} {self.token.reveal()}")


def account_key(live: LiveSession, opened: OpenedSession) -> AccountKey:
    """The account that a Session acts for."""
    return AccountKey(opened.company_id, live.whose.user, live.whose.account)


def stored_account(key: AccountKey) -> Flow[AccountRow | None]:
    """The account as the vault has it now."""
    value = yield from load(ACCOUNT, key.row)
    return None if value is None else read_row(AccountRow, value)


def keep_account(key: AccountKey, row: AccountRow) -> Flow[None]:
    """Store the account, durably. Only under its lock."""
    yield from keep(ACCOUNT, key.row, lambda _: write_row(row))


def is_in(row: AccountRow | None) -> bool:
    """Whether the account is signed in."""
    return row is not None and row.state == SIGNED_IN and row.refresh_token is not None


def within(row: AccountRow, only: tuple[str, ...] | None) -> tuple[str, ...]:
    """What a Session may use of what the User approved."""
    return row.scopes if only is None else tuple(scope for scope in row.scopes if scope in only)


def held_token(
    row: AccountRow, resource: str | None, needed: Sequence[str], allowed: Sequence[str], until: float
) -> HeldTokenRow | None:
    """An access token for `resource` that covers `needed`, has no more than `allowed`, and is good after `until`."""
    for one in row.tokens:
        alive = one.expires_at is None or one.expires_at > until
        if one.resource == resource and alive and covers(one.scopes, needed) and covers(allowed, one.scopes):
            return one
    return None


def access_of(row: AccountRow, held: HeldTokenRow) -> Access:
    """A held token, ready to be sent."""
    key = None if held.token_type != "DPoP" or row.dpop_jwk is None else PrivateKey.read(row.dpop_jwk)
    return Access(Secret(held.token), held.scopes, held.resource, key, row.chain)


def without_token(row: AccountRow, token: Secret) -> AccountRow:
    """The account after the Company refused one of its access tokens."""
    return replace(row, tokens=tuple(one for one in row.tokens if Secret(one.token) != token))


def left_of(row: AccountRow) -> tuple[str, ...]:
    """The refresh tokens that are left to revoke when the account's own is used no more."""
    return row.unrevoked if row.refresh_token is None else (*row.unrevoked, row.refresh_token)


def may_sign_in(live: LiveSession, found: Discovered) -> bool:
    """Whether a sign-in could begin: at a Company that offers one (3.2), and in no anonymous Session (5.1)."""
    server = found.server
    if server is None or found.document.auth.disabled or live.whose.anonymous:
        return False
    return not {DIRECT, DEVICE}.isdisjoint(server.grant_types_supported or ())


def need_of(row: AccountRow | None, needed: Sequence[str]) -> SignInNeeded:
    """What the User has to be asked for: all that is needed, and all that is held and wanted still (4.7).

    Not to be asked of a User who signed out, was disconnected (5.5), or declined just this.
    """
    if row is None:
        return SignInNeeded(" ".join(needed), rule="account.needed")
    declined = not set(needed).isdisjoint(row.declined)
    if is_in(row):
        return SignInNeeded(" ".join(union(row.scopes, needed)), rule="account.needed", only_if_asked=declined)
    unasked = row.state == DECLINED and bool(needed) and not declined
    return SignInNeeded(" ".join(needed), rule="account.needed", only_if_asked=not unasked)


def known_account(row: AccountRow) -> KnownAccount:
    """What may be shown of an account."""
    default = next((one for one in row.tokens if one.resource is None), None)
    return KnownAccount(
        company=row.company,
        domain=row.domain,
        user=row.user,
        account=row.account,
        state=row.state,
        scopes=row.scopes if is_in(row) else (),
        signed_in_at=row.signed_in_at,
        expires_at=None if default is None else default.expires_at,
        unrevoked=len(row.unrevoked),
    )

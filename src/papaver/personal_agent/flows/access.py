"""Access tokens for requests (4.4, 4.5): a held one that covers, else one refresh for everybody who needs one.

A refresh runs under the account's lock and looks at the vault again first: of twenty tasks in two processes one asks
the Company, and the others find what it brought. A new refresh token is stored before anything is done with it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from papaver.jose.keys import PrivateKey
from papaver.oauth.errors import InvalidGrant, ProtocolError, UnauthorizedClient
from papaver.oauth.scopes import covers
from papaver.oauth.tokens import TokenResponse, read_token_response, refresh_request, revocation_request
from papaver.personal_agent.accounts import (
    ENDED,
    REFUSED,
    Access,
    AccountKey,
    access_of,
    account_key,
    held_token,
    is_in,
    keep_account,
    stored_account,
    within,
    without_token,
)
from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.effects import Flow, exclusive
from papaver.personal_agent.flows.endpoints import Issuer, Prove, ask_patiently, binds_tokens, without_frames
from papaver.personal_agent.flows.resources import resource_of
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import AccountRow, HeldTokenRow
from papaver.personal_agent.services import Service, service_at
from papaver.personal_agent.setup import Setup
from papaver.ports.system import FetchFailed
from papaver.protocol.discovery import Discovered
from papaver.protocol.errors import ConfigurationError, DiscoveryFailed, Misbehaved, RateLimited
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Request
from papaver.web.urls import host_of

__all__ = [
    "access_for",
    "can_cover",
    "check_account_session",
    "check_same_issuer",
    "drop_token",
    "issuer_of",
    "revoke_left",
    "row_with",
    "service_of",
    "token_for",
    "verified",
]

logger = logging.getLogger("papaver.personal_agent")


def access_for(
    live: LiveSession, opened: OpenedSession, request: Request, needed: Sequence[str] = ()
) -> Flow[Access | None]:
    """The access token that a request carries; None when the account is signed out, and in an anonymous Session.

    `needed` is covered where the account does. Raises FetchFailed, RateLimited and Misbehaved when there should be a
    token and none can be had just now.
    """
    row = yield from account_of(live, opened)
    if row is None or not is_in(row):
        return None
    service = service_of(live, opened, request)
    resource = None if service is None else (yield from resource_of(live, opened, service))
    return (yield from token_for(live, opened, resource, needed))


def account_of(live: LiveSession, opened: OpenedSession) -> Flow[AccountRow | None]:
    """The account that the Session acts for; None in an anonymous one, and where a Company has no issuer."""
    if live.whose.anonymous or opened.found.issuer is None:
        return None
    return (yield from stored_account(account_key(live, opened)))


def service_of(live: LiveSession, opened: OpenedSession, request: Request) -> Service | None:
    """The service that a request is for."""
    return service_at(opened.found.document, live.described, request.url, request.method)


def token_for(
    live: LiveSession, opened: OpenedSession, resource: str | None, needed: Sequence[str] = ()
) -> Flow[Access | None]:
    """A token for `resource` that covers `needed` where the account can; None when the account is signed out."""
    key = account_key(live, opened)
    check_account_session(live)
    row = yield from stored_account(key)
    if row is None or not is_in(row):
        return None
    held = _suitable(live, row, resource, needed)
    if held is not None:
        return access_of(row, held)
    return (yield from exclusive(key.lock, _refreshed(live, opened, key, resource, needed)))


def can_cover(live: LiveSession, opened: OpenedSession, needed: Sequence[str]) -> Flow[bool]:
    """Whether the account is signed in with all that is needed, as far as this Session may use it."""
    row = yield from account_of(live, opened)
    return row is not None and is_in(row) and covers(within(row, live.whose.only), needed)


def drop_token(live: LiveSession, opened: OpenedSession, token: Secret) -> Flow[None]:
    """The Company refused an access token: the next request needs another. A newer one of the account stays."""
    key = account_key(live, opened)
    yield from exclusive(key.lock, _dropped(key, token))


def _dropped(key: AccountKey, token: Secret) -> Flow[None]:
    row = yield from stored_account(key)
    if row is not None:
        yield from keep_account(key, without_token(row, token))


def _suitable(live: LiveSession, row: AccountRow, resource: str | None, needed: Sequence[str]) -> HeldTokenRow | None:
    allowed = within(row, live.whose.only)
    wanted = needed if covers(allowed, needed) else ()
    return held_token(row, resource, wanted, allowed, live.setup.clock.now() + live.setup.limits.token_renewed)


def _refreshed(
    live: LiveSession, opened: OpenedSession, key: AccountKey, resource: str | None, needed: Sequence[str]
) -> Flow[Access | None]:
    """What another task or process brought meanwhile, else a refresh. Runs under the account's lock."""
    row = yield from stored_account(key)
    if row is None or not is_in(row) or row.refresh_token is None:
        return None
    held = _suitable(live, row, resource, needed)
    if held is not None:
        return access_of(row, held)
    issuer, row = yield from verified(live.setup, opened.found, row, live.offset)
    row = row if row.dpop_jwk or not binds_tokens(issuer.server) else replace(row, dpop_jwk=_dpop_key())
    allowed = within(row, live.whose.only)
    try:
        answer = yield from _refresh(live, issuer, row, resource, allowed)
    except InvalidGrant:
        yield from keep_account(key, replace(row, state=ENDED, refresh_token=None, tokens=(), dpop_jwk=None))
        _tell(key, "is no longer signed in: the Company or the User ended it")
        return None
    except UnauthorizedClient:
        yield from keep_account(key, replace(row, state=REFUSED, tokens=()))
        _tell(key, "cannot be used: the Company refuses sign-in to this Personal Agent")
        return None
    now = live.setup.clock.now()
    whole = resource is None and allowed == row.scopes
    row = row_with(row, answer, now, requested=allowed, resource=resource)
    if whole:
        row = replace(row, scopes=row.tokens[-1].scopes)
    yield from keep_account(key, row)
    yield from revoke_left(live.setup, key, issuer, live.nonces)
    return access_of(row, row.tokens[-1])


def _refresh(
    live: LiveSession, issuer: Issuer, row: AccountRow, resource: str | None, allowed: tuple[str, ...]
) -> Flow[TokenResponse]:
    token = Secret(row.refresh_token or "")
    asked = None if allowed == row.scopes else allowed
    prove = Prove(PrivateKey.read(row.dpop_jwk), live.nonces) if row.dpop_jwk and binds_tokens(issuer.server) else None

    def build(assertion: Secret) -> Request:
        return refresh_request(
            issuer.endpoint("token"),
            client_id=live.setup.identity.client_id,
            assertion=assertion,
            refresh_token=token,
            scopes=asked,
            resource=resource,
        )

    response = yield from ask_patiently(live.setup, issuer, build, prove)
    return without_frames(lambda: read_token_response(response, requested=allowed))


def row_with(
    row: AccountRow, answer: TokenResponse, now: float, *, requested: tuple[str, ...], resource: str | None = None
) -> AccountRow:
    """The account with what a token response brought; its access token is the last one (4.4, 4.7).

    A new refresh token takes the place of the old one, which rotation made void.
    """
    fresh = HeldTokenRow(
        token=answer.access_token.reveal(),
        token_type=answer.token_type,
        scopes=requested if answer.scope is None else answer.scope,
        resource=resource,
        expires_at=None if answer.expires_in is None else now + answer.expires_in,
    )
    alive = [
        one
        for one in row.tokens
        if (one.expires_at is None or one.expires_at > now)
        and (one.resource, frozenset(one.scopes)) != (fresh.resource, frozenset(fresh.scopes))
    ]
    row = row if answer.refresh_token is None else replace(row, refresh_token=answer.refresh_token.reveal())
    return replace(row, tokens=(*alive, fresh))


def issuer_of(found: Discovered, offset: float = 0.0) -> Issuer:
    """The verified issuer of a Company that has one. Raises ConfigurationError."""
    check_has_issuer(found)
    assert found.server is not None
    return Issuer(found.server, offset)


@rule("account.issuer-known")
def check_has_issuer(found: Discovered) -> None:
    """3.2: account access needs an issuer. Raises ConfigurationError."""
    if found.server is None:
        raise ConfigurationError(f"{found.domain} has no issuer, so nobody signs in there", rule="account.issuer-known")


def verified(setup: Setup, found: Discovered, row: AccountRow, offset: float = 0.0) -> Flow[tuple[Issuer, AccountRow]]:
    """The issuer that a refresh token may be sent to, and the account as it knows it.

    Where its endpoints moved to another host since the sign-in, the whole way from domain to issuer is checked once
    more, past every cache, before the token follows. Raises DiscoveryFailed, Misbehaved: then the token stays here.
    """
    issuer = issuer_of(found, offset)
    if _hosts(issuer) == (row.token_host, row.revocation_host):
        return issuer, row
    try:
        outcome = yield from discover(setup, found.domain, uncached=True)
    except DiscoveryFailed:
        logger.warning("%s has other OAuth endpoints than at sign-in, and its issuer cannot be verified", found.domain)
        raise
    check_same_issuer(outcome.found, row.company)
    issuer = issuer_of(outcome.found, offset)
    token, revocation = _hosts(issuer)
    logger.warning("%s has its OAuth endpoints at %s now, verified anew", found.domain, token)
    return issuer, replace(row, token_host=token, revocation_host=revocation)


def _hosts(issuer: Issuer) -> tuple[str, str]:
    return host_of(issuer.endpoint("token")), host_of(issuer.endpoint("revocation"))


@rule("account.issuer-is-its-own")
def check_same_issuer(found: Discovered, issuer: str) -> None:
    """3.2, 5.1: refresh tokens belong to the issuer that gave them, and go to no other. Raises Misbehaved."""
    if found.issuer != issuer:
        raise Misbehaved(
            "the Company has another issuer than at sign-in, so the account's tokens do not go there",
            rule="account.issuer-is-its-own",
            detail=f"{found.issuer} instead of {issuer}",
        )


@rule("account.not-anonymous")
def check_account_session(live: LiveSession) -> None:
    """5.1, 5.4: an anonymous User ID and an account never meet. Raises ConfigurationError."""
    if live.whose.anonymous:
        raise ConfigurationError(
            "an anonymous Session has no account: open another Session to sign in", rule="account.not-anonymous"
        )


def revoke_left(setup: Setup, key: AccountKey, issuer: Issuer, nonces: dict[str, str]) -> Flow[bool]:
    """Revoke what was replaced or signed out of (4.6, 4.7) → whether nothing is left. Under the account's lock.

    A failure undoes nothing: the rest is tried again at the next occasion.
    """
    row = yield from stored_account(key)
    for token in () if row is None else map(Secret, row.unrevoked):
        try:
            yield from _revoke(setup, issuer, token)
        except (FetchFailed, ProtocolError, RateLimited, Misbehaved) as error:
            logger.warning("a refresh token of %s is not revoked yet: %s", key.account, error)
            return False
        row = yield from stored_account(key)
        assert row is not None
        yield from keep_account(key, _revoked(row, token))
    return True


def _revoked(row: AccountRow, token: Secret) -> AccountRow:
    return replace(row, unrevoked=tuple(one for one in row.unrevoked if Secret(one) != token))


def _revoke(setup: Setup, issuer: Issuer, token: Secret) -> Flow[None]:
    yield from ask_patiently(
        setup,
        issuer,
        lambda assertion: revocation_request(
            issuer.endpoint("revocation"), client_id=setup.identity.client_id, assertion=assertion, token=token
        ),
    )


def _dpop_key() -> dict[str, str]:
    return PrivateKey.generate("ES256").private_jwk()


def _tell(key: AccountKey, what: str) -> None:
    """The User has to hear of it; the Session goes on signed out (5.5)."""
    logger.warning("the account %s at %s %s", key.account, host_of(key.company), what)

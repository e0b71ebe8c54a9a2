"""Sign-in as flows (4.2, 4.3): how one begins, the User's way back, the polling, and what is kept when it succeeds.

The steps of each, in their order:

    begin         checked → type chosen → scopes joined with what is held ┬► Direct: row stored → URL
                                                                          └► Device: code asked for → link checked
    Direct        row taken, once → age → state, `iss`, errors → code for tokens ┐
    Device        wait → poll → slower where told, until decided or expired ─────┴► refresh token there → account kept
                                                                                   → replaced token revoked

Nothing that is held changes before the last step (4.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Never

from msgspec.structs import replace

from papaver.jose.keys import PrivateKey
from papaver.oauth.authorization import AuthorizationRequest, authorization_url, read_authorization_response
from papaver.oauth.device import (
    DeviceAuthorization,
    check_link,
    device_request,
    read_device_response,
)
from papaver.oauth.errors import AccessDenied, AuthorizationPending, ExpiredToken, SlowDown
from papaver.oauth.pkce import challenge_of
from papaver.oauth.scopes import read_scope, union, write_scope
from papaver.oauth.tokens import TokenResponse, code_request, device_poll_request, read_token_response
from papaver.personal_agent.accounts import (
    DECLINED,
    SIGNED_IN,
    AccountKey,
    account_key,
    is_in,
    keep_account,
    left_of,
    stored_account,
)
from papaver.personal_agent.flows.access import (
    check_account_session,
    check_same_issuer,
    issuer_of,
    revoke_left,
    row_with,
)
from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.effects import Flow, exclusive, keep, load, wait
from papaver.personal_agent.flows.endpoints import (
    Issuer,
    Prove,
    ask,
    ask_patiently,
    binds_tokens,
    without_frames,
)
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.records import SIGN_IN, AccountRow, SignInRow, read_row, write_row
from papaver.personal_agent.setup import Setup
from papaver.personal_agent.sign_in import SignedIn
from papaver.personal_agent.sign_in_checks import (
    Type,
    check_fresh,
    check_known,
    check_refresh_token,
    check_same_user,
    check_sign_in_enabled,
    choose_redirect,
    choose_type,
    state_of,
)
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.discovery import Discovered
from papaver.protocol.errors import RateLimited
from papaver.values.secret import Secret
from papaver.web.messages import Request, Response
from papaver.web.urls import host_of

__all__ = ["Began", "BegunDevice", "BegunDirect", "begin", "complete", "poll"]

SLOWER: Final = 5
"""Seconds that `slow_down` adds to the interval, for the polls to come (RFC 8628 3.5)."""


@dataclass(frozen=True, slots=True)
class Began:
    """A sign-in on its way: at which Company, for whose account, with which scopes and which DPoP key."""

    found: Discovered
    key: AccountKey
    scopes: tuple[str, ...]
    dpop_jwk: dict[str, str] | None = field(repr=False)

    def __reduce__(self) -> Never:
        raise TypeError("a sign-in is never pickled")


@dataclass(frozen=True, slots=True)
class BegunDirect:
    """Direct Sign-In: the URL to open, where it comes back to, until when."""

    began: Began
    url: str = field(repr=False)
    redirect_uri: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class BegunDevice:
    """Device Sign-In: what the User is shown, with the device code, which nobody is."""

    began: Began
    authorization: DeviceAuthorization = field(repr=False)
    expires_at: float

    def __reduce__(self) -> Never:
        raise TypeError("a sign-in is never pickled")


def begin(
    live: LiveSession, scopes: Sequence[str], redirect_uri: str | None, device: bool | None
) -> Flow[BegunDirect | BegunDevice]:
    """Begin a sign-in for what is held and wanted still, and for `scopes`. Raises before anything is sent."""
    check_account_session(live)
    opened = yield from live.opened()
    found, setup = opened.found, live.setup
    issuer = issuer_of(found, live.offset)
    check_sign_in_enabled(found.document)
    wanted = read_scope(write_scope(scopes))
    chosen = choose_type(issuer.server, device=device)
    target = choose_redirect(setup.identity.redirect_uris, redirect_uri) if chosen is Type.DIRECT else None
    key = account_key(live, opened)
    row = yield from stored_account(key)
    held = row.scopes if row is not None and is_in(row) else ()
    began = Began(found, key, union(held, wanted), _binding(issuer))
    if target is None:
        return (yield from _begin_device(setup, issuer, began))
    return (yield from _begin_direct(setup, issuer, began, target))


def _binding(issuer: Issuer) -> dict[str, str] | None:
    """A DPoP key for the account, where the issuer binds tokens."""
    return PrivateKey.generate("ES256").private_jwk() if binds_tokens(issuer.server) else None


def _begin_direct(setup: Setup, issuer: Issuer, began: Began, redirect_uri: str) -> Flow[BegunDirect]:
    state, verifier = setup.ids.token(32), Secret(setup.ids.token(48))
    now = setup.clock.now()
    row = SignInRow(
        company=began.key.company,
        domain=began.found.domain,
        user=began.key.user,
        account=began.key.account,
        scopes=began.scopes,
        redirect_uri=redirect_uri,
        verifier=verifier.reveal(),
        state=state,
        begun_at=now,
        dpop_jwk=began.dpop_jwk,
    )
    yield from keep(SIGN_IN, state, lambda _: write_row(row))
    request = AuthorizationRequest(
        client_id=setup.identity.client_id,
        redirect_uri=redirect_uri,
        scopes=began.scopes,
        state=state,
        code_challenge=challenge_of(verifier.reveal()),
        resource=(),
        dpop_jkt=None if began.dpop_jwk is None else PrivateKey.read(began.dpop_jwk).public.thumbprint,
    )
    url = authorization_url(issuer.endpoint("authorization"), request)
    return BegunDirect(began, url, redirect_uri, now + setup.limits.sign_in_kept)


def _begin_device(setup: Setup, issuer: Issuer, began: Began) -> Flow[BegunDevice]:
    def build(assertion: Secret) -> Request:
        return device_request(
            issuer.endpoint("device_authorization"),
            client_id=setup.identity.client_id,
            assertion=assertion,
            scopes=began.scopes,
        )

    response = yield from ask_patiently(setup, issuer, build)
    authorization = without_frames(lambda: read_device_response(response))
    server = issuer.server
    check_link(authorization, issuer=server.issuer, protected_resources=server.protected_resources)
    seconds = min(authorization.expires_in, setup.limits.device_wait_most)
    return BegunDevice(began, authorization, setup.clock.now() + seconds)


def complete(setup: Setup, callback: Secret, *, user: str | None = None, state: str | None = None) -> Flow[SignedIn]:
    """The browser came back (4.2). `user` or `state`, when given, is whose sign-in, or which, it has to be.

    Raises SignInUnknown, the ProtocolError that the Company answers, DiscoveryFailed and FetchFailed.
    """
    row = yield from _taken(setup, callback, user, state)
    key = AccountKey(row.company, row.user, row.account)
    try:
        code = without_frames(lambda: _code(callback, row))
    except AccessDenied:
        yield from _note_declined(setup, key, row.domain, row.scopes)
        raise
    outcome = yield from discover(setup, row.domain)
    check_same_issuer(outcome.found, row.company)
    issuer = issuer_of(outcome.found)

    def build(assertion: Secret) -> Request:
        return code_request(
            issuer.endpoint("token"),
            client_id=setup.identity.client_id,
            assertion=assertion,
            code=code,
            verifier=Secret(row.verifier),
            redirect_uri=row.redirect_uri,
        )

    response = yield from ask(setup, issuer, build, _prover(row.dpop_jwk, {}))
    began = Began(outcome.found, key, row.scopes, row.dpop_jwk)
    return (yield from _kept(setup, issuer, began, _tokens(response, began)))


def _code(callback: Secret, row: SignInRow) -> Secret:
    url = callback.reveal().strip()
    return read_authorization_response(url, redirect_uri=row.redirect_uri, issuer=row.company, state=row.state)


def _tokens(response: Response, began: Began) -> TokenResponse:
    return without_frames(lambda: read_token_response(response, requested=began.scopes))


def _taken(setup: Setup, callback: Secret, user: str | None, state: str | None) -> Flow[SignInRow]:
    """The sign-in that a callback belongs to. It is there once: whatever comes of it, it is gone (4.2)."""
    named = state_of(callback)
    check_known(state in (None, named))
    waiting = yield from _waiting(named)
    check_known(waiting is not None)
    if waiting is not None and user is not None:
        check_same_user(waiting, user)
    row = yield from _take(named)
    check_known(row is not None)
    assert row is not None
    check_fresh(row, setup.clock.now(), setup.limits.sign_in_kept)
    return row


def _waiting(state: str) -> Flow[SignInRow | None]:
    value = yield from load(SIGN_IN, state)
    return None if value is None else read_row(SignInRow, value)


def _take(state: str) -> Flow[SignInRow | None]:
    taken: list[SignInRow | None] = []

    def take(value: bytes | None) -> None:
        taken[:] = [None if value is None else read_row(SignInRow, value)]

    yield from keep(SIGN_IN, state, take)
    return taken[0]


def poll(setup: Setup, begun: BegunDevice, nonces: dict[str, str]) -> Flow[SignedIn]:
    """Poll until the User has decided, or it is too late (RFC 8628 3.4, 3.5).

    Raises AccessDenied, ExpiredToken, another ProtocolError as the Company answers, and FetchFailed.
    """
    began, device = begun.began, begun.authorization
    issuer = issuer_of(began.found)
    interval = float(device.interval)

    def build(assertion: Secret) -> Request:
        return device_poll_request(
            issuer.endpoint("token"),
            client_id=setup.identity.client_id,
            assertion=assertion,
            device_code=device.device_code,
        )

    while True:
        if setup.clock.now() + interval >= begun.expires_at:
            raise ExpiredToken("the link was not used in time; begin again", rule="sign-in.device-in-time")
        yield from wait(interval)
        try:
            response = yield from ask(setup, issuer, build, _prover(began.dpop_jwk, nonces))
        except AuthorizationPending:
            continue
        except SlowDown:
            interval += SLOWER
        except RateLimited as error:
            interval = max(interval, float(error.retry_after))
        except FetchFailed as error:
            if error.fault is not FetchFault.UNREACHABLE:
                raise
            interval *= 2  # RFC 8628 3.5: an endpoint that does not answer is asked less often
        except AccessDenied:
            yield from _note_declined(setup, began.key, began.found.domain, began.scopes)
            raise
        else:
            return (yield from _kept(setup, issuer, began, _tokens(response, began)))


def _prover(jwk: dict[str, str] | None, nonces: dict[str, str]) -> Prove | None:
    return None if jwk is None else Prove(PrivateKey.read(jwk), nonces)


def _kept(setup: Setup, issuer: Issuer, began: Began, answer: TokenResponse) -> Flow[SignedIn]:
    """Keep what sign-in returned; the replaced refresh token is revoked after that (4.7)."""
    check_refresh_token(answer)
    return (yield from exclusive(began.key.lock, _replaced(setup, issuer, began, answer)))


def _replaced(setup: Setup, issuer: Issuer, began: Began, answer: TokenResponse) -> Flow[SignedIn]:
    before = yield from stored_account(began.key)
    now = setup.clock.now()
    granted = began.scopes if answer.scope is None else answer.scope
    missing = tuple(scope for scope in began.scopes if scope not in granted)
    goes_on = before is not None and is_in(before)
    declined = () if before is None else before.declined
    fresh = AccountRow(
        company=began.key.company,
        domain=began.found.domain,
        user=began.key.user,
        account=began.key.account,
        state=SIGNED_IN,
        chain=before.chain if before is not None and goes_on else setup.ids.token(),
        signed_in_at=now,
        token_host=host_of(issuer.endpoint("token")),
        revocation_host=host_of(issuer.endpoint("revocation")),
        scopes=granted,
        declined=union([one for one in declined if one not in began.scopes], missing),
        dpop_jwk=began.dpop_jwk,
        unrevoked=() if before is None else left_of(before),
    )
    yield from keep_account(began.key, row_with(fresh, answer, now, requested=began.scopes))
    yield from revoke_left(setup, began.key, issuer, {})
    return SignedIn(
        company_name=began.found.document.organization.name,
        domain=began.found.domain,
        user=began.key.user,
        account=began.key.account,
        scopes=granted,
        missing=missing,
    )


def _note_declined(setup: Setup, key: AccountKey, domain: str, scopes: tuple[str, ...]) -> Flow[None]:
    """Remember what the User declined, so that they are not asked again on their own (4.7). Tokens stay as they are."""
    yield from exclusive(key.lock, _declined(setup, key, domain, scopes))


def _declined(setup: Setup, key: AccountKey, domain: str, scopes: tuple[str, ...]) -> Flow[None]:
    row = yield from stored_account(key)
    if row is None:
        row = AccountRow(
            company=key.company,
            domain=domain,
            user=key.user,
            account=key.account,
            state=DECLINED,
            chain="",
            signed_in_at=setup.clock.now(),
            token_host="",
            revocation_host="",
        )
    refused = scopes if not is_in(row) else tuple(scope for scope in scopes if scope not in row.scopes)
    yield from keep_account(key, replace(row, declined=union(row.declined, refused)))

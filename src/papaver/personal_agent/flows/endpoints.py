"""Requests to the token, revocation and device endpoints: each authenticated afresh, none of them ever redirected.

Every request has a client assertion of its own, addressed to the issuer (4.1), and a DPoP proof when the issuer binds
tokens (4.5). What passes by itself is tried again with the same token: a Company that answered twice knows it (4.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from papaver.jose.keys import PrivateKey
from papaver.oauth.assertions import make_assertion
from papaver.oauth.dpop import make_proof
from papaver.oauth.errors import ProtocolError, UseDpopNonce
from papaver.oauth.metadata import ServerMetadata
from papaver.oauth.tokens import read_error
from papaver.personal_agent.flows.effects import Flow, post, wait
from papaver.personal_agent.setup import Setup
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.errors import Misbehaved, RateLimited
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.fields import FieldError, read_retry_after
from papaver.web.messages import Request, Response
from papaver.web.urls import origin_of

__all__ = [
    "DPOP",
    "Issuer",
    "Prove",
    "ask",
    "ask_patiently",
    "binds_tokens",
    "check_not_redirected",
    "check_offers",
    "note_nonce",
]

T = TypeVar("T")

DPOP: Final = "dpop"
NONCE: Final = "dpop-nonce"
PROOF_ALG: Final = "ES256"

Build = Callable[[Secret], Request]
"""The request, given its client assertion."""


class Prove(NamedTuple):
    """What DPoP proofs are made with: the account's own key, and the nonces that servers gave, by origin."""

    key: PrivateKey
    nonces: dict[str, str]


class Issuer(NamedTuple):
    """Whom a Company's account requests go to, as discovery verified it. `offset` is its clock's, in seconds."""

    server: ServerMetadata
    offset: float = 0.0

    def endpoint(self, name: str) -> str:
        """`token`, `revocation`, `authorization` or `device_authorization`. Raises Misbehaved when there is none."""
        url: str | None = getattr(self.server, f"{name}_endpoint")
        check_offers(name, url)
        return url or ""


@rule("issuer.endpoint-offered")
def check_offers(name: str, url: str | None) -> None:
    """3.2: the issuer's metadata has the endpoint that a grant needs. Raises Misbehaved."""
    if url is None:
        raise Misbehaved(f"the issuer's metadata has no {name}_endpoint", rule="issuer.endpoint-offered")


def binds_tokens(server: ServerMetadata) -> bool:
    """Whether DPoP proofs go with token requests (RFC 9449 5.1, 4.5)."""
    return PROOF_ALG in (server.dpop_signing_alg_values_supported or ())


def without_frames(read: Callable[[], T]) -> T:
    """What `read` finds. Its error has no frames of the reader, whose local variables are what was read."""
    try:
        return read()
    except PapaverError as error:
        failure = error
    failure.__context__ = None
    raise failure.with_traceback(None) from None


def ask(setup: Setup, issuer: Issuer, build: Build, prove: Prove | None = None) -> Flow[Response]:
    """One authenticated request → its successful answer. A nonce that is asked for is sent, once (RFC 9449 8).

    Raises the ProtocolError that the endpoint answers, RateLimited, FetchFailed when it is away, and Misbehaved.
    """
    response = yield from _sent(setup, issuer, build, prove)
    if prove is not None and response.status >= 400 and isinstance(read_error(response), UseDpopNonce):
        response = yield from _sent(setup, issuer, build, prove)
    check_not_redirected(response)
    if response.status < 300:
        return response
    raise _failure(setup, response)


def ask_patiently(setup: Setup, issuer: Issuer, build: Build, prove: Prove | None = None) -> Flow[Response]:
    """`ask`, and again what got no answer, a little later each time: for requests that may be repeated (4.4, 4.6)."""
    attempt, pause = 1, setup.limits.backoff
    while True:
        try:
            return (yield from ask(setup, issuer, build, prove))
        except FetchFailed as error:
            if error.fault is not FetchFault.UNREACHABLE or attempt == setup.limits.token_attempts:
                raise
        yield from wait(min(pause, setup.limits.backoff_most))
        attempt, pause = attempt + 1, pause * 2


def _sent(setup: Setup, issuer: Issuer, build: Build, prove: Prove | None) -> Flow[Response]:
    now = setup.clock.now() + issuer.offset
    assertion = make_assertion(
        setup.identity.signer_of(issuer.server.token_endpoint_auth_signing_alg_values_supported),
        client_id=setup.identity.client_id,
        issuer=issuer.server.issuer,
        now=now,
        jti=setup.ids.token(),
        lifetime=setup.limits.assertion_lifetime,
    )
    request = build(assertion)
    if prove is not None:
        origin = origin_of(request.url)
        proof = make_proof(
            prove.key,
            method=request.method,
            url=request.url,
            now=now,
            jti=setup.ids.token(),
            nonce=prove.nonces.get(origin),
        )
        request = Request(request.method, request.url, request.headers.with_((DPOP, proof.reveal())), request.body)
    response = yield from post(request, setup.limits.token_seconds, setup.limits.token_bytes)
    if prove is not None:
        note_nonce(prove.nonces, request.url, response)
    return response


def note_nonce(nonces: dict[str, str], url: str, response: Response) -> None:
    """Any answer may bring the nonce to use from now on (RFC 9449 8.2)."""
    nonce = response.headers.first(NONCE)
    if nonce:
        nonces[origin_of(url)] = nonce


def _failure(setup: Setup, response: Response) -> ProtocolError | RateLimited | FetchFailed:
    if response.status == 429:
        return RateLimited(_retry_after(setup, response), "the Company's OAuth server asks to wait")
    if response.status >= 500:
        return FetchFailed(
            FetchFault.UNREACHABLE,
            "the Company's OAuth server fails at the moment",
            url=response.url,
            expected="an answer to the token request",
            found=str(response.status),
            remedy="try again later; nothing that is held was given up",
        )
    return read_error(response)


def _retry_after(setup: Setup, response: Response) -> int:
    try:
        return max(1, read_retry_after(response.headers.first("Retry-After") or "", setup.clock.now()))
    except FieldError:
        return 1


@rule("oauth.endpoint-not-redirected")
def check_not_redirected(response: Response) -> None:
    """Section 3: what is sent to an OAuth endpoint is sent nowhere else; a redirect is a fault. Raises Misbehaved."""
    if 300 <= response.status < 400:
        raise Misbehaved(
            "the Company's OAuth endpoint redirects, and credentials follow no redirect",
            rule="oauth.endpoint-not-redirected",
            detail=f"{response.status} at {response.url}",
        )

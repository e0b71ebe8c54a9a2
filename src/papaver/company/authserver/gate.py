"""Who may come in: clients by their assertion (4.1), each address so and so often, each one-time id once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from papaver.company.authserver.settings import IssuerLimits
from papaver.company.clients import Client, Clients
from papaver.company.incoming import Incoming
from papaver.company.limits import check_rate, is_of_one_party, network_of
from papaver.oauth.assertions import AssertionJwt, VerifiedAssertion, read_assertion, verify_assertion
from papaver.oauth.errors import InvalidClient, InvalidDpopProof, InvalidOAuthRequest, ProtocolError
from papaver.oauth.forms import FORM, Form, read_form
from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, GrantStore, Spent
from papaver.ports.system import Clock
from papaver.protocol.errors import InvalidSession
from papaver.protocol.terms import ClientId
from papaver.values.rules import rule

__all__ = [
    "Gate",
    "ProvenClient",
    "check_assertion_once",
    "check_form_type",
    "check_proof_jti_once",
    "settle",
]

R = TypeVar("R")
UNKNOWN_KEY = "assertion.signed-by-jwks-key"


@dataclass(frozen=True, slots=True)
class ProvenClient:
    """A client whose assertion verified. `spent`: its `jti`, which the request's change uses up."""

    id: ClientId
    client: Client
    spent: Spent

    @property
    def name(self) -> str:
        return self.client.metadata.client_name or ""


@rule("assertion.jti-once")
def check_assertion_once(used: tuple[Spent, ...]) -> None:
    """4.1, RFC 7523 3: an assertion is good for one request."""
    if any(one.kind == "assertion" for one in used):
        raise InvalidClient("the client assertion was used before; sign each anew", rule="assertion.jti-once")


@rule("dpop.jti-once")
def check_proof_jti_once(used: tuple[Spent, ...]) -> None:
    """RFC 9449 11.1: a proof is good for one request."""
    if any(one.kind == "dpop" for one in used):
        raise InvalidDpopProof("the DPoP proof was used before; make each anew", rule="dpop.jti-once")


@rule("request.form")
def check_form_type(content_type: str | None) -> None:
    """RFC 6749 appendix B: the parameters are in a form; a page elsewhere cannot pass off text as one."""
    if (content_type or "").partition(";")[0].strip().lower() != FORM:
        raise InvalidOAuthRequest(f"the body has to be {FORM}", rule="request.form")


async def settle(
    store: GrantStore, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R | ProtocolError]]
) -> R:
    """Decide in the store. One-time ids are used up also by a request that fails. Raises what was decided."""

    def decide_once(loaded: GrantLoaded) -> GrantChange[R | ProtocolError]:
        check_assertion_once(loaded.spent)
        check_proof_jti_once(loaded.spent)
        try:
            return decide(loaded)
        except ProtocolError as error:
            return GrantChange(error.with_traceback(None))

    result = await store.apply(keys, decide_once)
    if isinstance(result, ProtocolError):
        raise result
    return result


class Gate:
    """The doors of one issuer."""

    def __init__(self, issuer: str, clients: Clients, clock: Clock, limits: IssuerLimits) -> None:
        self._issuer, self._clients, self._clock, self._limits = issuer, clients, clock, limits
        self._rates = clients.counters.rates("issuer", limits.rates_kept)

    async def form(self, incoming: Incoming) -> Form:
        """The form of a POST. Raises InvalidOAuthRequest, PayloadTooLarge."""
        check_form_type(incoming.headers.first("content-type"))
        return read_form(await incoming.body(self._limits.form_bytes))

    async def prove(self, form: Form, peer: str) -> ProvenClient:
        """The client that sent this form (4.1).

        Raises InvalidClient, RateLimited, TemporarilyUnavailable. What fails counts for its address.
        """
        try:
            jwt = read_assertion(form)
            client = await self.load(jwt.client_id, peer)
            verified, client = await self._verify(jwt, client, peer)
        except InvalidClient:
            self.count_address(peer)
            raise
        client_id = ClientId(jwt.client_id)
        if not self._clients.is_known(client_id):
            await self._clients.proven(client)
        return ProvenClient(client_id, client, Spent(client_id, "assertion", verified.jti, verified.until))

    async def load(self, client_id: str, peer: str) -> Client:
        """A client by its metadata. Raises InvalidClient when it is refused or unknown (4.1, B12)."""
        try:
            return await self._clients.load(ClientId(client_id), peer)
        except InvalidSession as error:
            raise InvalidClient(error.description, rule=error.rule, detail=error.detail) from None

    def count_address(self, peer: str) -> None:
        """Count something that anybody can send. Raises RateLimited.

        An address that many share, such as a proxy's of our own, is not limited: all would pay for one.
        """
        network = network_of(peer)
        if is_of_one_party(network):
            check_rate(self._rates, ("address", network), self._limits.requests_per_address, self._clock.now())

    def count_user_code(self, peer: str) -> None:
        """Count a try of a user code (RFC 8628 5.1). Raises RateLimited."""
        key = ("user code", network_of(peer))
        check_rate(self._rates, key, self._limits.user_codes_per_address, self._clock.now())

    def count_unknown_device(self, client_id: ClientId) -> None:
        """Count a poll with an unknown device code (B43). Raises RateLimited."""
        key = ("device code", client_id)
        check_rate(self._rates, key, self._limits.unknown_device_codes, self._clock.now())

    async def _verify(self, jwt: AssertionJwt, client: Client, peer: str) -> tuple[VerifiedAssertion, Client]:
        try:
            return self._believe(jwt, client), client
        except InvalidClient as error:
            if error.rule != UNKNOWN_KEY or jwt.kid is None or client.keys.find(jwt.kid) is not None:
                raise
            newer = await self._clients.reload(client, peer)
            if newer is None:
                raise
        return self._believe(jwt, newer), newer

    def _believe(self, jwt: AssertionJwt, client: Client) -> VerifiedAssertion:
        limits = self._limits
        return verify_assertion(
            jwt,
            client.keys,
            client_id=client.metadata.client_id,
            issuer=self._issuer,
            now=self._clock.now(),
            accepted=limits.assertion,
            skew=limits.skew,
        )

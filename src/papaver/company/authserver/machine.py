"""The endpoints that Personal Agents call: tokens, revocation, device authorization. Each proves the client first.

/token                 form · client · terms · proof · grant
/revoke                form · client · token
/device_authorization  form · client · terms · codes
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from papaver.company.authserver.codes import Redeeming, decide_code
from papaver.company.authserver.configuration import Configuration
from papaver.company.authserver.devices import Beginning, Polling, decide_begin, decide_poll
from papaver.company.authserver.gate import Gate, ProvenClient, settle
from papaver.company.authserver.issue import ACCESS, REFRESH, Issue, Tokens, derive, successor
from papaver.company.authserver.refresh import Refreshing, decide_refresh
from papaver.company.authserver.revocation import decide_revocation
from papaver.company.authserver.terms import CHECKS, Endpoint, SignInType, Terms, Wanted
from papaver.company.authserver.tickets import CODE, DEVICE, USER_CODE, Asked, Code, Device, key_of, read_ticket
from papaver.company.incoming import Incoming
from papaver.oauth.device import (
    DeviceAuthorization,
    normal_user_code,
    read_device_request,
    user_code_of,
    write_device_response,
)
from papaver.oauth.dpop import Nonces, VerifiedProof, read_proof, verify_proof
from papaver.oauth.errors import InvalidGrant, ServerError
from papaver.oauth.tokens import (
    CodeGrant,
    DeviceGrant,
    RefreshGrant,
    TokenResponse,
    read_revocation_request,
    read_token_request,
    write_token_response,
)
from papaver.ports.grants import GrantKeys, GrantStore, Spent, digest
from papaver.ports.system import Clock, Ids
from papaver.protocol.terms import AccountId
from papaver.values.secret import Secret
from papaver.values.told import told
from papaver.web.messages import Response
from papaver.web.urls import host_of

__all__ = ["Machine", "shown_name"]

TRIES = 5
"""User codes drawn until one is free; with 34 bits the second is hardly ever needed."""


def shown_name(client_id: str, name: str | None) -> str:
    """What a client is called: by itself, in one line; its host when it says nothing."""
    return told(name or "", 100) or host_of(client_id)


@dataclass(frozen=True, slots=True)
class _Request:
    """A token request as far as it is known when a grant is looked at."""

    client: ProvenClient
    proof: VerifiedProof | None
    resources: tuple[str, ...]
    now: float

    @property
    def spent(self) -> tuple[Spent, ...]:
        mine = self.client.spent
        return (
            (mine,) if self.proof is None else (mine, Spent(mine.client_id, "dpop", self.proof.jti, self.proof.until))
        )


class Machine:
    """The three endpoints of one issuer."""

    def __init__(
        self,
        configuration: Configuration,
        terms: Terms,
        gate: Gate,
        grants: GrantStore,
        clock: Clock,
        ids: Ids,
        secret: bytes,
    ) -> None:
        self._configuration, self._terms, self._gate = configuration, terms, gate
        self._grants, self._clock, self._ids = grants, clock, ids
        self._limits = configuration.limits
        self._rotation = derive(secret, "rotation")
        self._nonces = (
            Nonces(derive(secret, "nonces").reveal(), self._limits.dpop_nonce_lifetime)
            if configuration.dpop and configuration.dpop_nonce
            else None
        )

    async def token(self, incoming: Incoming) -> Response:
        """RFC 6749 3.2. Raises ProtocolError, PoppyError."""
        form = await self._gate.form(incoming)
        client = await self._gate.prove(form, incoming.peer)
        asked = read_token_request(form)
        resources = asked.resource
        now = self._clock.now()
        if isinstance(asked, RefreshGrant):
            self._check("refresh", client, None, (), resources)
            request = _Request(client, self._proof(incoming, now), resources, now)
            answer = await self._refresh(request, asked)
        else:
            kind: SignInType = "direct" if isinstance(asked, CodeGrant) else "device"
            self._check("first_tokens", client, kind, (), resources)
            request = _Request(client, self._proof(incoming, now), resources, now)
            answer = await (
                self._code(request, asked) if isinstance(asked, CodeGrant) else self._device(request, asked)
            )
        response = write_token_response(answer)
        if self._nonces is None:
            return response
        return replace(response, headers=response.headers.with_(("dpop-nonce", self._nonces.current(now))))

    async def revoke(self, incoming: Incoming) -> Response:
        """RFC 7009 2. Raises ProtocolError, PoppyError."""
        form = await self._gate.form(incoming)
        client = await self._gate.prove(form, incoming.peer)
        token, _ = read_revocation_request(form)
        hashed = digest(token.reveal())
        found = await self._grants.access(hashed) if token.reveal().startswith(ACCESS) else None
        keys = GrantKeys(
            refresh=None if found is not None else hashed,
            grant=None if found is None else found.grant.id,
            spent=(client.spent,),
        )
        row, now = None if found is None else found.row, self._clock.now()
        await settle(self._grants, keys, lambda loaded: decide_revocation(loaded, client.id, row, now))
        return Response(200)

    async def device_authorization(self, incoming: Incoming) -> Response:
        """RFC 8628 3.1. Raises ProtocolError, PoppyError."""
        form = await self._gate.form(incoming)
        client = await self._gate.prove(form, incoming.peer)
        wanted = read_device_request(form)
        self._check("device_authorization", client, "device", wanted.scopes, wanted.resource)
        asked = Asked(
            client.id,
            shown_name(client.id, client.name),
            self._terms.grantable(client.id, wanted.scopes),
            self._terms.resource(wanted.resource),
        )
        device_code = Secret(self._ids.token(32))
        user_code = await self._begin(client, digest(device_code.reveal()), asked)
        page = f"{self._configuration.root}/device"
        return write_device_response(
            DeviceAuthorization(
                device_code=device_code,
                user_code=user_code,
                verification_uri=page,
                verification_uri_complete=f"{page}?user_code={user_code}",
                expires_in=self._limits.device_code,
                interval=self._limits.poll_interval,
            )
        )

    async def _begin(self, client: ProvenClient, device: str, asked: Asked) -> str:
        expires_at = self._clock.now() + self._limits.device_code
        spent: tuple[Spent, ...] = (client.spent,)
        for _ in range(TRIES):
            user_code = user_code_of(self._ids.secret(32))
            hashed = digest(normal_user_code(user_code))
            ask = Beginning(device, hashed, asked, expires_at, self._limits.poll_interval)
            keys = GrantKeys(tickets=((USER_CODE, hashed),), spent=spent)
            if await settle(self._grants, keys, functools.partial(decide_begin, ask=ask)):
                return user_code
            spent = ()
        raise ServerError(rule="device.user-code-free", detail=f"{TRIES} user codes were taken")

    def _check(
        self,
        endpoint: Endpoint,
        client: ProvenClient,
        kind: SignInType | None,
        scopes: tuple[str, ...],
        resources: tuple[str, ...],
    ) -> None:
        wanted = Wanted(client.id, kind, scopes, resources)
        for check in CHECKS[endpoint]:
            check(wanted, self._terms)

    def _proof(self, incoming: Incoming, now: float) -> VerifiedProof | None:
        """The request's DPoP proof (RFC 9449 5), where tokens may be bound. Raises InvalidDpopProof, UseDpopNonce."""
        values = incoming.headers.all("dpop")
        if not values or not self._configuration.dpop:
            return None
        return verify_proof(
            read_proof(values),
            method="POST",
            url=self._configuration.token_endpoint,
            now=now,
            window=self._limits.dpop_window,
            nonces=self._nonces,
        )

    def _issue(self, request: _Request, refresh: Secret, resource: str | None) -> Issue:
        bound = request.proof is not None and resource not in self._terms.bearer_only
        return Issue(
            now=request.now,
            tokens=Tokens.of(Secret(ACCESS + self._ids.token(32)), refresh),
            lifetime=self._limits.access_token,
            resource=resource,
            jkt=request.proof.jkt if bound and request.proof is not None else None,
        )

    async def _refresh(self, request: _Request, asked: RefreshGrant) -> TokenResponse:
        presented = asked.refresh_token.reveal()
        resource = self._terms.resource(request.resources)
        ask = Refreshing(
            client_id=request.client.id,
            presented=digest(presented),
            scopes=asked.scope,
            issue=self._issue(request, successor(self._rotation, presented), resource),
            grace=self._limits.rotation_grace,
        )
        keys = GrantKeys(refresh=ask.presented, spent=request.spent)
        return await settle(self._grants, keys, functools.partial(decide_refresh, ask=ask))

    async def _code(self, request: _Request, asked: CodeGrant) -> TokenResponse:
        key = key_of(CODE, asked.code.reveal())
        found = read_ticket(Code, await self._grants.ticket(key))
        if found is None:
            raise InvalidGrant(rule="code.known", detail="unknown code")
        resource = self._terms.resource(request.resources) if request.resources else found.asked.resource
        ask = Redeeming(
            client_id=request.client.id,
            code=key[1],
            verifier=asked.code_verifier,
            redirect_uri=asked.redirect_uri,
            grant_id=_grant_id(key[1]),
            issue=self._issue(request, Secret(REFRESH + self._ids.token(32)), resource),
            jkt=None if request.proof is None else request.proof.jkt,
            grant_lifetime=self._limits.refresh_token,
            reuse_noticed=self._limits.code_reuse_noticed,
        )
        keys = GrantKeys(tickets=(key,), grant=ask.grant_id, account=AccountId(found.account), spent=request.spent)
        return await settle(self._grants, keys, functools.partial(decide_code, ask=ask))

    async def _device(self, request: _Request, asked: DeviceGrant) -> TokenResponse:
        key = key_of(DEVICE, asked.device_code.reveal())
        found = read_ticket(Device, await self._grants.ticket(key))
        if found is None:
            self._gate.count_unknown_device(request.client.id)
            raise InvalidGrant(rule="device.known", detail="unknown device code")
        resource = self._terms.resource(request.resources) if request.resources else found.asked.resource
        ask = Polling(
            client_id=request.client.id,
            device=key[1],
            grant_id=_grant_id(key[1]),
            issue=self._issue(request, Secret(REFRESH + self._ids.token(32)), resource),
            grant_lifetime=self._limits.refresh_token,
            slower=self._limits.poll_slower,
            tolerance=self._limits.poll_tolerance,
        )
        account = None if found.account is None else AccountId(found.account)
        keys = GrantKeys(tickets=(key,), account=account, spent=request.spent)
        return await settle(self._grants, keys, functools.partial(decide_poll, ask=ask))


def _grant_id(hashed: str) -> str:
    """The id of the grant that a code becomes: whoever redeems the code again finds it by that."""
    return digest(f"grant {hashed}")

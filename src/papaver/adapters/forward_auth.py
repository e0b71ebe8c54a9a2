"""Forward authentication: a proxy asks, for each request, whether its Session verifies, before it lets it through.

nginx's `auth_request` and Traefik's `forwardAuth` send a request of their own, with another method and URL. The
original's come in `X-Forwarded-Method` and `X-Forwarded-Uri`, which are believed from the proxies named here and from
nobody else (B22). The host and scheme are always those of the Company's `base_url`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import quote

from papaver.adapters.asgi import Receive, Scope, Send, incoming_of, send_response
from papaver.adapters.guards import check_signed_in
from papaver.company.app import Company
from papaver.company.incoming import Incoming
from papaver.protocol.errors import ConfigurationError, InvalidSession, PoppyError
from papaver.protocol.session import VerifiedSession
from papaver.values.rules import rule
from papaver.web.messages import Headers, Response

__all__ = ["ForwardAuth", "check_trusted_proxy"]

Networks = Sequence[IPv4Network | IPv6Network]


@rule("forward-auth.trusted-proxy")
def check_trusted_proxy(peer: str, trusted: Networks) -> None:
    """What a stranger says about another request is nothing to verify a Session against."""
    try:
        address = ip_address(peer)
    except ValueError:
        address = None
    if address is None or not any(address in network for network in trusted):
        raise InvalidSession(
            "this address may not ask about other requests", rule="forward-auth.trusted-proxy", detail=f"peer {peer!r}"
        )


class ForwardAuth:
    """An ASGI app for the proxy's question: 204 with `Poppy-Client-Id`, `Poppy-User-Id` and `Poppy-Sid`, or a refusal.

    Of a signed-in request the answer has `Poppy-Account-Id` and `Poppy-Scopes` too. The proxy has to set all of them on
    what it lets through, and to drop what the caller sent under these names.

    `scopes`  what each request needs of the User's account; none: signed out is enough
    `trusted_proxies`  addresses or networks whose `X-Forwarded-Method` and `X-Forwarded-Uri` are believed. Mount it
    where only they can reach it. Raises ConfigurationError for what is none.
    """

    def __init__(self, company: Company, *, trusted_proxies: Sequence[str], scopes: Sequence[str] = ()) -> None:
        self._company, self._scopes = company, tuple(scopes)
        if scopes:
            check_signed_in(company, scopes)
        try:
            self._trusted = [ip_network(text) for text in trusted_proxies]
        except ValueError as error:
            raise ConfigurationError(
                f"trusted_proxies has something that is no address or network: {error}", rule="forward-auth.networks"
            ) from None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        incoming = incoming_of(scope, receive)
        try:
            response = _let_through(await self._verify(incoming))
        except PoppyError as error:
            response = self._company.api_error(error, incoming)
        await send_response(response, send, head=scope["method"] == "HEAD")

    async def _verify(self, incoming: Incoming) -> VerifiedSession:
        check_trusted_proxy(incoming.peer, self._trusted)
        methods = incoming.headers.all("x-forwarded-method")
        targets = incoming.headers.all("x-forwarded-uri")
        if len(methods) != 1 or len(targets) != 1 or not targets[0].startswith("/"):
            raise InvalidSession(
                "the proxy has to name the original request, once, in X-Forwarded-Method and X-Forwarded-Uri",
                rule="forward-auth.original-request",
                detail=f"methods {methods}, targets {len(targets)}",
            )
        path, _, query = targets[0].partition("?")
        original = replace(incoming, method=methods[0], path=path, query=query)
        if self._scopes:
            return await self._company.verify_signed_in(original, *self._scopes)
        return await self._company.verify_api(original)


def _let_through(session: VerifiedSession) -> Response:
    """User IDs may hold any character; percent-encoding keeps them within what a field may carry."""
    named = [
        ("poppy-client-id", quote(session.client_id, safe="/:?&=%")),
        ("poppy-user-id", quote(session.user_id, safe="")),
        ("poppy-sid", session.sid),
    ]
    if session.account_id is not None:
        named.append(("poppy-account-id", quote(session.account_id, safe="")))
        named.append(("poppy-scopes", " ".join(sorted(session.scopes))))
    return Response(204, Headers([*named, ("cache-control", "no-store")]))

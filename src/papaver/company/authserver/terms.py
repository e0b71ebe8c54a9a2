"""What an issuer offers to whom, and each request's clauses about it, laid out by endpoint.

sign-in type enabled · client allowed · scopes known · scopes allowed · one resource · resource served
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from papaver.oauth.errors import InvalidScope, InvalidTarget, UnauthorizedClient, UnsupportedGrantType
from papaver.oauth.metadata import fold_host
from papaver.values.rules import rule

__all__ = [
    "CHECKS",
    "Endpoint",
    "SignInType",
    "Terms",
    "Wanted",
    "check_client_may_sign_in",
    "check_grant_enabled",
    "check_one_resource",
    "check_resource_served",
    "check_scopes_allowed",
    "check_scopes_known",
    "check_sign_in_enabled",
]

SignInType = Literal["direct", "device"]
Endpoint = Literal["authorize", "device_authorization", "first_tokens", "refresh"]


@dataclass(frozen=True, slots=True)
class Terms:
    """`resources`: each served resource with its host in lowercase → itself, or None where the default token is meant.

    `sign_in`      the sign-in types that there are          `disabled`       no sign-in starts (3.2)
    `bearer_only`  services whose tokens are never bound     `scope_allowed`  whether a client may get a scope at all
    """

    sign_in: frozenset[SignInType]
    disabled: bool
    scopes: frozenset[str]
    resources: Mapping[str, str | None]
    bearer_only: frozenset[str]
    sign_in_allowed: Callable[[str, SignInType], bool]
    scope_allowed: Callable[[str, str], bool]

    def resource(self, asked: Sequence[str]) -> str | None:
        """The one service that a token is asked for; None for the default token. After the checks."""
        return self.resources[fold_host(asked[0])] if asked else None

    def grantable(self, client_id: str, scopes: Collection[str]) -> tuple[str, ...]:
        """Of these scopes those that this client may get (4.7)."""
        return tuple(scope for scope in scopes if self.scope_allowed(client_id, scope))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request wants, as far as the terms say something about it. `type` None: a refresh."""

    client_id: str
    type: SignInType | None
    scopes: tuple[str, ...]
    resources: tuple[str, ...]


@rule("terms.grant-enabled")
def check_grant_enabled(wanted: Wanted, terms: Terms) -> None:
    """RFC 6749 5.2: the token endpoint knows the grants of the sign-in types that there are (C43)."""
    if wanted.type is not None and wanted.type not in terms.sign_in:
        raise UnsupportedGrantType(rule="terms.grant-enabled", detail=f"{wanted.type} is off")


@rule("terms.sign-in-enabled")
def check_sign_in_enabled(wanted: Wanted, terms: Terms) -> None:
    """3.2: a Company that turned sign-in off starts none; what was signed in before goes on."""
    if terms.disabled:
        raise UnauthorizedClient("sign-in is turned off here for Personal Agents", rule="terms.sign-in-enabled")


@rule("terms.client-may-sign-in")
def check_client_may_sign_in(wanted: Wanted, terms: Terms) -> None:
    """4.1: a client may be refused sign-in, or one sign-in type, and goes on signed out."""
    if wanted.type is not None and not terms.sign_in_allowed(wanted.client_id, wanted.type):
        raise UnauthorizedClient(rule="terms.client-may-sign-in", detail=f"{wanted.client_id}, {wanted.type}")


@rule("terms.scopes-known")
def check_scopes_known(wanted: Wanted, terms: Terms) -> None:
    """4.7: each scope is one of this Company's."""
    unknown = [scope for scope in wanted.scopes if scope not in terms.scopes]
    if unknown:
        raise InvalidScope(
            "a scope is unknown here", rule="terms.scopes-known", detail=f"unknown: {' '.join(unknown)[:300]}"
        )


@rule("terms.scopes-allowed")
def check_scopes_allowed(wanted: Wanted, terms: Terms) -> None:
    """4.7, RFC 6749 3.3: some of what is asked for is for this client; what is not is left out of the grant."""
    if not terms.grantable(wanted.client_id, wanted.scopes):
        raise InvalidScope(
            "this client may have none of these scopes", rule="terms.scopes-allowed", detail=wanted.client_id
        )


@rule("terms.one-resource")
def check_one_resource(wanted: Wanted, terms: Terms) -> None:
    """4.5: a token is for one service, or for all that have no tokens of their own."""
    if len(wanted.resources) > 1:
        raise InvalidTarget("ask for one resource at a time", rule="terms.one-resource")


@rule("terms.resource-served")
def check_resource_served(wanted: Wanted, terms: Terms) -> None:
    """4.5: `invalid_target` for a resource that this Company does not serve (readings 11)."""
    for resource in wanted.resources:
        if fold_host(resource) not in terms.resources:
            raise InvalidTarget(rule="terms.resource-served", detail=f"{resource[:300]} is not served")


CHECKS: Final[Mapping[Endpoint, tuple[Callable[[Wanted, Terms], None], ...]]] = {
    "authorize": (
        check_sign_in_enabled,
        check_client_may_sign_in,
        check_scopes_known,
        check_scopes_allowed,
        check_one_resource,
        check_resource_served,
    ),
    "device_authorization": (
        check_sign_in_enabled,
        check_client_may_sign_in,
        check_scopes_known,
        check_scopes_allowed,
        check_one_resource,
        check_resource_served,
    ),
    "first_tokens": (
        check_grant_enabled,
        check_sign_in_enabled,
        check_client_may_sign_in,
        check_one_resource,
        check_resource_served,
    ),
    "refresh": (check_one_resource, check_resource_served),
}
"""What is checked where, in this order."""

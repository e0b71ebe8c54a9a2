"""Domains that share one issuer are one Company: what their documents have to say alike (3.2).

No single domain can see this; whoever runs them compares what they publish before it is published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from papaver.protocol.company import CompanyDocument
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule

__all__ = ["Domain", "check_one_organization", "check_same_issuer", "check_same_scopes", "group_faults"]


@dataclass(frozen=True, slots=True)
class Domain:
    """What one domain of a group publishes, and the issuer that a discovery of it finds; None when it finds none."""

    document: CompanyDocument
    issuer: str | None


@rule("group.same-issuer")
def check_same_issuer(first: Domain, other: Domain) -> None:
    """3.2: every domain of the group leads to the one issuer, character for character."""
    if other.issuer != first.issuer:
        raise ConfigurationError(
            f"{_name(first)} leads to the issuer {first.issuer}, {_name(other)} to {other.issuer}: to Personal Agents "
            "they are two Companies",
            rule="group.same-issuer",
        )


@rule("group.one-organization")
def check_one_organization(first: Domain, other: Domain) -> None:
    """3.2: one issuer stands for one Company, so its domains carry one organization's name."""
    names = first.document.organization.name, other.document.organization.name
    if names[0] != names[1]:
        raise ConfigurationError(
            f"{_name(first)} is {names[0]!r} and {_name(other)} is {names[1]!r}, under one issuer; a provider gives "
            "each Company an issuer of its own",
            rule="group.one-organization",
        )


@rule("group.same-scopes")
def check_same_scopes(first: Domain, other: Domain) -> None:
    """3.2: a scope that both domains have is described, and hinted at, alike. Each may have scopes of its own."""
    mine, theirs = first.document.auth, other.document.auth
    for scope in mine.scopes.keys() & theirs.scopes.keys():
        if mine.scopes[scope] != theirs.scopes[scope] or mine.scope_hints.get(scope) != theirs.scope_hints.get(scope):
            raise ConfigurationError(
                f"{_name(first)} and {_name(other)} describe or hint at the scope {scope!r} differently",
                rule="group.same-scopes",
            )


CHECKS: tuple[Callable[[Domain, Domain], None], ...] = (check_same_issuer, check_one_organization, check_same_scopes)


def group_faults(group: Sequence[Domain]) -> tuple[ConfigurationError, ...]:
    """What the domains of one group say differently, each compared with the first; `rule` and both values in each."""
    faults: list[ConfigurationError] = []
    for other in group[1:]:
        for check in CHECKS:
            try:
                check(group[0], other)
            except ConfigurationError as error:
                faults.append(error)
    return tuple(faults)


def _name(domain: Domain) -> str:
    return domain.document.organization.domain

"""Domains that share an issuer: what they have to say alike, and what each may say for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.company import Auth, Changes, CompanyDocument, Organization, ScopeHint, Web
from papaver.protocol.company_group import (
    Domain,
    check_one_organization,
    check_same_issuer,
    check_same_scopes,
    group_faults,
)
from papaver.protocol.dialect import Version
from papaver.protocol.errors import ConfigurationError

ISSUER = "https://auth.example.com"
SCOPES = {"orders": "See your orders", "carts": "See your carts"}
HINTS = {"orders": ScopeHint(Changes.NONE, personal_data=True)}


def domain(host: str, issuer: str | None = ISSUER, name: str = "Example", auth: Auth | None = None) -> Domain:
    """What one domain publishes."""
    document = CompanyDocument(
        protocol_version=Version(0, 4),
        organization=Organization(name, host),
        auth=auth or Auth(scopes=SCOPES, scope_hints=HINTS),
        web=Web(),
    )
    return Domain(document, issuer)


SHOP = domain("shop.example")
STORE = domain("store.example")


@pytest.mark.requirement("3.2-25")
@pytest.mark.parametrize("issuer", [None, "https://auth.example.com/", "https://AUTH.example.com"])
def test_every_domain_of_a_group_leads_to_one_issuer(issuer: str | None) -> None:
    """Character for character, or they are two Companies."""
    check_same_issuer(SHOP, STORE)
    with pytest.raises(ConfigurationError) as caught:
        check_same_issuer(SHOP, domain("store.example", issuer))
    assert caught.value.rule == "group.same-issuer"
    assert "shop.example" in caught.value.description
    assert str(issuer) in caught.value.description


@pytest.mark.requirement("3.2-31")
def test_one_issuer_stands_for_one_company() -> None:
    """Two names under one issuer are a provider that mixes its Companies."""
    check_one_organization(SHOP, STORE)
    with pytest.raises(ConfigurationError) as caught:
        check_one_organization(SHOP, domain("store.example", name="Other Company"))
    assert caught.value.rule == "group.one-organization"
    assert "'Other Company'" in caught.value.description


@pytest.mark.requirement("3.2-26", "3.2-27")
@pytest.mark.parametrize(
    "auth",
    [
        Auth(scopes={**SCOPES, "orders": "See and change your orders"}, scope_hints=HINTS),
        Auth(scopes=SCOPES),
        Auth(scopes=SCOPES, scope_hints={"orders": ScopeHint(Changes.REVERSIBLE, personal_data=True)}),
    ],
)
def test_a_scope_is_described_and_hinted_at_alike(auth: Auth) -> None:
    """A User who granted it on one domain has granted the same on the other."""
    check_same_scopes(SHOP, STORE)
    with pytest.raises(ConfigurationError) as caught:
        check_same_scopes(SHOP, domain("store.example", auth=auth))
    assert caught.value.rule == "group.same-scopes"
    assert "'orders'" in caught.value.description


@pytest.mark.requirement("3.2-28")
def test_a_domain_may_have_scopes_and_offers_of_its_own() -> None:
    """Only what both have is compared."""
    other = domain("store.example", auth=Auth(scopes={"orders": SCOPES["orders"], "loans": "…"}, scope_hints=HINTS))
    bare = replace(other, document=replace(other.document, auth=Auth(), web=None))
    assert group_faults([SHOP, other, bare]) == ()


@pytest.mark.requirement("3.2-25", "3.2-27", "3.2-31")
def test_everything_that_differs_is_found() -> None:
    """One fault for each domain and rule, beside the first domain."""
    odd = domain("odd.example", None, "Odd", Auth(scopes={"orders": "Something"}))
    faults = group_faults([SHOP, STORE, odd])
    assert [fault.rule for fault in faults] == ["group.same-issuer", "group.one-organization", "group.same-scopes"]
    assert all("shop.example" in fault.description and "odd.example" in fault.description for fault in faults)
    assert group_faults([SHOP]) == group_faults([]) == ()

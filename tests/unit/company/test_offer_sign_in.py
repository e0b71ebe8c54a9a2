"""What a Company with an issuer offers, and what contradicts itself (3.1, 3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company import Company, Scope
from papaver.company.offer import Offer
from papaver.protocol.errors import ConfigurationError
from papaver.stores.memory import MemoryStore
from papaver.testing.issuers import HeldIssuer
from papaver.versions import DIALECTS

ISSUER = "https://auth.example.com"
GOOD: dict[str, Any] = {"domain": "example.com", "name": "Example", "base_url": "https://api.example.com/poppy"}
WITH: dict[str, Any] = {**GOOD, "issuer": ISSUER}
READ = Scope("orders:read", "See your orders", "none", True)


def document(**options: Any) -> Any:
    """`poppy.json` of such a Company, as it is written."""
    return Offer(**{**WITH, **options}).documents()["/.well-known/poppy.json"]


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "scopes without an issuer": ({"issuer": None, "scopes": [READ]}, "offer.needs-issuer"),
    "sign-in turned off without an issuer": ({"issuer": None, "sign_in_disabled": True}, "offer.needs-issuer"),
    "domains without an issuer": ({"issuer": None, "domains": ["example.no"]}, "offer.needs-issuer"),
    "services without an issuer": ({"issuer": None, "own_tokens": ["https://a.example/x"]}, "offer.needs-issuer"),
    "servers without an issuer": ({"issuer": None, "authorization_servers": [ISSUER]}, "offer.needs-issuer"),
    "an issuer that was removed": ({"issuer_removed": True}, "offer.needs-issuer"),
    "a domain twice": ({"domains": ["example.com"]}, "offer.domains-distinct"),
    "an odd domain": ({"domains": ["Example.no"]}, "offer.domain-is-a-name"),
    "an unknown access": ({"access": "admin"}, "offer.access"),
    "access to no conversations": ({"access": "signed_in", "conversations": False, "website": True}, "offer.access"),
    "an http issuer": ({"issuer": "http://auth.example.com"}, "offer.issuer"),
    "an issuer with a query": ({"issuer": f"{ISSUER}?x"}, "offer.issuer"),
    "a service that is none": ({"own_tokens": ["https://example.com"]}, "offer.own-tokens"),
    "a scope twice": ({"scopes": [READ, READ]}, "offer.scopes-distinct"),
}


@pytest.mark.requirement("papaver-72")
@pytest.mark.parametrize("fault", CONTRADICTIONS)
def test_c2_what_contradicts_itself_is_an_error_at_construction(fault: str) -> None:
    """Each with the rule that it breaks."""
    wrong, rule = CONTRADICTIONS[fault]
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == rule):
        Offer(**{**WITH, **wrong})


@pytest.mark.requirement("3.2-01")
def test_sign_in_needs_an_issuer() -> None:
    """There is no other way to offer it."""
    with pytest.raises(ConfigurationError, match="sign_in=", check=lambda error: error.rule == "offer.needs-issuer"):
        Company(store=MemoryStore(), scopes=[READ], **GOOD)


@pytest.mark.requirement("3.2-53")
def test_signed_in_access_needs_an_issuer() -> None:
    """Nobody could use it."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "offer.signed-in-needs-issuer"):
        Offer(**GOOD, access="signed_in")


@pytest.mark.requirement("3.2-20", "3.2-54")
def test_signed_in_access_and_disabled_sign_in_contradict_each_other() -> None:
    """A Personal Agent could never start."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "offer.signed-in-needs-issuer"):
        Offer(**WITH, access="signed_in", sign_in_disabled=True)


@pytest.mark.requirement("3.1-11", "3.1-13")
@pytest.mark.parametrize("listed", [["https://other.example"], [f"{ISSUER}/"], [ISSUER, ISSUER]])
def test_b37_the_servers_listed_have_the_issuer_among_them_exactly(listed: list[str]) -> None:
    """A trailing slash more is another server."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "offer.lists-issuer"):
        Offer(**WITH, authorization_servers=listed)


@pytest.mark.requirement("3.1-10")
def test_of_several_servers_the_document_names_the_issuer() -> None:
    """The one that Personal Agents use."""
    said = document(authorization_servers=["https://staff.example", ISSUER])
    assert said["auth"]["issuer"] == ISSUER


@pytest.mark.requirement("3.1-12")
@pytest.mark.parametrize("listed", [[], [ISSUER]])
def test_one_server_needs_no_naming(listed: list[str]) -> None:
    """It is left out."""
    assert "issuer" not in document(authorization_servers=listed).get("auth", {})


@pytest.mark.requirement("3.1-14")
def test_disabled_sign_in_is_said_only_when_it_is() -> None:
    """The identifier stays the issuer."""
    assert "auth" not in document()
    assert document(sign_in_disabled=True)["auth"] == {"disabled": True}
    company = Company(store=MemoryStore(), sign_in=HeldIssuer(), sign_in_disabled=True, **GOOD)
    assert company.id == ISSUER


@pytest.mark.requirement("3.1-15", "3.1-16", "3.1-17")
def test_scopes_and_hints_are_published_by_name() -> None:
    """Each scope with its description; hints for those that have any."""
    auth = document(scopes=[READ, Scope("profile", "See who you are")])["auth"]
    assert auth["scopes"] == {"orders:read": "See your orders", "profile": "See who you are"}
    assert auth["scope_hints"] == {"orders:read": {"changes": "none", "personal_data": True}}


@pytest.mark.requirement("4.7-06")
def test_a_hint_is_said_of_the_scope_and_describes_its_worst_action() -> None:
    """The Company says it once for each scope, whichever documents describe the scope."""
    auth = document(scopes=[Scope("orders:write", "Change your orders", "irreversible", True)])["auth"]
    assert auth["scope_hints"] == {"orders:write": {"changes": "irreversible", "personal_data": True}}


@pytest.mark.requirement("3.2-50")
@pytest.mark.parametrize("access", ["session", "signed_in"])
def test_access_is_published(access: str) -> None:
    """ "session" is what its absence says."""
    (entry,) = document(access=access)["agent"]["protocols"]
    assert entry.get("access", "session") == access


def test_each_domain_has_its_own_document() -> None:
    """Alike but for the domain."""
    offer = Offer(**WITH, domains=["example.no"], scopes=[READ])
    one, other = (offer.documents(domain)["/.well-known/poppy.json"] for domain in ("example.com", "example.no"))
    assert (one["organization"], other["organization"]) == (
        {"name": "Example", "domain": "example.com"},
        {"name": "Example", "domain": "example.no"},
    )
    assert {**one, "organization": 0} == {**other, "organization": 0}
    assert offer.protected_resources == ("https://example.com", "https://example.no")
    assert offer.all_hosts == {"example.com", "example.no", "api.example.com", "auth.example.com"}


@pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/", "https://auth.example.com/shop-a"])
def test_b37_the_identifier_is_the_issuer_character_for_character(issuer: str) -> None:
    """With or without a slash at the end."""
    company = Company(store=MemoryStore(), sign_in=HeldIssuer(issuer), **GOOD)
    assert (company.id, company.offer.listed_issuers) == (issuer, (issuer,))


def test_every_version_has_such_documents() -> None:
    """The served ones, on each domain."""
    offer = Offer(**WITH, domains=["example.no"], protocols=[str(version) for version in DIALECTS])
    assert offer.documents("example.no").keys() == offer.documents().keys()

"""What an external issuer's metadata lacks: each member by its clause, with both values and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company.issuer_faults import issuer_faults

ISSUER = "https://auth.example.com"
WHOLE: dict[str, object] = {
    "issuer": ISSUER,
    "protected_resources": ["https://example.com", "https://API.example.com/orders"],
    "token_endpoint": f"{ISSUER}/token",
    "revocation_endpoint": f"{ISSUER}/revoke",
    "authorization_endpoint": f"{ISSUER}/authorize",
    "grant_types_supported": ["authorization_code", "refresh_token"],
}
RESOURCES = ("https://example.com", "https://api.example.com/orders")


def faults(*left_out: str, **replaced: Any) -> list[tuple[str, str, str]]:
    """Rule, expected and found of each fault of such metadata."""
    document = {name: value for name, value in {**WHOLE, **replaced}.items() if name not in left_out}
    found = issuer_faults(document, ISSUER, RESOURCES)
    assert all(error.remedy for error in found)
    return [(error.rule, error.expected, error.found) for error in found]


def test_what_is_whole_has_no_fault() -> None:
    """Hosts are compared ignoring case."""
    assert faults() == []


@pytest.mark.requirement("papaver-79")
@pytest.mark.parametrize("member", ["issuer", "protected_resources", "token_endpoint", "revocation_endpoint"])
def test_each_missing_member_is_named(member: str) -> None:
    """And nothing else is wrong because of it."""
    assert faults(member) == [("issuer.metadata-complete", member, "(none)")]


def test_all_faults_are_told_at_once() -> None:
    """So that nobody has to start again for each."""
    assert len(faults("token_endpoint", "revocation_endpoint", issuer=f"{ISSUER}/", protected_resources=["x"])) == 5


@pytest.mark.requirement("papaver-79")
def test_b37_the_slash_at_the_end_is_named() -> None:
    """Exact is exact; the reader is told what to look at."""
    (error,) = issuer_faults({**WHOLE, "issuer": f"{ISSUER}/"}, ISSUER, RESOURCES)
    assert (error.rule, error.expected, error.found) == ("issuer.named-exactly", ISSUER, f"{ISSUER}/")
    assert "slash" in error.description
    (other,) = issuer_faults({**WHOLE, "issuer": "https://other.example"}, ISSUER, RESOURCES)
    assert "slash" not in other.description


@pytest.mark.requirement("papaver-79")
def test_a_resource_that_is_not_listed_is_named() -> None:
    """With what is listed instead; a slash more is another resource."""
    assert faults(protected_resources=["https://example.com/", "https://api.example.com/orders"]) == [
        ("issuer.lists-resource", "https://example.com", "https://example.com/, https://api.example.com/orders")
    ]

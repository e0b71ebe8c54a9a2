"""The sample of a Company with sign-in does what its page says."""

from __future__ import annotations

from docs_src.company_sign_in import app, company


def test_two_domains_are_one_company_and_each_has_its_document() -> None:
    """Its identifier is the issuer."""
    assert company.id == "https://auth.shop.example"
    assert company.offer.protected_resources == ("https://shop.example", "https://shop.no")


def test_the_scopes_are_in_the_apps_description() -> None:
    """Of the route that needs one, and not of the one that does not."""
    document = app.openapi()
    assert document["paths"]["/orders"]["get"]["security"] == [{"poppy-shop.example": ["orders:read"]}]
    assert "security" not in document["paths"]["/products"]["get"]
    (flow,) = document["components"]["securitySchemes"]["poppy-shop.example"]["flows"].values()
    assert flow["scopes"]["orders:read"] == "See your orders"

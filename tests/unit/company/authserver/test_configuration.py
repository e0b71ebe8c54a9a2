"""What an embedded issuer's configuration may be refused for (3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company import EmbeddedIssuer
from papaver.company.authserver.configuration import check_bearer_only
from papaver.company.authserver.running import ROUTES, check_pages
from papaver.oauth.drafts import CIMD_DRAFT
from papaver.protocol.errors import ConfigurationError

PAGE = "https://www.example.com/sign-in"


@pytest.mark.requirement("papaver-50")
@pytest.mark.parametrize(
    "issuer",
    [
        "http://auth.example.com",
        "auth.example.com",
        "https://AUTH.example.com",
        "https://auth.example.com?x",
        "https://auth.example.com#x",
        "https://auth.example.com//a",
        "https://auth.example.com/%61",
        "",
    ],
)
def test_an_issuer_that_two_sides_could_write_in_two_ways_is_refused(issuer: str) -> None:
    """It is compared character for character everywhere."""
    with pytest.raises(ConfigurationError) as error:
        EmbeddedIssuer(issuer, sign_in_page=PAGE)
    assert error.value.rule == "issuer.identifier"


@pytest.mark.requirement("papaver-50")
@pytest.mark.parametrize("page", ["http://www.example.com/", "//evil.example/", "sign-in", "/sign-in#x", ""])
def test_a_sign_in_page_is_https_or_a_path(page: str) -> None:
    """A browser with a sign-in in progress is sent nowhere else."""
    with pytest.raises(ConfigurationError) as error:
        EmbeddedIssuer("https://auth.example.com", sign_in_page=page)
    assert error.value.rule == "issuer.sign-in-page"


@pytest.mark.requirement("papaver-50")
def test_an_issuer_offers_some_sign_in_and_has_pages() -> None:
    """Else it would serve nobody, or fail at the first User."""
    with pytest.raises(ConfigurationError) as error:
        EmbeddedIssuer("https://auth.example.com", sign_in_page="/sign-in", direct=False, device=False)
    assert error.value.rule == "issuer.some-sign-in"
    with pytest.raises(ConfigurationError) as error:
        check_pages(None)
    assert error.value.rule == "issuer.pages"


@pytest.mark.requirement("papaver-60")
def test_only_services_with_tokens_of_their_own_are_bearer_only() -> None:
    """A typing error would silently bind their tokens."""
    service = "https://api.example.com/orders"
    check_bearer_only([service], [service])
    with pytest.raises(ConfigurationError) as error:
        check_bearer_only([service + "/"], [service])
    assert error.value.rule == "issuer.bearer-only"


@pytest.mark.requirement("papaver-55")
def test_c63_only_what_agents_call_goes_without_a_form_token() -> None:
    """The table says which paths these are."""
    machines = {path for path, route in ROUTES.items() if route.kind == "machine"}
    assert machines == {"/token", "/revoke", "/device_authorization"}
    assert {path for path, route in ROUTES.items() if route.kind == "entry"} == {"/authorize"}


def test_an_issuer_says_where_its_endpoints_are() -> None:
    """For the app's own OpenAPI description."""
    options: dict[str, Any] = {"sign_in_page": "/sign-in", "dpop": False}
    issuer = EmbeddedIssuer("https://auth.example.com/shop/", **options)
    assert issuer.authorization_endpoint == "https://auth.example.com/shop/authorize"
    assert issuer.token_endpoint == "https://auth.example.com/shop/token"
    assert (issuer.dpop, issuer.shows_pages) == (False, True)


@pytest.mark.requirement("papaver-65")
def test_the_draft_of_client_documents_is_acknowledged_by_its_name() -> None:
    """An update that follows another draft stops at start, and not at somebody's sign-in."""
    assert EmbeddedIssuer("https://auth.example.com", sign_in_page=PAGE, client_documents=CIMD_DRAFT).issuer
    another = CIMD_DRAFT.replace("-02", "-03")
    with pytest.raises(ConfigurationError) as error:
        EmbeddedIssuer("https://auth.example.com", sign_in_page=PAGE, client_documents=another)
    assert error.value.rule == "issuer.client-documents"
    assert CIMD_DRAFT in error.value.description
    assert another in error.value.description

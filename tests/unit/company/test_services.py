"""Services with tokens of their own: which one a URL belongs to, and what is none."""

from __future__ import annotations

import pytest

from papaver.company.services import Services, check_own_tokens
from papaver.protocol.errors import ConfigurationError

DOMAIN = "https://example.com"
API = "https://api.example.com"


@pytest.mark.requirement("papaver-77", "ca-18")
@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/orders", "/orders"),
        ("/orders/", "/orders"),
        ("/orders/1/lines", "/orders"),
        ("/orders/archive/2", "/orders/archive"),
        ("/orders2", None),
        ("/order", None),
        ("/", None),
        ("/%6Frders/1", "/orders"),
        ("/%6frders%2F1", "/orders"),
        ("/x/../orders/1", "/orders"),
    ],
)
def test_the_service_is_the_longest_path_of_whole_segments(path: str, service: str | None) -> None:
    """However it is escaped: whoever routes the request decodes it, too."""
    services = Services([f"{API}/orders", f"{API}/orders/archive"])
    assert services.find(API + path) == (None if service is None else API + service)


def test_a_service_is_on_its_own_host() -> None:
    """And a whole host may be one."""
    services = Services([API, "https://mcp.example.com/mcp/"])
    assert services.find("https://other.example/orders") is None
    assert services.find(f"{API}/anything") == API
    assert services.find("https://mcp.example.com/mcp") == "https://mcp.example.com/mcp/"
    assert Services([]).find("no URL at all") is None


@pytest.mark.requirement("papaver-70")
@pytest.mark.parametrize(
    "own",
    [
        ["http://api.example.com/orders"],
        ["api.example.com"],
        [f"{API}/orders?x=1"],
        [f"{API}/orders#x"],
        [f"{API}/%6Frders"],
        [DOMAIN],
        [f"{DOMAIN}/"],
        [f"{API}/orders", f"{API}/orders"],
        [f"{API}/orders", f"{API}/orders/"],
    ],
)
def test_what_is_no_service_is_refused(own: list[str]) -> None:
    """Another scheme, more than a place, a domain's own URL, and two whose metadata would be one."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "offer.own-tokens"):
        check_own_tokens(own, [DOMAIN])


def test_services_beside_each_other_are_fine() -> None:
    """One below another, too."""
    check_own_tokens([f"{API}/orders", f"{API}/orders/archive", "https://mcp.example.com"], [DOMAIN])

"""What a Company offers, as configured: everything that cannot work is refused when it is built (C2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from papaver.company import Company, CompanyLimits
from papaver.company.offer import Offer
from papaver.protocol.company import POPPY, CompanyAgent, ConversationProtocol, check_offer
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import Retirement
from papaver.stores.memory import MemoryStore

GOOD: dict[str, Any] = {"domain": "example.com", "name": "Example", "base_url": "https://api.example.com/poppy"}
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": " "}, "offer.name"),
    "http": ({"base_url": "http://api.example.com/poppy"}, "offer.base-url"),
    "no URL": ({"base_url": "api.example.com"}, "offer.base-url"),
    "a slash at the end": ({"base_url": "https://api.example.com/"}, "offer.base-url"),
    "a query": ({"base_url": "https://api.example.com/poppy?x=1"}, "offer.base-url"),
    "a fragment": ({"base_url": "https://api.example.com/poppy#x"}, "offer.base-url"),
    "another path stripped": ({"local_path": "/other"}, "offer.local-path"),
    "half a segment stripped": ({"local_path": "poppy"}, "offer.local-path"),
    "capitals": ({"domain": "Example.com"}, "offer.domain-is-a-name"),
    "a port": ({"domain": "example.com:8443"}, "offer.domain-is-a-name"),
    "an address": ({"domain": "192.0.2.7"}, "offer.domain-is-a-name"),
    "nothing offered": ({"conversations": False}, "offer.one-channel"),
    "an http logo": ({"logo_uri": "http://example.com/logo.png"}, "offer.https"),
    "an unknown version": ({"protocols": ("0.3",)}, "offer.served-versions"),
    "no version": ({"protocols": ()}, "offer.served-versions"),
    "a version twice": ({"protocols": ("0.4", "0.4")}, "offer.served-versions"),
    "no number": ({"protocols": ("latest",)}, "offer.served-versions"),
    "the end of what is not served": ({"retirements": {"0.3": Retirement(sunset=1.0)}}, "offer.retirements"),
    "an end before the warning": ({"retirements": {"0.4": Retirement(2.0, 1.0)}}, "offer.retirements"),
    "no store": ({"store": None}, "configuration.choices"),
    "a path as store": ({"store": "poppy.db"}, "configuration.choices"),
    "a mistyped policy": ({"accept": "allow"}, "configuration.choices"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.requirement("papaver-11")
def test_c2_a_company_assembled_wrongly_is_an_error_at_construction(fault: str) -> None:
    """Not an answer of its own at run time; the sentence says what was expected."""
    wrong, rule = FAULTS[fault]
    settings: dict[str, Any] = {"store": MemoryStore(), **GOOD, **wrong}
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == rule):
        Company(**settings)


@pytest.mark.parametrize("end", ["/", "?x=1", "#x"])
@pytest.mark.requirement("papaver-18")
def test_an_endpoint_that_is_not_bare_is_not_published(end: str) -> None:
    """Whoever builds the document: routes are appended to it as it is."""
    good = Offer(**GOOD)
    agent = CompanyAgent((ConversationProtocol(POPPY, good.endpoint + end),))
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "offer.endpoint-bare"):
        check_offer(replace(good.document(good.versions[0]), agent=agent), None)


@pytest.mark.requirement("3.1-06", "3.1-09")
def test_what_may_be_absent() -> None:
    """Logo, sign-in, APIs, website."""
    company = Company(store=MemoryStore(), limits=CompanyLimits(), **GOOD)
    document = company.offer.document(company.offer.versions[0])
    assert (document.organization.logo_uri, document.auth.issuer, document.apis, document.web) == (None, None, (), None)


@pytest.mark.parametrize(
    ("base_url", "local_path", "path", "app_url"),
    [
        ("https://a.example", None, "", "https://a.example"),
        ("https://a.example/poppy", None, "/poppy", "https://a.example"),
        ("https://a.example/svc2/x", "/x", "/x", "https://a.example/svc2"),
        ("https://a.example/svc2", "", "", "https://a.example/svc2"),
        ("https://a.example:8443/x/y", "/x/y", "/x/y", "https://a.example:8443"),
    ],
)
def test_b21_a_stripped_prefix_is_part_of_every_public_url(
    base_url: str, local_path: str | None, path: str, app_url: str
) -> None:
    """`local_path` is what the app sees of it; the rest is the proxy's."""
    offer = Offer(domain="example.com", name="Example", base_url=base_url, local_path=local_path)
    assert (offer.path, offer.app_url, offer.endpoint) == (path, app_url, f"{base_url}/conversations")


def test_two_handlers_are_one_too_many() -> None:
    """And one is too many where no conversations are offered."""
    company = Company(store=MemoryStore(), **GOOD)

    @company.conversation
    async def answer(turn: object) -> str:
        return "Hi"

    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.one-handler"):
        company.conversation(answer)
    silent = Company(store=MemoryStore(), conversations=False, website=True, **GOOD)
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.one-handler"):
        silent.conversation(answer)

"""Which service a request is for, and so which token it takes."""

from __future__ import annotations

import pytest

from papaver.personal_agent.services import Service, check_service_resource, service_at
from papaver.protocol.company import Api, CompanyAgent, CompanyDocument, ConversationProtocol, Organization
from papaver.protocol.destinations import Destination
from papaver.protocol.dialect import Version
from papaver.protocol.errors import Misbehaved

ENDPOINT = "https://api.shop.example/talk"
MCP = "https://api.shop.example/talk/mcp"
DESCRIPTION = "https://shop.example/openapi.json"
DOCUMENT = CompanyDocument(
    Organization("Shop", "shop.example"),
    Version(0, 4),
    agent=CompanyAgent(
        (ConversationProtocol("other", "https://other.example"), ConversationProtocol("poppy", ENDPOINT))
    ),
    apis=(Api("mcp", MCP, "Tools"), Api("openapi", DESCRIPTION, "Orders")),
)
ORDERS = Service(
    "https://api.shop.example", (Destination("https://api.shop.example", "/orders/{id}"),), described_at=DESCRIPTION
)


@pytest.mark.parametrize(
    ("url", "service"),
    [
        (ENDPOINT, ENDPOINT),
        (f"{ENDPOINT}/cnv_1/events?wait=5", ENDPOINT),
        (f"{ENDPOINT}ative", None),
        (MCP, MCP),
        ("https://api.shop.example/orders/1", "https://api.shop.example"),
        ("https://shop.example/feedback", None),
        ("https://other.example", None),
    ],
)
def test_a_request_belongs_to_the_nearest_service(url: str, service: str | None) -> None:
    """The conversation endpoint and what is below it, an MCP server, a server of a description; else none."""
    found = service_at(DOCUMENT, (ORDERS,), url, "GET")
    assert (None if found is None else found.url) == service
    assert found is None or found.own_token is (url == MCP)


def test_a_company_without_channels_has_no_service() -> None:
    """Whatever the URL."""
    assert service_at(CompanyDocument(Organization("Shop", "shop.example"), Version(0, 4)), (), ENDPOINT, "GET") is None


def test_a_service_names_itself_or_the_domain() -> None:
    """And nobody else (readings 11)."""
    check_service_resource(ENDPOINT, ENDPOINT, "https://shop.example")
    check_service_resource("https://shop.example", ENDPOINT, "https://shop.example")
    with pytest.raises(Misbehaved) as caught:
        check_service_resource(MCP, ENDPOINT, "https://shop.example")
    assert caught.value.rule == "service.resource-is-its-own"

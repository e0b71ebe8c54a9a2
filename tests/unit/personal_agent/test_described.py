"""What no description makes a destination, and whether every description was had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.oauth.metadata import ServerMetadata
from papaver.personal_agent.described import DescribedApi, Descriptions, never_signed
from papaver.personal_agent.live import destinations_of
from papaver.protocol.company import Api
from papaver.protocol.destinations import Destination
from papaver.protocol.openapi import InvalidDescription
from tests.house.agent_world import DOMAIN, World

AUTH = f"https://auth.{DOMAIN}"
API = Api("openapi", f"https://{DOMAIN}/openapi.json", "Orders")


@pytest.mark.requirement("papaver-104")
def test_oauth_s_endpoints_and_discovery_are_never_signed() -> None:
    """Whatever a description says about their host (5.2); endpoints that the issuer lacks are none."""
    found = World().live().found
    server = ServerMetadata(AUTH, (f"https://{DOMAIN}",), f"{AUTH}/token", f"{AUTH}/revoke", f"{AUTH}/authorize")
    urls = list(never_signed(replace(found, issuer=AUTH, server=server)))
    assert urls == [
        f"https://{DOMAIN}/.well-known/poppy.json",
        f"{AUTH}/.well-known/oauth-authorization-server",
        f"{AUTH}/authorize",
        f"{AUTH}/token",
        f"{AUTH}/revoke",
    ]
    everything = (Destination(AUTH, "/{a}"),)
    allowed = replace(destinations_of(replace(found, server=server)), described=everything)
    assert allowed.accept(f"{AUTH}/orders", "POST")
    assert not allowed.accept(f"{AUTH}/token", "POST")


def test_descriptions_are_complete_when_none_failed() -> None:
    """One that failed is asked for again later."""
    document = World().live().found.document
    assert Descriptions(document, 0, (DescribedApi(API),)).complete
    assert not Descriptions(document, 0, (DescribedApi(API, failure=InvalidDescription()),)).complete

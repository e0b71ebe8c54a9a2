"""The OpenAPI descriptions of a Company, as a Session knows them, and what none of them makes a destination (5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from papaver.protocol.company import Api, CompanyDocument
from papaver.protocol.discovery import Discovered
from papaver.protocol.openapi import OpenApi
from papaver.values.errors import PapaverError
from papaver.web.urls import authorization_server_metadata_url

__all__ = ["OPENAPI", "DescribedApi", "Descriptions", "never_signed"]

OPENAPI = "openapi"
"""The type of section 7 whose `url` is a description."""


@dataclass(frozen=True, slots=True)
class DescribedApi:
    """One listed OpenAPI API. Either `description`, or `failure`: why it could not be had or read."""

    api: Api
    description: OpenApi | None = None
    failure: PapaverError | None = None


@dataclass(frozen=True, slots=True)
class Descriptions:
    """What was loaded for one document of a Company. `loaded_at` in monotonic seconds."""

    document: CompanyDocument
    loaded_at: float
    apis: tuple[DescribedApi, ...]

    @property
    def complete(self) -> bool:
        """Whether every description was had and read."""
        return all(one.failure is None for one in self.apis)


def never_signed(found: Discovered) -> Iterator[str]:
    """URLs beside those of the document that get no Session header: discovery documents and OAuth's endpoints (5.2)."""
    yield found.url
    server = found.server
    if server is None:
        return
    yield authorization_server_metadata_url(server.issuer)
    for endpoint in (
        server.authorization_endpoint,
        server.token_endpoint,
        server.revocation_endpoint,
        server.device_authorization_endpoint,
    ):
        if endpoint is not None:
            yield endpoint

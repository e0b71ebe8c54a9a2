"""`papaver company check`: what an external issuer publishes, fetched as a Personal Agent fetches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from papaver.company.external_issuer import ExternalIssuer
from papaver.company.issuer_faults import issuer_faults
from papaver.ports.system import Fetcher, FetchPolicy
from papaver.protocol.errors import ConfigurationError
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers
from papaver.web.urls import authorization_server_metadata_url

if TYPE_CHECKING:
    from papaver.adapters.httpx2.resolve_map import NetworkSettings
    from papaver.company.app import Company

__all__ = ["faults_of_issuer", "issuer_findings"]


async def issuer_findings(company: Company, network: NetworkSettings) -> tuple[PapaverError, ...]:
    """What is wrong with the metadata of a Company's external issuer; empty for any other Company."""
    if not isinstance(company.sign_in, ExternalIssuer):
        return ()
    from papaver.adapters.httpx2.fetcher import GuardedFetcher

    async with GuardedFetcher(network) as fetcher:
        return await faults_of_issuer(company.sign_in, company.offer.protected_resources, fetcher)


async def faults_of_issuer(
    issuer: ExternalIssuer, resources: tuple[str, ...], fetcher: Fetcher
) -> tuple[PapaverError, ...]:
    """As `issuer_findings`: of the metadata at its RFC 8414 URL, or of what the Company would serve there."""
    url = issuer.sources[0] if issuer.publish_metadata else authorization_server_metadata_url(issuer.issuer)
    try:
        response = await fetcher.fetch(url, FetchPolicy(), Headers([("accept", "application/json")]))
        document = strict_json.loads(response.body) if response.status == 200 else None
    except PapaverError as error:
        return (error,)
    if not isinstance(document, dict):
        missing = ConfigurationError(f"{url} is no issuer's metadata", rule="issuer.metadata-there")
        missing.compare(
            "200 with a JSON object",
            str(response.status) if response.status != 200 else "200 with something else",
            "publish it there; or let ExternalIssuer(…, publish_metadata=True) serve it (docs/external-issuer.md)",
        )
        return (missing,)
    members = cast("dict[str, object]", document)
    if issuer.publish_metadata:
        members = issuer.completed(members, resources) | {"issuer": members.get("issuer", issuer.issuer)}
    return issuer_faults(members, issuer.issuer, resources)

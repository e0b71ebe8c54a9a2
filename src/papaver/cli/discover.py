"""`papaver discover`: every check of section 3 with its rule id, then what the Company offers."""

from __future__ import annotations

import asyncio

import click

from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.protocol.company import CompanyDocument
from papaver.protocol.discovery_values import CheckResult, Checks
from papaver.protocol.errors import DiscoveryFailed

__all__ = ["channels", "discover"]


@command("discover", example="papaver discover shop.example")
@click.argument("domain")
def discover(run: Run, domain: str) -> None:
    """Find the Company of DOMAIN past every cache, show each check, and what the Company offers."""
    asyncio.run(_discover(run, domain))


async def _discover(run: Run, domain: str) -> None:
    from papaver.cli.agent import agent_or_nobody

    checks = Checks()
    async with agent_or_nobody(run) as agent:
        try:
            company = await agent.discover(domain, uncached=True, checks=checks)
        except DiscoveryFailed:
            _show(run, checks.made)
            raise
    offered = channels(company.document)
    run.line(
        domain=company.domain,
        identifier=company.identifier,
        issuer=company.issuer,
        version=str(company.version),
        channels=offered,
        checks=[{"rule": one.rule, "ok": one.ok, "detail": one.detail} for one in company.checks],
        name=company.name,
        identifier_before=company.identifier_before,
    )
    _show(run, company.checks)
    run.say()
    run.say("{name} ({domain})", name=company.name, domain=company.domain)
    run.say("  identifier  {value}", value=company.identifier)
    run.say("  issuer      {value}", value=company.issuer or "none: nobody signs in")
    run.say("  version     {value}", value=company.version)
    for one in offered:
        detail = one.get("description") or one.get("access") or ""
        run.say("  {type:<10}  {url}  {detail}", type=one["type"], url=one.get("url", ""), detail=detail)
    if company.identifier_before is not None:
        run.note(f"this domain was another Company before: {company.identifier_before}")


def channels(document: CompanyDocument) -> list[dict[str, str]]:
    """What the Company offers: conversations, APIs, its website."""
    protocols = document.agent.protocols if document.agent else ()
    offered = [{"type": one.type, "url": one.endpoint, "access": one.access.value} for one in protocols]
    offered += [{"type": one.type, "url": one.url, "description": one.description} for one in document.apis]
    if document.web is not None:
        offered.append({"type": "web"})
    return offered


def _show(run: Run, checks: tuple[CheckResult, ...]) -> None:
    for one in checks:
        run.say("{mark}  {rule:<36} {detail}", mark="ok  " if one.ok else "note", rule=one.rule, detail=one.detail)

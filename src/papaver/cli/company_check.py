"""`papaver company check`: is the configuration right, and what would be published."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import find, the_company
from papaver.cli.issuer_check import issuer_findings
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.company.app import Company
from papaver.company.documents import RESOURCE_METADATA, resource_metadata
from papaver.protocol.errors import ConfigurationError

__all__ = ["check"]


@command("check", example="papaver company check --config papaver.toml --out public")
@company_options
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write the documents here, too.")
def check(run: Run, config: Path | None, target: str | None, out: Path | None) -> None:
    """Validate the configuration, and print what the Company would publish on its domain.

    --out writes the same files for static hosting, one folder for each domain when there are several. The metadata of
    an external issuer is fetched, and what it lacks is named. Nothing is started and no database is made.
    """
    found = find(config, target)
    if not found.companies:
        the_company(found)
    for company in found.companies:
        company.check_complete()
    for company in found.companies:
        offer = company.offer
        _warn_of_store(run, company)
        run.say("{name}: {identifier}", name=offer.name, identifier=company.id)
        run.say("  conversations at {url}", url=offer.endpoint if offer.conversations else "(none offered)")
        for domain in offer.all_domains:
            folder = out if out is None or not offer.domains else out / domain
            _publish(run, company, domain, folder)
    findings = [error for company in found.companies for error in asyncio.run(issuer_findings(company, run.network))]
    for error in findings[:-1]:
        run.fail(error)
    if findings:
        raise findings[-1]


def _publish(run: Run, company: Company, domain: str, out: Path | None) -> None:
    """Print what one domain serves, and write it when there is somewhere to."""
    documents = dict(company.offer.documents(domain))
    metadata = resource_metadata(company.offer, domain)
    if metadata is not None:
        documents[RESOURCE_METADATA] = metadata
    for path, document in documents.items():
        url = f"https://{domain}{path}"
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        run.line(url=url, document=document)
        run.say()
        run.say("{url}", url=url)
        if not run.json:
            click.echo(text, nl=False)
        if out is not None:
            run.note(f"written: {_write(out, path, text)}")


def _warn_of_store(run: Run, company: Company) -> None:
    """A folder that is not there is made when the Company starts: right, or a path that was meant otherwise."""
    path = getattr(company.store, "path", None)
    if isinstance(path, Path) and not path.absolute().parent.is_dir():
        run.note(f"the store's folder {path.absolute().parent} is not there; serving makes it")


def _write(out: Path, path: str, text: str) -> Path:
    file = out / path.lstrip("/")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.new")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}", rule="check.out") from error
    return file

"""`papaver company check` of a Company with an external issuer, and of one with several domains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from papaver.cli.issuer_check import faults_of_issuer
from papaver.cli.main import cli
from papaver.company import ExternalIssuer
from papaver.ports.system import FetchFault
from papaver.testing.company import Documents
from papaver.values.strict_json import dumps
from tests.house.second_module import module_named

pytestmark = pytest.mark.anyio

ISSUER = "https://auth.example.com"
METADATA = f"{ISSUER}/.well-known/oauth-authorization-server"
OPENID = f"{ISSUER}/.well-known/openid-configuration"
USUAL: dict[str, Any] = {
    "issuer": ISSUER,
    "token_endpoint": f"{ISSUER}/token",
    "revocation_endpoint": f"{ISSUER}/revoke",
    "authorization_endpoint": f"{ISSUER}/authorize",
    "grant_types_supported": ["authorization_code", "refresh_token"],
}
COMPANY = """
from papaver import Company, ExternalIssuer, SqliteStore
company = Company(domain="shop.example", domains=["shop.no"], name="Shop", base_url="https://shop.example/poppy",
                  store=SqliteStore("s.db"), conversations=False, website=True,
                  sign_in=ExternalIssuer("https://auth.shop.example"))
"""


async def rules(issuer: ExternalIssuer, documents: Documents) -> list[str]:
    return [error.rule for error in await faults_of_issuer(issuer, ("https://example.com",), documents)]


async def test_an_issuer_that_cannot_list_the_domain_is_completed_by_the_company() -> None:
    """At its own URL a member is missing; what the Company would serve there has it."""
    documents = Documents()
    documents.bodies = {METADATA: dumps(USUAL), OPENID: dumps(USUAL)}
    assert await rules(ExternalIssuer(ISSUER), documents) == ["issuer.metadata-complete"]
    assert await rules(ExternalIssuer(ISSUER, publish_metadata=True), documents) == []
    documents.bodies[OPENID] = dumps({**USUAL, "issuer": f"{ISSUER}/"})
    assert await rules(ExternalIssuer(ISSUER, publish_metadata=True), documents) == ["issuer.named-exactly"]


async def test_metadata_that_is_not_there_is_told() -> None:
    """With the status, or that it is no metadata; and why the issuer cannot be asked at all."""
    documents = Documents()
    issuer = ExternalIssuer(ISSUER)
    (error,) = await faults_of_issuer(issuer, (), documents)
    assert (error.rule, error.expected, error.found) == ("issuer.metadata-there", "200 with a JSON object", "404")
    documents.bodies[METADATA] = b"[]"
    (error,) = await faults_of_issuer(issuer, (), documents)
    assert error.found == "200 with something else"
    documents.failing[METADATA] = FetchFault.UNREACHABLE
    (error,) = await faults_of_issuer(issuer, (), documents)
    assert error.code == "fetch_failed"


def test_each_domain_is_shown_and_written_with_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One folder each; that the issuer cannot be asked is a failure, told last."""
    monkeypatch.chdir(tmp_path)
    module = module_named(tmp_path, COMPANY)
    options = ("--out", "public", "--json", "--resolve", "auth.shop.example:443=127.0.0.1:1")
    done = CliRunner().invoke(cli, ["company", "check", f"{module}:company", *options])
    assert done.exit_code == 1
    *documents, failure = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["url"] for line in documents] == [
        f"https://{domain}/.well-known/{name}"
        for domain in ("shop.example", "shop.no")
        for name in ("poppy.json", "oauth-protected-resource")
    ]
    assert failure["error"] == "fetch_failed"
    written = json.loads((tmp_path / "public" / "shop.no" / ".well-known" / "oauth-protected-resource").read_text())
    assert written == {"resource": "https://shop.no", "authorization_servers": ["https://auth.shop.example"]}

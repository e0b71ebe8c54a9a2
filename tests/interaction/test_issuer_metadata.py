"""What an embedded issuer publishes about itself, and which requests are its own (3.2, RFC 8414)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.metadata import read_server_metadata
from papaver.testing.issuer import ISSUER, issuer_bench

pytestmark = pytest.mark.anyio
WELL_KNOWN = "/.well-known/oauth-authorization-server"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.mark.requirement("3.2-33", "3.2-38", "3.2-48")
@pytest.mark.parametrize(
    ("issuer", "url"),
    [
        ("https://auth.example.com", f"https://auth.example.com{WELL_KNOWN}"),
        ("https://auth.example.com/", f"https://auth.example.com{WELL_KNOWN}"),
        ("https://auth.example.com/shop-a", f"https://auth.example.com{WELL_KNOWN}/shop-a"),
        ("https://auth.example.com/shop-a/", f"https://auth.example.com{WELL_KNOWN}/shop-a"),
    ],
)
async def test_the_metadata_is_where_rfc_8414_puts_it_and_names_the_issuer_exactly(issuer: str, url: str) -> None:
    """With and without a path or a slash at its end; endpoints are below it, with one slash."""
    async with issuer_bench(issuer=issuer) as bench:
        answer = await bench.send("GET", url)
        assert answer.status == 200
        document = answer.json
        assert document["issuer"] == issuer
        assert document["token_endpoint"] == issuer.rstrip("/") + "/token"
        assert document["authorization_response_iss_parameter_supported"] is True
        assert document["client_id_metadata_document_supported"] is True
        assert document["code_challenge_methods_supported"] == ["S256"]
        assert document["token_endpoint_auth_methods_supported"] == ["private_key_jwt"]
        read_server_metadata(document)
        assert (await bench.sign_in())["token_type"] == "Bearer"
        assert (await bench.send("POST", url)).status == 405


@pytest.mark.requirement("3.2-34", "3.2-35")
async def test_protected_resources_list_each_domain_and_each_service_with_tokens_of_its_own() -> None:
    """Domains have no path, port or slash; services are listed as their metadata names them."""
    options: dict[str, Any] = {
        "company_domains": ["example.co.uk"],
        "company_own_tokens": ["https://api.example.com/orders"],
    }
    async with issuer_bench(**options) as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert document["protected_resources"] == [
            "https://example.com",
            "https://example.co.uk",
            "https://api.example.com/orders",
        ]


@pytest.mark.requirement("3.2-41", "3.2-42", "4-04")
@pytest.mark.parametrize(
    ("direct", "device", "grants"),
    [
        (True, True, ["refresh_token", "authorization_code", DEVICE]),
        (True, False, ["refresh_token", "authorization_code"]),
        (False, True, ["refresh_token", DEVICE]),
    ],
)
async def test_c43_a_sign_in_type_that_is_off_has_no_grant_and_no_endpoint(
    direct: bool, device: bool, grants: list[str]
) -> None:
    """Neither in the metadata nor at the paths; its grant is unsupported at the token endpoint."""
    async with issuer_bench(direct=direct, device=device) as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert document["grant_types_supported"] == grants
        assert ("authorization_endpoint" in document) is direct
        assert ("device_authorization_endpoint" in document) is device
        assert ((await bench.send("GET", bench.authorize_url())).status == 404) is not direct
        assert ((await bench.begin_device()).status == 404) is not device
        assert ((await bench.send("GET", ISSUER + "/device")).status == 404) is not device
        code = await bench.redeem("nothing")
        assert code.error == ("invalid_grant" if direct else "unsupported_grant_type")
        poll = await bench.poll("nothing")
        assert poll.error == ("invalid_grant" if device else "unsupported_grant_type")


@pytest.mark.requirement("3.2-44", "3.2-45")
async def test_both_sign_in_types_have_their_endpoints_in_the_metadata() -> None:
    """And they answer."""
    async with issuer_bench() as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert document["authorization_endpoint"] == ISSUER + "/authorize"
        assert document["device_authorization_endpoint"] == ISSUER + "/device_authorization"
        assert (await bench.send("GET", bench.authorize_url())).status == 303
        assert (await bench.begin_device()).status == 200


@pytest.mark.requirement("3.2-39", "3.2-40")
async def test_tokens_come_from_the_token_endpoint_and_are_revoked_at_the_revocation_endpoint() -> None:
    """Both are where the metadata says."""
    async with issuer_bench() as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert document["token_endpoint"] == ISSUER + "/token"
        assert document["revocation_endpoint"] == ISSUER + "/revoke"
        tokens = await bench.sign_in()
        assert (await bench.revoke(tokens["refresh_token"])).status == 200
        assert (await bench.refresh(tokens["refresh_token"])).error == "invalid_grant"


@pytest.mark.requirement("3.2-46", "4.7-02")
async def test_scopes_are_listed_but_for_those_that_are_kept_out() -> None:
    """An unlisted scope can be asked for all the same."""
    async with issuer_bench(unlisted_scopes=["partner"]) as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert document["scopes_supported"] == ["orders:read", "orders:write", "addresses"]
        assert (await bench.sign_in(scope="partner"))["scope"] == "partner"


@pytest.mark.requirement("4.5-02")
async def test_without_dpop_the_metadata_does_not_speak_of_it() -> None:
    """A Company that does not bind tokens says nothing."""
    async with issuer_bench(dpop=False) as bench:
        document = (await bench.send("GET", ISSUER + WELL_KNOWN)).json
        assert "dpop_signing_alg_values_supported" not in document


@pytest.mark.requirement("papaver-50")
async def test_b18_a_forged_host_changes_no_url() -> None:
    """Requests are matched by host; URLs come from the configuration, whatever the request says."""
    async with issuer_bench(company_internal_hosts=["internal"]) as bench:
        answer = await bench.send("GET", ISSUER + WELL_KNOWN, host="evil.example")
        assert answer.status == 404
        forged = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
        answer = await bench.send("GET", ISSUER + WELL_KNOWN, headers=forged, host="internal:8080")
        assert answer.status == 200
        assert "evil" not in answer.response.body.decode()
        sent = await bench.send("GET", bench.authorize_url(), headers=forged, host="internal")
        assert (sent.headers.first("location") or "").startswith("https://www.example.com/sign-in?interaction=")
        refused = await bench.send("GET", bench.authorize_url(scope=None), headers=forged, host="internal")
        assert "iss=https%3A%2F%2Fauth.example.com" in (refused.headers.first("location") or "")


@pytest.mark.requirement("papaver-50")
async def test_other_paths_and_methods_are_not_the_issuers() -> None:
    """404 outside, 405 with Allow inside."""
    async with issuer_bench() as bench:
        assert (await bench.send("GET", ISSUER + "/elsewhere")).status == 404
        answer = await bench.send("GET", ISSUER + "/token")
        assert answer.status == 405
        assert answer.headers.first("allow") == "POST"
        assert (await bench.send("GET", ISSUER + "/assets/style.css")).status == 200
        assert (await bench.send("GET", ISSUER + "/assets/nothing.css")).status == 404
        assert (await bench.send("POST", ISSUER + "/assets/style.css")).status == 405

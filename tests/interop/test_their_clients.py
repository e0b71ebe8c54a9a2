"""Clients that others wrote at our issuer: openid-client, Authlib, and the MCP project's conformance run."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from papaver.adapters.keyfile import KeyFile
from tests.house import npm
from tests.house.account_shop import ME, AccountShop, account_shop
from tests.interop.node import SCRIPTS, node, node_environment

ISSUER = "https://auth.shop.example"
CALLBACK = "http://127.0.0.1:7/callback"
IN_NODE = pytest.mark.needs("node", "npm")


@pytest.fixture(name="shop", scope="module")
def make_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountShop]:
    """A Company with an issuer of its own, served over TLS by a real server."""
    with account_shop(tmp_path_factory.mktemp("clients")) as shop:
        yield shop


class Run:
    """A process of somebody else's code, which says what it finds in lines of JSON and asks for the User's browser."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def found(self) -> dict[str, Any]:
        """The next thing; {} at the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {}
        return found

    def line(self, start: str) -> str:
        """The next line that begins so."""
        assert self._process.stdout is not None
        return next(line.strip() for line in self._process.stdout if line.startswith(start))

    def ended(self) -> int:
        """Its exit status, once it has said everything."""
        assert self._process.stdout is not None
        self._process.stdout.read()
        return self._process.wait(60)

    def tell(self, line: str) -> None:
        """Where the browser ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def rest(self) -> dict[str, dict[str, Any]]:
        """Everything else by its step; the process has ended well then."""
        steps = {one["step"]: one for one in iter(self.found, {})}
        assert self._process.wait(30) == 0, steps
        return steps


@contextmanager
def running(shop: AccountShop, command: list[str]) -> Generator[Run]:
    """For as long as the block lasts."""
    env = node_environment({"auth.shop.example": shop.port}, shop.ca_file)
    with (shop.folder / "their.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
        )
    with process:
        try:
            yield Run(process)
        finally:
            process.kill()


def task(shop: AccountShop, **more: object) -> str:
    """What `openid_client.mjs` is told."""
    key = KeyFile(shop.folder / "home" / "keys.json").current
    told = {"issuer": ISSUER, "client_id": ME, "jwk": key.private_jwk(), "kid": key.kid, "redirect_uri": CALLBACK}
    return json.dumps({**told, "scope": "orders:read", **more})


@IN_NODE
@pytest.mark.parametrize("dpop", [False, True])
@pytest.mark.parametrize("resource", [None, "https://shop.example"])
def test_openid_client_signs_in_directly(shop: AccountShop, dpop: bool, resource: str | None) -> None:
    """Discovery, PKCE, `iss`, private_key_jwt as it is by default, refresh, revocation; with DPoP, with `resource`."""
    script = node(SCRIPTS / "openid_client.mjs", task(shop, dpop=dpop, resource=resource))
    with running(shop, script) as run:
        assert run.found()["issuer"] == ISSUER
        run.tell(shop.browser().approve(run.found()["url"], stop=CALLBACK).url)
        steps = run.rest()
    assert steps["mixed_up"]["error"] == "OAUTH_INVALID_RESPONSE"
    assert steps["tokens"] == {
        "step": "tokens",
        "type": "dpop" if dpop else "bearer",
        "scope": "orders:read",
        "expires_in": steps["tokens"]["expires_in"],
        "refreshable": True,
        "audience": ISSUER,
    }
    check_refusals(steps, dpop)


@IN_NODE
def test_openid_client_signs_in_by_device(shop: AccountShop) -> None:
    """The device flow, polled as it polls, with DPoP."""
    with running(shop, node(SCRIPTS / "openid_client.mjs", task(shop, device=True, dpop=True))) as run:
        assert "ES256" in run.found()["dpop"]
        shown, browser = run.found(), shop.browser()
        consent = browser.send(browser.open(shown["url"]), {"user_code": shown["user_code"]})
        browser.send(consent, {"decision": "approve"})
        run.tell("approved")
        steps = run.rest()
    assert steps["tokens"]["type"] == "dpop"
    check_refusals(steps, True)


def check_refusals(steps: dict[str, dict[str, Any]], dpop: bool) -> None:
    """What a refresh must not do: another resource, an assertion for an endpoint or for a list, after the end."""
    assert steps["refreshed"]["refreshable"]
    if dpop:
        # A client that authenticates may leave the proof out: its refresh token is bound to itself (RFC 9449 5).
        assert steps.pop("without_proof")["answer"]["token_type"] == "bearer"
    errors = {name: one["error"] for name, one in steps.items() if "error" in one and name != "mixed_up"}
    assert errors == {
        "other_resource": "invalid_target",
        "endpoint_as_audience": "invalid_client",
        "audience_as_list": "invalid_client",
        "revoked": "invalid_grant",
    }


@IN_NODE
def test_the_mcp_conformance_run_finds_our_metadata_right_and_gets_no_token_without_a_key(shop: AccountShop) -> None:
    """Its second scenario knows no private_key_jwt (4.1) and asks for no scope: each is refused as it should be."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        callback = f"http://127.0.0.1:{probe.getsockname()[1]}"
    program, results = npm.installed("@modelcontextprotocol/conformance") / "dist" / "index.js", shop.folder / "checks"
    command = [program, "authorization", "--url", ISSUER, "--client-id", ME, "--port", callback.rpartition(":")[2]]
    with running(shop, node(*command, "--output-dir", results)) as run:
        url = run.line(ISSUER)
        refused = parse_qs(urlsplit(shop.browser().open(url, stop=callback).url).query)
        assert (refused["error"], refused["iss"]) == (["invalid_scope"], [ISSUER])
        shop.browser().approve(f"{url}&scope=orders:read")
        # It exits with 1 for the scenario that fails.
        assert run.ended() == 1
    checks = {one["id"]: one for found in results.rglob("checks.json") for one in json.loads(found.read_text())}
    assert {name: one["status"] for name, one in checks.items()} == {
        "authorization-server-metadata": "SUCCESS",
        "authorization-server-metadata-cimd": "SUCCESS",
        "authorization-code-grant": "FAILURE",
    }
    assert checks["authorization-code-grant"]["errorMessage"] == "Invalid status code: 401"


AUTHLIB = Path(__file__).parent / "authlib_client.py"


@pytest.mark.parametrize("way", ["direct", "device"])
def test_authlib_signs_in(shop: AccountShop, way: str) -> None:
    """Code with PKCE, or the device grant; refresh with PrivateKeyJWT, whose `aud` has to be told to it; revocation."""
    script = [sys.executable, str(AUTHLIB), task(shop, way=way, port=shop.port, ca_file=str(shop.ca_file))]
    with running(shop, script) as run:
        if way == "direct":
            run.tell(shop.browser().approve(run.found()["url"], stop=CALLBACK).url)
        else:
            shown, browser = run.found(), shop.browser()
            consent = browser.send(browser.open(shown["url"]), {"user_code": shown["user_code"]})
            browser.send(consent, {"decision": "approve"})
            run.tell("approved")
        steps = run.rest()
    assert (steps["tokens"]["token_type"], steps["tokens"]["scope"]) == ("Bearer", "orders:read")
    assert steps["refreshed"]["scope"] == "orders:read"
    assert steps["revocation"]["status"] == 200
    assert steps["revoked"]["error"] == "invalid_grant"
    assert (steps["default_audience"]["error"], steps["default_lifetime"]["error"]) == ("invalid_client",) * 2

"""What `papaver discover` says when there is no Company to be found: what differs, and what to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from papaver.adapters.httpx2 import network
from papaver.adapters.identity_server import IdentityServer
from papaver.cli.main import cli
from papaver.demo.authority import Authority

DOCUMENT = {"https://shop.example/.well-known/poppy.json": b"{}"}


def _told(folder: Path, *options: str) -> dict[str, Any]:
    command = ["discover", "shop.example", "--json", "--home", str(folder / "home"), *options]
    done = CliRunner(env={"PAPAVER_RESOLVE": None, "PAPAVER_CA_FILE": None}).invoke(cli, command)
    assert done.exit_code == 1
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rule"] == "discovery.fetched"
    assert "Error" not in json.dumps(told)
    return told


@pytest.fixture(name="names", scope="module")
def make_names(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts unless told to."""
    return Authority(tmp_path_factory.mktemp("names"))


@pytest.fixture(name="plain")
def serve_plain() -> Iterator[int]:
    """The port of a server that speaks plain HTTP."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield server.server_address[1]
        server.shutdown()
        serving.join()


def test_a_host_that_does_not_exist_may_be_spelt_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or be on this machine."""

    async def nobody(host: str, port: int) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(network.Network.__init__, "__kwdefaults__", {"resolver": nobody, "dialler": None})
    told = _told(tmp_path)
    assert told["found"] == "no such host [fetch.name-exists]"
    assert told["next"] == "check the spelling; for local work: --resolve shop.example:443=127.0.0.1:8443"


def test_a_private_address_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the flag that allows it for local work."""

    async def here(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    monkeypatch.setattr(network.Network.__init__, "__kwdefaults__", {"resolver": here, "dialler": None})
    told = _told(tmp_path)
    assert told["found"].startswith("shop.example is at 127.0.0.1: ")
    assert told["expected"] == "public addresses only"
    assert told["next"].endswith("--resolve shop.example:443=127.0.0.1:443")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """The address and the system's reason."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_address[1]
    told = _told(tmp_path, "--resolve", f"shop.example:443=127.0.0.1:{port}")
    assert told["found"] == f"no answer: no address of shop.example answers: 127.0.0.1 port {port}: Connection refused"
    assert told["next"].startswith("is its server running?")


def test_a_server_without_tls(tmp_path: Path, plain: int) -> None:
    """Plain HTTP at the port of https."""
    told = _told(tmp_path, "--resolve", f"shop.example:443=127.0.0.1:{plain}")
    assert told["found"].startswith("plain HTTP")
    assert "--tls-cert and --tls-key" in told["next"]


def test_an_authority_that_is_not_trusted(tmp_path: Path, names: Authority) -> None:
    """`--ca-file` is what is missing."""
    with IdentityServer(DOCUMENT, "127.0.0.1", 0, names.issue("shop.example")) as server:
        told = _told(tmp_path, "--resolve", f"shop.example:443=127.0.0.1:{server.address[1]}")
    assert told["found"].endswith("[fetch.tls]")
    assert "--ca-file FILE" in told["next"]


def test_a_certificate_of_another_host(tmp_path: Path, names: Authority) -> None:
    """It is trusted, and for somebody else."""
    with IdentityServer(DOCUMENT, "127.0.0.1", 0, names.issue("other.example")) as server:
        at = f"shop.example:443=127.0.0.1:{server.address[1]}"
        told = _told(tmp_path, "--resolve", at, "--ca-file", str(names.ca_file))
    assert told["found"].startswith("a certificate for another host")
    assert "names shop.example" in told["next"]

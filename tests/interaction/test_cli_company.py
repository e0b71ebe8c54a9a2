"""`papaver company serve` as a process: what it serves, how it fails, how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.interop.processes import Place, environment, papaver, started

TOML = 'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nhandler = "shop:answer"\n'
HANDLER = """
from papaver import Company, SqliteStore, Turn
from starlette.applications import Starlette

async def answer(turn: Turn) -> str:
    return "x"

silent = Company(domain="shop.example", name="Shop", base_url="https://shop.example/poppy", store=SqliteStore("s.db"))

async def fails(app):
    raise RuntimeError("no database")
    yield

from contextlib import asynccontextmanager
broken = Starlette(lifespan=asynccontextmanager(fails))

from papaver.adapters.starlette import Poppy
incomplete = Starlette()
Poppy(incomplete, silent)
"""
SERVE = ["-m", "papaver.cli", "company", "serve"]


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    """A Company's configuration and its handler."""
    (tmp_path / "papaver.toml").write_text(TOML)
    (tmp_path / "shop.py").write_text(HANDLER)
    return tmp_path


def _document(address: str, path: str = "/.well-known/poppy.json") -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://{address}{path}", headers={"Host": "shop.example"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_the_configuration_until_it_is_told_to_end(folder: Path, number: signal.Signals) -> None:
    """Its documents, its health, and 404 for all else; then an orderly end."""
    with started([*SERVE, "--json", "--port", 0], cwd=folder) as company:
        told = company.said()
        assert told["tls"] is False
        status, document = _document(told["listening"])
        assert (status, json.loads(document)["organization"]["domain"]) == (200, "shop.example")
        assert _document(told["listening"], "/poppy/healthz")[0] == 200
        assert _document(told["listening"], "/elsewhere")[0] == 404
        status = company.end(number)
    assert status in (0, -signal.SIGTERM)


def test_people_are_told_where_it_listens(folder: Path) -> None:
    """And how to end it."""
    with started([*SERVE, "--port", 0], cwd=folder) as company:
        assert re.fullmatch(r"Shop at http://127\.0\.0\.1:\d+; Ctrl-C ends it", company.line())


def test_tls_files_of_the_configuration_are_beside_it(folder: Path) -> None:
    """Relative to the file, not to where the command runs."""
    Place.make(folder).tls("shop.example")
    server = '[server]\nport = 0\ntls_cert = "shop.example.pem"\ntls_key = "shop.example.key"\n'
    (folder / "papaver.toml").write_text(TOML + server)
    with started([*SERVE, "--json", "--config", folder / "papaver.toml"], cwd=folder.parent) as company:
        assert company.said()["tls"] is True


def test_trace_shows_requests_without_their_secrets(folder: Path) -> None:
    """On the server's side as well."""
    errors = folder / "errors"
    with started([*SERVE, "--json", "--port", 0, "--trace"], cwd=folder, errors=errors) as company:
        address = company.said()["listening"]
        request = urllib.request.Request(
            f"http://{address}/poppy/conversations/cnv_1/events?wait=1&secret=hush",
            headers={"Host": "shop.example", "Poppy-Session": "eyJsecret", "Authorization": "Bearer hush"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=10)
        caught.value.close()
    shown = errors.read_text()
    assert "> GET /poppy/conversations/cnv_1/events" in shown
    assert "< 400  GET /poppy/conversations/cnv_1/events" in shown
    assert "poppy-session: **********" in shown.lower()
    assert "hush" not in shown
    assert "eyJ" not in shown


def _strangers(address: str, count: int = 6) -> list[int]:
    """The statuses of unverified requests that all say to come from elsewhere."""
    statuses = list[int]()
    for number in range(count):
        request = urllib.request.Request(
            f"http://{address}/poppy/conversations/cnv_1/events",
            headers={"Host": "shop.example", "X-Forwarded-For": f"203.0.113.9, 198.51.100.{number}"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=10)
        statuses.append(caught.value.code)
        caught.value.close()
    return statuses


LIMITED = TOML + "[limits]\nrequests_per_address = 3\n"


@pytest.mark.parametrize("server", ["", '[server]\ntrusted_proxies = ["10.0.0.0/8"]\n'])
def test_x_forwarded_for_of_who_is_no_trusted_proxy_evades_no_limit(folder: Path, server: str) -> None:
    """Whoever connects counts, over loopback too: a stranger writes whatever they like into the field."""
    (folder / "papaver.toml").write_text(LIMITED + server)
    errors = folder / "errors"
    with started([*SERVE, "--json", "--port", 0], cwd=folder, errors=errors) as company:
        assert _strangers(company.said()["listening"]) == [400] * 3 + [429] * 3
    assert ("no proxy is trusted" in errors.read_text()) is not bool(server)


@pytest.mark.parametrize(
    ("server", "arguments"),
    [
        ('[server]\ntrusted_proxies = ["10.0.0.0/8", "127.0.0.0/8"]\n', []),
        ('[server]\ntrusted_proxies = ["10.0.0.0/8"]\n', ["--trusted-proxy", "127.0.0.1"]),
    ],
)
def test_behind_a_trusted_proxy_each_client_counts_for_itself(folder: Path, server: str, arguments: list[str]) -> None:
    """The last address that the proxy wrote, never the first one, which the client wrote."""
    (folder / "papaver.toml").write_text(LIMITED + server)
    with started([*SERVE, "--json", "--port", 0, *arguments], cwd=folder) as company:
        assert _strangers(company.said()["listening"]) == [400] * 6


@pytest.mark.parametrize(
    ("arguments", "rule", "status"),
    [
        (["--trusted-proxy", "*"], "serve.trusted-proxies", 1),
        (["--trusted-proxy", "proxy.example"], "serve.trusted-proxies", 1),
        (["--trusted-proxy", "10.0.0.1/8"], "serve.trusted-proxies", 1),
        (["--trusted-proxy", "::/0"], "serve.trusted-proxies", 1),
        (["--tls-cert", "shop.py"], "serve.tls", 2),
        (["--tls-cert", "gone.pem", "--tls-key", "gone.key"], "serve.tls", 1),
        (["--tls-cert", "shop.py", "--tls-key", "shop.py"], "serve.tls", 1),
        (["--host", "not a host"], "serve.listens", 1),
        (["shop:silent"], "configuration.one-handler", 1),
        (["shop:broken"], "serve.starts", 1),
        (["shop:gone"], "config.target", 1),
        (["shop:answer"], "config.target", 1),
        (["shop:incomplete"], "configuration.one-handler", 1),
    ],
)
def test_what_cannot_be_served_is_told_before_anything_listens(
    folder: Path, arguments: list[str], rule: str, status: int
) -> None:
    """With the rule, what to do, and no traceback of ours."""
    done = papaver("company", "serve", "--json", "--port", 0, *arguments, cwd=folder)
    told = json.loads(done.stdout)
    assert (done.returncode, told["rule"]) == (status, rule)
    assert told["next"]
    assert "papaver/cli" not in done.stderr


def test_a_port_that_is_taken_is_told(folder: Path) -> None:
    """With its number."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = papaver("company", "serve", "--port", port, cwd=folder)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "[serve.listens]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "rule", "extra"),
    [(["company", "serve"], "serve.server", "[server]"), (["demo"], "demo.installed", "[demo]")],
)
def test_without_an_extra_it_says_what_to_install(folder: Path, arguments: list[str], rule: str, extra: str) -> None:
    """The base alone starts, and names the extra."""
    code = (
        "import sys\nsys.modules['uvicorn'] = None\nfrom papaver.cli.main import cli\n"
        f"cli.main({[*arguments, '--json']!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=environment(), check=False
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["rule"]) == (1, rule)
    assert told["next"].startswith("pip install ")
    assert extra in told["next"]

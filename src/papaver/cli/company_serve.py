"""`papaver company serve`: runs a Company, alone or in its app, until it is told to end."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import Found, find
from papaver.cli.failures import CliError, to_install
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.startup import Observed
from papaver.values.errors import PapaverError

if TYPE_CHECKING:
    from papaver.adapters.asgi import ASGIApp, Receive, Scope, Send
    from papaver.adapters.httpx2.resolve_map import NetworkSettings
    from papaver.company.app import Company
    from papaver.ports.telemetry import Telemetry

__all__ = ["serve"]

GRACE = 5
"""Seconds that open requests have when the server is told to end; held polls end at once."""

UNNAMED_PROXY = (
    "no proxy is trusted, so whoever comes through one counts as one address; name it in [server] trusted_proxies"
)


@command("serve", example="papaver company serve --config papaver.toml --tls-cert shop.pem --tls-key shop.key")
@company_options
@click.option("--host", help="Where to listen; 127.0.0.1 when nothing says otherwise.")
@click.option("--port", type=click.IntRange(0, 65535), help="8443 when nothing says otherwise; 0 picks one.")
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), help="PEM, with its chain.")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), help="PEM.")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="CIDR",
    help="Believe X-Forwarded-For of this address or network; may be repeated. Nobody's when nothing says otherwise.",
)
def serve(
    run: Run,
    config: Path | None,
    target: str | None,
    host: str | None,
    port: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    trusted_proxies: tuple[str, ...],
) -> None:
    """Run a Company until Ctrl-C or SIGTERM. Flags win over [server].

    Without TLS files it speaks plain HTTP, for a proxy in front that ends TLS. An app reads --resolve and --ca-file
    with NetworkSettings.from_environment().
    """
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise CliError(
            "uvicorn is not installed", code="configuration", rule="serve.server", next=to_install("server")
        ) from None
    os.environ.update(run.network.environ())
    found = find(config, target)
    cert = tls_cert or _beside(found, found.server.tls_cert)
    key = tls_key or _beside(found, found.server.tls_key)
    _check_tls(cert, key)
    proxies = networks(trusted_proxies or found.server.trusted_proxies)
    app, failures = _app(found, run.network)
    listening = _listen(host or found.server.host, found.server.port if port is None else port)
    settings = uvicorn.Config(
        _Traced(app) if run.trace else app,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=cert,
        ssl_keyfile=None if key is None else str(key),
    )
    address = "{}:{}".format(*listening.getsockname()[:2])

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            run.line(listening=address, tls=cert is not None)
            names = ", ".join(company.offer.name for company in found.companies) or str(target)
            run.say(f"{{names}} at {'https' if cert else 'http'}://{address}; Ctrl-C ends it", names=names)
            if cert is None and not proxies:
                run.note(UNNAMED_PROXY)

    server = Server(settings)
    try:
        server.run([listening])
    except KeyboardInterrupt:
        run.note("ended")
    except SystemExit:
        pass
    finally:
        listening.close()
    if failures:
        raise failures[0]
    if not server.started:
        raise CliError("the app did not start", rule="serve.starts", next="see what it said above")


def _app(found: Found, network: NetworkSettings) -> tuple[ASGIApp, list[PapaverError]]:
    """What to serve, and where a Company's failure to start is noted."""
    if found.app is not None:
        observed = Observed(found.app)
        return observed, observed.failures
    alone = _Alone(found.companies[0], network)
    return alone, alone.failures


class _Alone:
    """A Company that is the whole app, run by the server's lifespan."""

    def __init__(self, company: Company, network: NetworkSettings) -> None:
        self._company, self._network = company, network
        self._endpoint: ASGIApp | None = None
        self.failures: list[PapaverError] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._endpoint is not None:
            await self._endpoint(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        from papaver.adapters.running import running

        await receive()
        try:
            async with running(self._company, network=self._network, telemetry=_telemetry()) as self._endpoint:
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except PapaverError as error:
            self.failures.append(error)
            await send({"type": "lifespan.startup.failed"})
        else:
            await send({"type": "lifespan.shutdown.complete"})


def _telemetry() -> Telemetry | None:
    """OpenTelemetry, where it is installed: it tells nothing until an SDK is set up (`opentelemetry-instrument`)."""
    try:
        from papaver.adapters.otel import OpenTelemetry
    except ModuleNotFoundError:
        return None
    return OpenTelemetry()


class _Traced:
    """Notes each exchange of an app, secrets hidden."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from papaver.adapters.exchange_log import note_request, note_response

        line = f"{scope['method']} {scope['path']}"
        note_request(line, _pairs(scope["headers"]))

        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                note_response(line, message["status"], _pairs(message["headers"]))
            await send(message)

        await self._app(scope, receive, told)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CliError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            rule="serve.listens",
            next="choose another --host or --port",
        ) from error


def networks(named: Sequence[str]) -> list[str]:
    """The addresses whose X-Forwarded-For is believed, as the server takes them: it would skip what it cannot read.

    Raises CliError for what is neither an address nor a network, and for all addresses at once.
    """
    found = list[str]()
    for one in named:
        try:
            network = ip_network(one)
        except ValueError as error:
            raise _untrusted(one, str(error)) from None
        if not network.prefixlen:
            raise _untrusted(one, "it is every address, so anybody could say who they are")
        found.append(str(network))
    return found


def _untrusted(named: str, why: str) -> CliError:
    return CliError(
        f"{named!r} is no proxy to trust: {why}",
        code="configuration",
        rule="serve.trusted-proxies",
        next='name the proxy\'s own address or network, such as trusted_proxies = ["127.0.0.1", "10.0.0.0/24"]',
    )


def _beside(found: Found, path: str | None) -> Path | None:
    return None if path is None else found.folder / path


def _check_tls(cert: Path | None, key: Path | None) -> None:
    """Both or none, and a certificate with its key."""
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise CliError(
            "a certificate needs its key", code="usage", rule="serve.tls", next="give both --tls-cert and --tls-key"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as error:
        raise CliError(
            f"{cert} and {key} are no certificate with its key",
            rule="serve.tls",
            detail=str(error),
            next="give the PEM files of your certificate, its chain included, and of its key",
        ) from error

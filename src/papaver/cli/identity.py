"""`papaver init` and `papaver identity`: a Personal Agent's keys, and the two documents that it publishes (4.1)."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Final

import click

from papaver.adapters.callback_pages import DONE, FAILED, OVER, Page
from papaver.adapters.identity_server import IdentityServer, Taken
from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.text import one_line
from papaver.personal_agent.sign_in_checks import SignInUnknown
from papaver.values.errors import PapaverError

__all__ = ["identity", "init"]

LOOPBACK: Final = "http://127.0.0.1/callback"
"""Any port of this machine (RFC 8252 7.3; 4.2): `papaver sign-in` listens there."""


@command("init", network=False, example='papaver init https://agent.example/agent.json --name "Dana\'s agent"')
@click.argument("client_id")
@click.option("--name", help="What Companies may show the User.")
@click.option(
    "--redirect-uri",
    multiple=True,
    metavar="URI",
    help=f"Where a User comes back to after sign-in; may be repeated. {LOOPBACK} when none is given.",
)
def init(run: Run, client_id: str, name: str | None, redirect_uri: tuple[str, ...]) -> None:
    """Make the identity keys, and write the client metadata document and the key set to publish.

    CLIENT_ID is the https URL at which the metadata document will be found. Run again, it keeps the keys, and the
    --name and --redirect-uri that are not given anew.
    """
    from papaver.cli.home import PROFILE, Profile

    made = logging.getLogger("papaver.keys")  # a new key is what this command is for, so nobody has to be warned of it
    run.closing.callback(made.setLevel, made.level)
    made.setLevel(logging.ERROR)
    folder = run.home.folder.absolute()
    if (folder / PROFILE).exists():
        before = run.home.profile()
        name = before.name if name is None else name
        redirect_uri = redirect_uri or before.redirect_uris
    written = run.home.begin(Profile(client_id, name, redirect_uri or (LOOPBACK,)))
    run.say("The Personal Agent {client_id} lives in {folder}.", client_id=client_id, folder=folder.resolve())
    for url, path in written.items():
        run.line(url=url, file=str(path))
        run.say("  publish {path}  at {url}", path=path, url=url)
    run.say("  or serve both: papaver identity --serve HOST:PORT --tls-cert FILE --tls-key FILE")


@command(
    "identity",
    example="papaver identity --serve 127.0.0.1:8444 --tls-cert agent.pem --tls-key agent.key",
)
@click.option("--serve", metavar="HOST:PORT", help="Serve the documents here until told to end; port 0 picks one.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="PEM, with its chain.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="PEM.")
def identity(run: Run, serve: str | None, tls_cert: Path | None, tls_key: Path | None) -> None:
    """Print the client metadata document and the key set, or serve them.

    It also takes the callbacks of sign-ins that `papaver sign-in` began with this home, at each https redirect URI.
    Without --tls-cert and --tls-key it serves plain HTTP, for a proxy in front that ends TLS.
    """
    if (tls_cert is None) is not (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    documents = run.home.identity().documents()
    if serve is None:
        for url, body in documents.items():
            run.line(url=url, document=json.loads(body))
            run.say("{url}", url=url)
            run.say(json.dumps(json.loads(body), indent=2) if not run.json else "")
        return
    host, port = _address(serve)
    tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
    with IdentityServer(documents, host, port, tls, _callbacks(run)) as server:
        address = "{}:{}".format(*server.address)
        run.line(listening=address, tls=tls is not None)
        run.say(
            f"{'https' if tls else 'http'}://{address} serves {', '.join(map(one_line, documents))}; Ctrl-C ends it"
        )
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            run.note("ended")


def _callbacks(run: Run) -> dict[str, Taken]:
    """The https redirect URIs at which a User comes back to this server."""

    def taken(url: str) -> Page:
        try:
            asyncio.run(_complete(run, url))
        except SignInUnknown:
            return OVER
        except PapaverError as error:
            run.note(f"a sign-in was not completed: {error}")
            return FAILED
        return DONE

    return {uri: taken for uri in run.home.profile().redirect_uris if uri.startswith("https://")}


async def _complete(run: Run, url: str) -> None:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        signed_in = await agent.complete(url)
    run.note(f"{signed_in.user} signed in at {signed_in.domain}")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CliError(
            f"--serve is {text!r}, expected HOST:PORT", code="usage", next="papaver identity --serve 127.0.0.1:8444"
        )
    return host, int(port)

"""`papaver dev-certs`: an authority of this folder's own, and certificates for names that lead to this machine."""

from __future__ import annotations

from pathlib import Path

import click

from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.web.urls import UrlError, read_domain

__all__ = ["dev_certs"]


@command("dev-certs", network=False, example="papaver dev-certs shop.example agent.example --out certs")
@click.argument("names", metavar="HOST...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("certs"),
    show_default=True,
    help="The folder to write to.",
)
def dev_certs(run: Run, names: tuple[str, ...], out: Path) -> None:
    """Make a certificate authority and a certificate for each HOST, for work on this machine. They last 30 days.

    Nobody trusts the authority unless told so with --ca-file, and its key is kept nowhere: for another HOST name them
    all again, with another --out.
    """
    from papaver.demo.authority import Authority

    hosts = [_host(name) for name in names]
    if (out / "ca.pem").exists():
        raise CliError(
            f"{out / 'ca.pem'} is there already; nothing was written",
            rule="certs.nothing-there",
            next="choose another --out, or remove that folder",
        )
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = Authority(out)
        run.line(ca_file=str(authority.ca_file))
        run.say("{file}  for whoever connects: --ca-file, or PAPAVER_CA_FILE", file=authority.ca_file)
        for host in hosts:
            certificate, key = authority.issue(host)
            run.line(host=host, tls_cert=str(certificate), tls_key=str(key))
            run.say("{host}  --tls-cert {cert} --tls-key {key}", host=host, cert=certificate, key=key)
    except OSError as error:
        raise CliError(f"{out}: {error.strerror}", rule="certs.writes", next="choose another --out") from error


def _host(name: str) -> str:
    try:
        return read_domain(name)
    except UrlError as error:
        raise CliError(
            f"{name!r} is no host name: {error.description}",
            code="usage",
            rule="certs.host",
            next="give bare host names, such as shop.example",
        ) from None

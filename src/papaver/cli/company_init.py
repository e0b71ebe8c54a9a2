"""`papaver company init`: a commented `papaver.toml`, and a handler to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run

__all__ = ["init"]

TOML: Final = """\
# A Company, for `papaver company check` and `papaver company serve`. Paths are relative to this file.

# The domain that is the Company: poppy.json is served on it, and nobody else's words count for it.
domain = "shop.example"
name = "Example Shop"

# Where the protocol's endpoints are, as the world sees them: https, with the prefix that a proxy may strip.
base_url = "https://shop.example/poppy"
# local_path = "/poppy"          # the tail of base_url's path that is left when a proxy strips the rest

# The function that answers: MODULE:NAME, found beside this file first. Without it, no conversations are offered.
handler = "shop:answer"

# Conversations, Sessions and clients: one SQLite file, on a local disk.
store = "poppy.db"

# "all": every Personal Agent whose signature verifies; "allowed": only those of `papaver company allow URL`.
accept = "all"

# logo_uri = "https://shop.example/logo.png"
# website = true                 # Personal Agents may act for their User on the website

# [[apis]]
# type = "openapi"               # or "mcp"
# url = "https://shop.example/openapi.json"
# description = "Orders and returns"

[server]                         # what `papaver company serve` takes when no flag says otherwise
host = "127.0.0.1"
port = 8443
# tls_cert = "shop.pem"          # without both, plain HTTP for a proxy in front that ends TLS
# tls_key = "shop.key"
# trusted_proxies = ["127.0.0.1"]  # addresses or networks whose X-Forwarded-For is believed; nobody's without

# [limits]                       # every limit and its default: docs/limits.md
# requests_per_user = 120

# [texts]                        # what the Company says by itself
# failed = "Sorry, something went wrong on our side."
"""
APP: Final = '''\
"""The shop's Company Agent. Whatever it returns is the answer; `turn.transcript` is what was said before."""

from papaver.company import Turn


async def answer(turn: Turn) -> str:
    return f"You asked: {turn.text}"
'''


@command("init", network=False, example="papaver company init shop")
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=Path("."))
def init(run: Run, folder: Path) -> None:
    """Write papaver.toml and shop.py into DIR (here when not given). Existing files are left alone."""
    files = {folder / "papaver.toml": TOML, folder / "shop.py": APP}
    present = [path for path in files if path.exists()]
    if present:
        raise CliError(
            f"{present[0]} is there already; nothing was written", rule="init.nothing-there", next="choose another DIR"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
            run.line(file=str(path))
            run.say("wrote {path}", path=path)
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}", rule="init.writes", next="choose another DIR") from error
    run.say("Next: papaver company check --config {path}", path=folder / "papaver.toml")

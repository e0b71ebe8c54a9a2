"""`papaver demo`: the main job end to end on this machine, and what to try by hand afterwards."""

from __future__ import annotations

import random
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING

import click

from papaver.cli.failures import CliError, to_install
from papaver.cli.options import command
from papaver.cli.run import Run

if TYPE_CHECKING:
    from papaver.demo.steps import Journey

__all__ = ["demo"]


@command("demo", network=False, example="papaver demo --keep")
@click.option("--keep", is_flag=True, help="Leave both processes running, and say what to try, until Ctrl-C.")
@click.option("--seed", type=int, help="The shop's rows and the questions; drawn when not given.")
def demo(run: Run, keep: bool, seed: int | None) -> None:
    """Run a Company and a Personal Agent on this machine, over TLS, and verify each step of their conversation.

    It needs no network. It ends with 0 only if each step was verified; else it says what differed.
    """
    needed = ("fastapi", "uvicorn", "jinja2", "argon2", "python_multipart")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise CliError(f"not installed: {', '.join(missing)}", rule="demo.installed", next=to_install("demo"))
    from papaver.demo.steps import journey

    chosen = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    run.line(seed=chosen)

    def told(text: str) -> None:
        run.say(text)
        run.line(said=text.strip())

    with _ending_on_signals(), journey(chosen, told) as trip:
        trip.run()
        if keep:
            run.say(_what_to_try(trip))
            run.line(**_where(trip))
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                run.note("ended")


def _what_to_try(trip: Journey) -> str:
    where = _where(trip)
    papaver = "papaver" if shutil.which("papaver") else f"{shlex.quote(sys.executable)} -m papaver.cli"
    given = [("home", where["home"]), *(("resolve", one) for one in trip.company_at), ("ca-file", where["ca_file"])]
    options = " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in given)
    company = " ".join(f"{name}={shlex.quote(value)}" for name, value in trip.company_environment.items())
    served = trip.serving
    serve = " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(served[name])}" for name in ("port", "tls_cert", "tls_key")
    )
    return f"""
Both go on running until Ctrl-C. Try, in another terminal:
  {papaver} discover {where["domain"]} {options}
  {papaver} ask {where["domain"]} 'What is your policy on returns?' {options}
  {papaver} status {options}
  curl --cacert {where["ca_file"]} --connect-to {where["connect_to"]} https://{where["domain"]}/.well-known/poppy.json
Change a row of {where["shop"]} with any SQLite tool, and ask again. As the Company:
  export {company}
  {papaver} company clients {where["app"]}
  {papaver} company block {where["client_id"]} {where["app"]}
To serve it by hand, end process {served["pid"]} first:
  {papaver} company serve {where["app"]} {serve}
"""


def _where(trip: Journey) -> dict[str, object]:
    from papaver.demo.stage import APP, CLIENT_ID, DOMAIN

    return {
        "domain": DOMAIN,
        "client_id": CLIENT_ID,
        "home": str(trip.home),
        "resolve": trip.company_at,
        "ca_file": str(trip.ca_file),
        "shop": trip.company_environment["OUTFITTER_SHOP"],
        "app": APP,
        "serving": {**trip.serving, "environment": dict(trip.company_environment)},
        "connect_to": trip.company_at[0].replace("=", ":"),
    }


@contextmanager
def _ending_on_signals() -> Generator[None]:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: in order, with nothing left behind."""

    def told(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), told) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)

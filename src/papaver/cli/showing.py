"""What a User is shown to sign in: whose page it is, what is asked for, the link, and a code or QR code (4.2, 4.3)."""

from __future__ import annotations

import sys
import webbrowser
from datetime import UTC, datetime
from importlib.util import find_spec

from papaver.cli.run import Run
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn

__all__ = ["moment", "show_device", "show_link"]


def show_link(run: Run, begun: DirectSignIn, no_open: bool) -> None:
    """The link is for this User's browser alone: whoever opens another's would sign in for them."""
    run.line(
        authorization_url=begun.url,
        company_name=begun.company_name,
        domain=begun.domain,
        requested=" ".join(begun.scopes),
        until=moment(begun.expires_at),
    )
    run.say("{name} ({domain}) asks the User to sign in and approve:", name=begun.company_name, domain=begun.domain)
    for scope in begun.scopes:
        run.say("  {scope}", scope=scope)
    opened = not no_open and _open(begun.url)
    run.say("The browser was opened at:" if opened else "Open this in the User's browser:")
    run.say("  {url}", url=begun.url)
    if not run.json:
        run.note("waiting for the browser to come back; else paste the address that it ends at, then Enter")


def _open(url: str) -> bool:
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


def show_device(run: Run, begun: DeviceSignIn) -> None:
    """Link and code, and beside them whose they are (4.3); at a terminal the same as a QR code."""
    run.line(
        verification_uri=begun.verification_uri,
        user_code=begun.user_code,
        verification_uri_complete=begun.verification_uri_complete,
        company_name=begun.company_name,
        domain=begun.domain,
        requested=" ".join(begun.scopes),
        until=moment(begun.expires_at),
    )
    run.say("{name} ({domain}) asks the User to sign in and approve:", name=begun.company_name, domain=begun.domain)
    for scope in begun.scopes:
        run.say("  {scope}", scope=scope)
    run.say("Open {uri}", uri=begun.verification_uri)
    run.say("and type   {code}", code=begun.user_code)
    run.say("Nobody but the User needs this link; never send it to anybody.")
    if begun.verification_uri_complete is not None and sys.stdout.isatty() and not run.json:
        _show_qr(run, begun.verification_uri_complete)
    if not run.json:
        run.note("waiting until the User has decided")


def _show_qr(run: Run, url: str) -> None:
    if find_spec("segno") is None:
        return
    import segno

    run.say("or scan this, and see that the page shows the same code:")
    segno.make(url, error="l").terminal(out=sys.stdout, compact=True)


def moment(seconds: float) -> str:
    """A time as people and scripts read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

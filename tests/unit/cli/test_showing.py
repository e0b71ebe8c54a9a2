"""A User sees whose sign-in it is, and enough to get there; nothing that would let another in."""

from __future__ import annotations

import json
import sys
import webbrowser
from typing import Any

import pytest

from papaver.cli import showing
from papaver.cli.run import Run
from papaver.cli.showing import moment, show_device, show_link
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, SignedIn

PAGE = "https://auth.shop.example/device"
URL = "https://auth.shop.example/authorize?client_id=x&state=s"


async def _unused(_: object = None) -> SignedIn:
    raise AssertionError("nobody waits here")


def device(complete: str | None = f"{PAGE}?user_code=WDJB-MJHT", name: str = "Shop") -> DeviceSignIn:
    """A Device Sign-In that has begun."""
    return DeviceSignIn("WDJB-MJHT", PAGE, complete, name, "shop.example", 1_800_000_000, ("a", "b"), _unused)


def direct() -> DirectSignIn:
    """A Direct Sign-In that has begun."""
    return DirectSignIn(URL, "http://127.0.0.1:1/callback", ("a",), "Shop", "shop.example", 1_800_000_000, _unused)


@pytest.mark.requirement("4.3-06", "4.3-09")
def test_link_and_code_stand_beside_name_and_domain(capsys: pytest.CaptureFixture[str]) -> None:
    """One presentation where nobody can scan anything; the Company's words cannot steer the terminal."""
    show_device(Run(), device(name="Shop\x1b[2J"))
    shown = capsys.readouterr().out
    assert "Shop (shop.example) asks the User to sign in and approve:\n  a\n  b\n" in shown
    assert f"Open {PAGE}\n" in shown
    assert "WDJB-MJHT" in shown
    assert "user_code=" not in shown
    assert "\x1b" not in shown


@pytest.mark.requirement("4.3-06")
@pytest.mark.parametrize(("complete", "scanned"), [(f"{PAGE}?user_code=WDJB-MJHT", True), (None, False)])
def test_at_a_terminal_there_is_a_qr_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], complete: str | None, scanned: bool
) -> None:
    """Of the link that has the code in it, where the Company gave one; the code to compare is there as well."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_device(Run(), device(complete))
    shown = capsys.readouterr().out
    assert ("scan this" in shown) is scanned
    assert ("\u2584" in shown or "\u2580" in shown) is scanned


def test_without_its_extra_there_is_no_qr_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Link and code do."""

    def nothing(name: str) -> Any:
        return None

    monkeypatch.setattr(showing, "find_spec", nothing)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_device(Run(), device())
    assert "scan this" not in capsys.readouterr().out


def test_scripts_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each sign-in type in its own keys."""
    show_device(Run(json=True), device())
    show_link(Run(json=True), direct(), no_open=True)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["verification_uri_complete"] == f"{PAGE}?user_code=WDJB-MJHT"
    assert first["until"] == moment(1_800_000_000) == "2027-01-15T08:00:00+00:00"
    assert second["authorization_url"] == URL


@pytest.mark.parametrize(
    ("no_open", "works", "said"),
    [
        (False, True, "The browser was opened at:"),
        (False, False, "Open this in the User's browser:"),
        (False, None, "Open this in the User's browser:"),
        (True, True, "Open this in the User's browser:"),
    ],
)
def test_the_browser_is_opened_unless_it_cannot_or_may_not(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_open: bool,
    works: bool | None,
    said: str,
) -> None:
    """The link is shown in any case."""
    opened = list[str]()

    def open_it(url: str) -> bool:
        opened.append(url)
        if works is None:
            raise webbrowser.Error
        return works

    monkeypatch.setattr(webbrowser, "open", open_it)
    show_link(Run(), direct(), no_open)
    shown = capsys.readouterr()
    assert said in shown.out
    assert f"  {URL}\n" in shown.out
    assert "paste the address" in shown.err
    assert opened == ([] if no_open else [URL])

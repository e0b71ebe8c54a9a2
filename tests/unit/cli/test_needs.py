"""What a User has to do is told as a command that can be typed."""

from __future__ import annotations

import pytest

from papaver.cli.needs import as_user, sign_in_command, told_to_sign_in
from papaver.protocol.errors import SignInNeeded


@pytest.mark.parametrize(
    ("need", "user", "command"),
    [
        (SignInNeeded("orders:read"), "me", "papaver sign-in shop.example --scope orders:read"),
        (SignInNeeded("a b"), "dana k", "papaver sign-in shop.example --scope 'a b' --user 'dana k'"),
        (
            SignInNeeded("a;rm -rf"),
            "me",
            "papaver sign-in shop.example --scope 'a;rm -rf'",
        ),
        (
            SignInNeeded("a", only_if_asked=True),
            "me",
            "only if the User asks for it, who signed out or declined before: papaver sign-in shop.example --scope a",
        ),
    ],
)
def test_the_command_names_company_scopes_and_user(need: SignInNeeded, user: str, command: str) -> None:
    """The Company's words are quoted; a need that the User turned down before is theirs to bring up (5.5)."""
    assert told_to_sign_in(need, "shop.example", user).remedy == command


def test_a_need_without_scopes_says_where_they_are_named() -> None:
    """A challenge may name none."""
    remedy = told_to_sign_in(SignInNeeded(""), "shop.example", "me").remedy
    assert remedy.startswith("papaver sign-in shop.example --scope SCOPE; papaver api shop.example")


def test_the_user_of_every_day_is_not_named() -> None:
    """`me` is who it is without the option."""
    assert as_user("me") == ""
    assert sign_in_command("shop.example", "a", "dana").endswith(" --user dana")

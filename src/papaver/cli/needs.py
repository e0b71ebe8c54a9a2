"""What is said when the User has to sign in first: which scopes, and the command that begins it."""

from __future__ import annotations

import shlex

from papaver.protocol.errors import SignInNeeded

__all__ = ["as_user", "sign_in_command", "told_to_sign_in"]


def as_user(user: str) -> str:
    """The option that names the User; "" for who it is without one."""
    return "" if user == "me" else f" --user {shlex.quote(user)}"


def sign_in_command(domain: str, scope: str, user: str) -> str:
    """What to type. The scopes are the Company's words, so they are quoted."""
    wanted = shlex.quote(scope) if scope else "SCOPE"
    return f"papaver sign-in {shlex.quote(domain)} --scope {wanted}{as_user(user)}"


def told_to_sign_in(error: SignInNeeded, domain: str, user: str) -> SignInNeeded:
    """The same need, with what to do about it. One that the User turned down before is theirs to bring up (5.5)."""
    command = sign_in_command(domain, error.scope, user)
    if not error.scope:
        command += f"; papaver api {shlex.quote(domain)} and the Company's documents name its scopes"
    if error.only_if_asked:
        command = f"only if the User asks for it, who signed out or declined before: {command}"
    error.compare("", "", command)
    return error

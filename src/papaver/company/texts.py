"""Every sentence that the Company's side says by itself; a Company may reword or translate them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Texts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    failed: str = "Sorry, something went wrong on our side and we could not answer. Please try again."
    timed_out: str = "Sorry, this took too long and we stopped. Please try again."
    nobody: str = "Nobody is available to take over right now. I am still here to help."
    sign_in: str = "To go on, please sign in to your account with us and allow what is asked for."
    """Said in a Direct Conversation that needs the account: the User reads messages, not events. Empty: not said."""

"""Every sentence that the Company's side says by itself; a Company may reword or translate them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

__all__ = ["Texts", "TextsFor", "Wording"]

log = logging.getLogger("papaver.company")


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """In those of actions `{title}`, `{detail}` and `{error}` are replaced, and nothing else."""

    failed: str = "Sorry, something went wrong on our side and we could not answer. Please try again."
    timed_out: str = "Sorry, this took too long and we stopped. Please try again."
    nobody: str = "Nobody is available to take over right now. I am still here to help."
    sign_in: str = "To go on, please sign in to your account with us and allow what is asked for."
    """Said in a Direct Conversation that needs the account: the User reads messages, not events. Empty: not said."""
    action_succeeded: str = "{title}: done."
    action_failed: str = "{title}: this did not work. {error}"
    action_rejected: str = "{title}: this was not done. {error}"
    action_error: str = "Something went wrong on our side."
    """Why an action failed, when its tool does not say it in words of its own."""
    action_unfinished: str = "It is not certain whether it was done; please check before asking for it again."
    action_refused: str = "We do not do this here."
    """Why an action was rejected, when nobody said."""


TextsFor = Callable[[str], "Texts | None"]
"""The texts in the language of a tag such as `de-DE`; None where there are none."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of a Company, and those of other languages."""

    texts: Texts
    texts_for: TextsFor | None = None

    def of(self, context: Mapping[str, object]) -> Texts:
        """The texts for a conversation with this context (8.4). What has no translation, or fails, is said as ever."""
        locale = context.get("locale")
        if self.texts_for is None or not isinstance(locale, str):
            return self.texts
        try:
            found = cast(object, self.texts_for(locale))
        except Exception as error:
            log.error("texts_for(%r) failed", locale, exc_info=error)
            return self.texts
        return found if isinstance(found, Texts) else self.texts

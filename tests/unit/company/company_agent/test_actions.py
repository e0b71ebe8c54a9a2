"""How actions are told: in which words, in place of what, and as which data."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company import Texts
from papaver.company.company_agent import ActionOutcome, Confirmation, format_action
from papaver.company.company_agent.actions import filled, read_action, told, write_action
from papaver.company.texts import Wording
from papaver.values.strict_json import JsonError

TEXTS = Texts()
DONE = ActionOutcome("exchange", "succeeded", Confirmation("Exchange order 7", "for size M"), {"sku": "x"}, key="k")
BROKEN = ActionOutcome("cancel", "failed", Confirmation("Cancel order 8"), error="It was sent already.", key="l")
UNSURE = ActionOutcome("refund", "failed", Confirmation("Refund"), error=TEXTS.action_unfinished, certain=False)
REFUSED = ActionOutcome("cancel", "rejected", Confirmation("Cancel order 9"), error=TEXTS.action_refused)


@pytest.mark.requirement("ca-49")
def test_an_action_is_told_in_the_texts_of_the_company() -> None:
    """Title, error and detail; a template that has the detail does not get it twice."""
    assert format_action(DONE, TEXTS) == "Exchange order 7: done.\nfor size M"
    assert format_action(BROKEN, TEXTS) == "Cancel order 8: this did not work. It was sent already."
    assert format_action(REFUSED, TEXTS) == "Cancel order 9: this was not done. We do not do this here."
    german = Texts(action_succeeded="{title} ({detail}): erledigt.", action_failed="{title} ging nicht: {error}")
    assert format_action(DONE, german) == "Exchange order 7 (for size M): erledigt."
    assert format_action(BROKEN, german) == "Cancel order 8 ging nicht: It was sent already."


def test_what_is_put_into_a_template_is_never_read_as_one() -> None:
    """Nor is anything else in braces."""
    values = {"title": "{error} {title.__class__} {0}", "error": "{title}", "detail": None}
    assert (
        filled("{title}|{error}|{detail}|{other}|{{", **values) == "{error} {title.__class__} {0}|{title}||{other}|{{"
    )


@pytest.mark.requirement("ca-46", "ca-48")
def test_what_a_model_says_of_its_actions_is_made_true() -> None:
    """Nothing said: our words. All done: what it does not name is added. One not done: our words instead of its own."""
    done, broken = format_action(DONE, TEXTS), format_action(BROKEN, TEXTS)
    assert told("Hello", [], TEXTS, format_action) == "Hello"
    assert told(None, [], TEXTS, format_action) is None
    assert told(None, [DONE], TEXTS, format_action) == done
    assert told("", [DONE], TEXTS, format_action) == done
    assert told("I did it.", [DONE], TEXTS, format_action) == f"I did it.\n\n{done}"
    assert told("Exchange order 70", [DONE], TEXTS, format_action) == f"Exchange order 70\n\n{done}"
    named = "I did it: exchange Order 7."
    assert told(named, [DONE], TEXTS, format_action) == named
    assert told("All is done!", [DONE, BROKEN], TEXTS, format_action) == f"{done}\n\n{broken}"
    assert told("Cancel order 9: done!", [REFUSED], TEXTS, format_action) == format_action(REFUSED, TEXTS)
    assert told(None, [DONE], TEXTS, lambda action, texts: f"<{action.tool}>") == "<exchange>"


@pytest.mark.requirement("ca-43", "ca-44", "ca-47")
@pytest.mark.parametrize("action", [DONE, BROKEN, REFUSED, UNSURE], ids=lambda action: action.tool + action.status)
def test_an_action_is_written_as_data_and_read_again(action: ActionOutcome) -> None:
    """Tool, status and summary; a result or an error where there is one."""
    record: dict[str, Any] = write_action(action)
    assert read_action(record) == action
    assert (record["tool"], record["status"]) == (action.tool, action.status)
    assert record["summary"]["title"] == action.summary.title
    assert record.get("certain", True) is action.certain
    assert ("detail" in record["summary"], "result" in record, "error" in record) == (
        action.summary.detail is not None,
        action.result is not None,
        action.error is not None,
    )


@pytest.mark.parametrize(
    "record", [None, [], {}, {"tool": "x"}, {**write_action(DONE), "status": "done"}], ids=range(5)
)
def test_another_record_is_no_action(record: object) -> None:
    """It may be an application's own `data.actions`."""
    with pytest.raises(JsonError):
        read_action(record)


@pytest.mark.requirement("ca-49")
def test_texts_are_found_by_the_locale_of_the_conversation(caplog: pytest.LogCaptureFixture) -> None:
    """Where there is none, or finding it fails, they are the Company's own."""
    german = Texts(failed="Das ging nicht.")

    def texts_for(locale: str) -> Texts | None:
        if locale == "xx":
            raise KeyError(locale)
        return german if locale.startswith("de") else None

    wording = Wording(TEXTS, texts_for)
    assert wording.of({"locale": "de-CH"}) is german
    assert [wording.of(context) for context in ({}, {"locale": "fr"}, {"locale": 5}, {"locale": "xx"})] == [TEXTS] * 4
    assert "texts_for('xx') failed" in caplog.text
    assert Wording(TEXTS).of({"locale": "de"}) is TEXTS

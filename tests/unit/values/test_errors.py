"""Every error carries a code and a public sentence, and keeps its private reason to itself."""

from __future__ import annotations

from papaver.values.errors import PapaverError


class Odd(PapaverError):
    code = "odd"
    description = "this is odd"


def test_an_error_shows_code_sentence_and_rule_but_never_the_detail() -> None:
    """`detail` is for our log alone."""
    error = Odd(rule="a.b", detail="because of x")
    assert str(error) == "odd: this is odd [a.b]"
    assert error.detail == "because of x"
    assert error.args == ("this is odd",)


def test_a_description_of_its_own_replaces_the_class_one() -> None:
    """The sentence may be more precise than the class's."""
    assert str(Odd("very odd")) == "odd: very odd"


def test_an_error_without_a_sentence_shows_its_code() -> None:
    """The root has none."""
    assert str(PapaverError()) == "error"
    assert str(PapaverError(rule="a.b")) == "error [a.b]"

"""Every error carries a code and a public sentence, and keeps its private reason to itself."""

from __future__ import annotations

import copy
import pickle

from papaver.values.errors import PapaverError


class Odd(PapaverError):
    code = "odd"
    description = "this is odd"


class Demanding(PapaverError):
    code = "demanding"

    def __init__(self, wanted: int, *, rule: str) -> None:
        self.wanted = wanted
        super().__init__("too little", rule=rule)


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


def test_an_error_whose_init_asks_for_more_survives_pickle_and_copy() -> None:
    """A worker pool that cannot carry an error back breaks, and tells of anything but that error."""
    error = Demanding(3, rule="a.b")
    error.add_note("seen twice")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(again), vars(again), again.args, str(again)) == (Demanding, vars(error), error.args, str(error))


def test_a_comparison_is_in_the_traceback_and_says_only_what_there_is() -> None:
    """Both values and the remedy; an empty one has no line."""
    error = Odd()
    error.compare("https", "", "serve it over https")
    assert (error.expected, error.found, error.remedy) == ("https", "", "serve it over https")
    assert error.__notes__ == ["  expected  https", "  next      serve it over https"]

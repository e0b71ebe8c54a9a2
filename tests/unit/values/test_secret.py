"""Secrets stay hidden wherever text is made of them, and give their value only when asked."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle

import pytest

from papaver.values.secret import Secret, SecretBytes

HIDDEN = ("Rosebud", "526f7365627564")


def shows_nothing(text: str) -> bool:
    return not any(form in text for form in HIDDEN)


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    token: Secret


@pytest.mark.parametrize("secret", [Secret("Rosebud"), SecretBytes(b"Rosebud")])
def test_every_text_made_of_a_secret_hides_it(secret: Secret | SecretBytes) -> None:
    """repr, str, format with any width, % and containers show the same asterisks."""
    made = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>40}",
        f"{secret!r}",
        str.__mod__("%s", secret),
        f"{[secret]}",
    ]
    assert all("**********" in text and shows_nothing(text) for text in made)
    assert repr(secret) == f"{type(secret).__name__}('**********')"


def test_a_dataclass_and_a_log_line_hide_the_secret_inside(caplog: pytest.LogCaptureFixture) -> None:
    """The usual ways into a log do not show it."""
    holder = Holder(Secret("Rosebud"))
    logging.getLogger("test").warning("%s %r", holder.token, holder)
    assert shows_nothing(caplog.text)
    assert shows_nothing(repr(dataclasses.asdict(holder)))


def test_reveal_gives_the_value_back() -> None:
    """Only `reveal` does."""
    assert Secret("Rosebud").reveal() == "Rosebud"
    assert SecretBytes(b"Rosebud").reveal() == b"Rosebud"


def test_equality_is_between_secrets_of_one_kind() -> None:
    """A secret is never equal to a bare value, so nobody compares one in variable time by mistake."""
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("\ud800é") == Secret("\ud800é")
    assert Secret("a") != "a"
    assert SecretBytes(b"a") == SecretBytes(b"a")
    assert Secret("a") != SecretBytes(b"a")
    assert len({Secret("a"), Secret("a"), SecretBytes(b"a")}) == 2


def test_an_empty_secret_is_false() -> None:
    """`if token:` works as it does for text."""
    assert Secret("x")
    assert not Secret("")
    assert not SecretBytes(b"")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_never_pickled_nor_made_json(protocol: int) -> None:
    """Whatever would write it out refuses."""
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Secret("Rosebud"), protocol)
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(Secret("Rosebud"))


def test_the_state_is_not_handed_out_either() -> None:
    """`__getstate__` is what other serialisers ask for."""
    with pytest.raises(TypeError, match="never pickled"):
        Secret("Rosebud").__getstate__()


def test_copies_are_the_same_secret() -> None:
    """A secret is immutable, so a copy is itself."""
    secret = Secret("Rosebud")
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


@pytest.mark.parametrize("name", ["_value", "note"])
def test_a_secret_is_immutable(name: str) -> None:
    """Neither a new attribute nor a new value; it has no __dict__ to look into."""
    secret = Secret("Rosebud")
    with pytest.raises(AttributeError, match="immutable"):
        setattr(secret, name, "x")
    with pytest.raises(AttributeError, match="immutable"):
        delattr(secret, name)
    assert not hasattr(secret, "__dict__")

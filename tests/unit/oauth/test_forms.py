"""Parameters of OAuth requests: decoded strictly, each once."""

from __future__ import annotations

import pickle

import pytest

from papaver.oauth.errors import InvalidOAuthRequest
from papaver.oauth.forms import Form, read_form, write_form


def test_parameters_are_written_and_read_back() -> None:
    """With whatever text they hold."""
    pairs = [("a", "x y+z&=%"), ("\u00e9", "\U0001f600"), ("resource", "https://a.example/x?y=1")]
    form = read_form(write_form(pairs))
    assert [(name, form.one(name)) for name in form] == pairs
    assert read_form(write_form(pairs).decode()) == form
    assert (len(form), form["a"]) == (3, ("x y+z&=%",))


def test_an_empty_value_is_an_absent_one() -> None:
    """RFC 6749 3.1; and so are empty pairs."""
    form = read_form("a=&b&&c=1")
    assert (form.one("a"), form.one("b"), form.one("c"), form.one("d")) == (None, None, "1", None)
    assert (form.all("a"), form.all("d")) == ((), ())


@pytest.mark.requirement("papaver-43")
@pytest.mark.parametrize("body", ["a=1&a=2", "a=1&a=1", "a=&a=1"])
def test_a_parameter_twice_is_refused(body: str) -> None:
    """Two readers could take two values; but `all` gives what may be repeated."""
    form = read_form(body)
    with pytest.raises(InvalidOAuthRequest) as refusal:
        form.one("a")
    assert (refusal.value.rule, refusal.value.code) == ("oauth.parameter-once", "invalid_request")


def test_what_may_be_repeated_is_all_there() -> None:
    """`resource` of RFC 8707, in its order."""
    assert read_form("resource=b&resource=&resource=a").all("resource") == ("b", "a")


@pytest.mark.requirement("papaver-43")
@pytest.mark.parametrize(
    "body",
    [b"a=%", b"a=%4", b"a=%zz", b"a= b", b"a=\x00", b"a=\xc3\xa4", "a=\u00e4", b"a=%ff", b"a=%c3", b"%ed%a0%80=a"],
)
def test_what_is_not_encoded_is_refused(body: bytes | str) -> None:
    """Broken escapes, bare controls and spaces, and octets that are not UTF-8."""
    with pytest.raises(InvalidOAuthRequest) as refusal:
        read_form(body)
    assert refusal.value.rule == "oauth.form-encoding"


@pytest.mark.requirement("papaver-43")
@pytest.mark.parametrize("body", ["a=1&" * 101, "a=" + "x" * 65_536])
def test_a_form_is_bounded(body: str) -> None:
    """A hundred parameters, 64 KiB."""
    assert len(read_form("a=1&" * 100)["a"]) == 100
    with pytest.raises(InvalidOAuthRequest) as refusal:
        read_form(body)
    assert refusal.value.rule == "oauth.form-size"


def test_values_are_not_shown() -> None:
    """They may be tokens."""
    form = Form([("code", "s3cret")])
    assert repr(form) == "Form(['code'])"
    with pytest.raises(TypeError):
        pickle.dumps(form)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("urn%3Aietf%3Aparams", "urn:ietf:params"),
        ("https%3A%2F%2Fa.example%2Fb%3fc", "https://a.example/b?c"),
        ("a%253A%252F", "a%3A%2F"),
        ("a%3a%2f+%3A", "a:/ :"),
        ("%C3%A9%3A", "é:"),
    ],
)
def test_escapes_are_decoded_once_whichever_they_are(written: str, meant: str) -> None:
    """Those of URLs have a short way, and mean the same on it."""
    assert read_form(f"name={written}").one("name") == meant

"""Fuzzing the parameters of OAuth requests: whatever comes is read, or refused by an error of ours."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.oauth.assertions import read_assertion
from papaver.oauth.authorization import read_authorization_request, read_authorization_response
from papaver.oauth.device import normal_user_code, read_device_request
from papaver.oauth.errors import InvalidOAuthRequest, InvalidScope, OAuthError
from papaver.oauth.forms import Form, read_form, write_form
from papaver.oauth.scopes import covers, read_scope, union, write_scope
from papaver.oauth.tokens import read_revocation_request, read_token_request
from tests.fuzz.seeds import files, grown, unreached

CALLBACK = "https://agent.example/cb"
READERS: tuple[Callable[[Form], object], ...] = (
    read_token_request,
    read_revocation_request,
    read_device_request,
    read_assertion,
    lambda form: read_authorization_request(form, CALLBACK),
    lambda form: read_scope(form.one("scope") or ""),
)


def drive(data: bytes) -> None:
    """A body as it comes from the network, through every reader of requests."""
    try:
        form = read_form(data)
    except InvalidOAuthRequest:
        return
    pairs = [(name, value) for name in form for value in form[name] if name or value]
    if len(pairs) == sum(map(len, form.values())):
        assert read_form(write_form(pairs)) == form
    assert len(form) == len(list(form))
    assert repr(form) == f"Form({list(form)})"
    for read in READERS:
        refusal: OAuthError | None = None
        try:
            read(form)
        except OAuthError as error:
            refusal = error
        assert refusal is None or refusal.rule
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(form)
    judge_scope(form.all("scope"))


def judge_scope(texts: tuple[str, ...]) -> None:
    """What is read is the same again when it is written and read."""
    for text in texts:
        try:
            scopes = read_scope(text)
        except InvalidScope:
            continue
        assert read_scope(write_scope(scopes)) == union(scopes) == scopes
        assert covers(scopes, scopes)


@pytest.mark.parametrize("path", files("oauth_forms"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("oauth_forms"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but an error of OAuth comes out."""
    drive(data)


@given(st.text(max_size=80), st.sampled_from(("?code=c&state=s&iss=i", "?error=x&state=s&iss=i", "?", "")))
def test_a_redirect_back_is_read_or_refused(text: str, end: str) -> None:
    """Whatever the browser was sent to."""
    for url in (f"{CALLBACK}{end}{text}", f"{text}{end}", f"{CALLBACK}{text}{end}"):
        refusal: OAuthError | None = None
        try:
            read_authorization_response(url, redirect_uri=CALLBACK, issuer="i", state="s")
        except OAuthError as error:
            refusal = error
        assert refusal is None or refusal.code
        assert refusal is None or not text.strip() or len(text) < 8 or text not in refusal.description


@given(st.text(max_size=80))
def test_a_typed_user_code_has_one_form_or_none(text: str) -> None:
    """And that form is its own."""
    code = normal_user_code(text)
    assert code == "" or normal_user_code(code) == code


def test_the_corpus_alone_covers_the_readers() -> None:
    """Every line and branch."""
    assert unreached("oauth_forms", "papaver.oauth.forms", "papaver.oauth.scopes") == ""

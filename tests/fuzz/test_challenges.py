"""Fuzzing WWW-Authenticate: what is read can be written and read again, and no error but its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.web.challenges import Challenge, ChallengeError, read_challenges, write_challenge, write_challenges
from tests.fuzz.seeds import files, grown, unreached


def drive(data: bytes) -> None:
    """The lines are field lines, and also scheme, parameter, value and token68 of a challenge to write."""
    lines = data.decode("latin-1").split("\n")
    tolerated = read_challenges(lines, tolerant=True)
    try:
        challenges = read_challenges(lines)
        assert challenges == tolerated
        assert read_challenges([write_challenges(challenges)]) == challenges
    except ChallengeError:
        pass
    scheme, name, value, token68 = (*lines, "", "", "", "")[:4]
    for challenge in (
        Challenge(scheme, {name: value}),
        Challenge(scheme, {}, token68),
        Challenge(scheme, {name: value}, token68),
    ):
        try:
            written = write_challenge(challenge)
        except ChallengeError:
            continue
        (read,) = read_challenges([written])
        assert read.is_scheme(scheme)


@pytest.mark.parametrize("path", files("challenges"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("challenges"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `ChallengeError` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("challenges", "papaver.web.challenges") == ""

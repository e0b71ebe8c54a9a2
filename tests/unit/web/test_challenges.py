"""WWW-Authenticate is read as RFC 9110 11.6.1 writes it, and written so that anyone can read it (7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.web.challenges import Challenge, ChallengeError, read_challenges, write_challenge, write_challenges

TOKENS = st.text("abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=6)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
WRITABLE = st.builds(
    Challenge,
    TOKENS,
    st.dictionaries(TOKENS.map(lambda name: f"x{name.lower()}"), VALUES, max_size=3),
) | st.builds(Challenge, TOKENS, st.just({}), st.from_regex(r"\A[A-Za-z0-9._~+/-]{1,6}={0,2}\Z"))


@pytest.mark.parametrize(
    ("lines", "challenges"),
    [
        ([], []),
        ([""], []),
        ([" , ,"], []),
        (["Bearer"], [Challenge("Bearer")]),
        (["Bearer  "], [Challenge("Bearer")]),
        (["Negotiate, Basic"], [Challenge("Negotiate"), Challenge("Basic")]),
        (["Negotiate YWJj=="], [Challenge("Negotiate", token68="YWJj==")]),
        (
            ["Negotiate YWJj, Basic realm=x"],
            [Challenge("Negotiate", token68="YWJj"), Challenge("Basic", {"realm": "x"})],
        ),
        (
            ['Bearer realm="a, b", ERROR=invalid_token'],
            [Challenge("Bearer", {"realm": "a, b", "error": "invalid_token"})],
        ),
        (
            ['Bearer error="invalid_token" , , DPoP algs="ES256 PS384",error = "x"'],
            [Challenge("Bearer", {"error": "invalid_token"}), Challenge("DPoP", {"algs": "ES256 PS384", "error": "x"})],
        ),
        (
            ["Bearer realm=x", 'DPoP algs="ES256"'],
            [Challenge("Bearer", {"realm": "x"}), Challenge("DPoP", {"algs": "ES256"})],
        ),
        (['Bearer realm="x"', 'scope="y"'], [Challenge("Bearer", {"realm": "x", "scope": "y"})]),
        (['X a="q\\"\\\\\\z\té"'], [Challenge("X", {"a": 'q"\\z\té'})]),
        (['X a=""'], [Challenge("X", {"a": ""})]),
        (["X a="], [Challenge("X", token68="a=")]),
    ],
)
def test_challenges_are_read(lines: list[str], challenges: list[Challenge]) -> None:
    """Several in one line, several lines, empty members, quoted commas, token68; both readers agree."""
    assert list(read_challenges(lines)) == challenges
    assert list(read_challenges(lines, tolerant=True)) == challenges


@pytest.mark.parametrize(
    ("lines", "tolerated"),
    [
        (["="], []),
        (['"Bearer"'], []),
        (["Bearer=x"], [Challenge("Bearer")]),
        (["Bearer é"], [Challenge("Bearer")]),
        (['Bearer realm="x'], [Challenge("Bearer")]),
        (['Bearer realm="x\\'], [Challenge("Bearer")]),
        (['Bearer realm="\x00"'], [Challenge("Bearer")]),
        (['Bearer realm="\u0100"'], [Challenge("Bearer")]),
        (["Bearer a=b, c="], [Challenge("Bearer", {"a": "b"})]),
        (["Bearer a=b, a=c, d=e"], [Challenge("Bearer", {"a": "b", "d": "e"})]),
        (['Bearer a="b" c="d"'], [Challenge("Bearer", {"a": "b", "c": "d"})]),
        (["Bearer u=https://a.example/x?y=z, e=f"], [Challenge("Bearer", {"u": "https://a.example/x?y=z", "e": "f"})]),
        (["Bearer scope=a b, c=d"], [Challenge("Bearer", {"scope": "a"}), Challenge("b"), Challenge("c")]),
        (["Bearer a=b, =", "Basic realm=x"], [Challenge("Bearer", {"a": "b"}), Challenge("Basic", {"realm": "x"})]),
        (["Bearer abc def"], [Challenge("Bearer")]),
        (["Bearer " + "x" * 16384], []),
    ],
)
def test_faults_are_refused_or_tolerated(lines: list[str], tolerated: list[Challenge]) -> None:
    """The strict reader raises; the tolerant one keeps what was said before the fault, line by line."""
    with pytest.raises(ChallengeError) as caught:
        read_challenges(lines)
    assert caught.value.code == "invalid_challenge"
    assert list(read_challenges(lines, tolerant=True)) == tolerated


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=30), max_size=3))
def test_the_tolerant_reader_never_raises(lines: list[str]) -> None:
    """And where the strict one does not, they agree."""
    tolerated = read_challenges(lines, tolerant=True)
    try:
        assert read_challenges(lines) == tolerated
    except ChallengeError:
        return


@given(st.lists(WRITABLE, max_size=3))
def test_what_is_written_is_read_back(challenges: list[Challenge]) -> None:
    """In one line or several."""
    assert list(read_challenges([write_challenges(challenges)])) == challenges
    assert list(read_challenges([write_challenge(challenge) for challenge in challenges])) == challenges


def test_values_are_always_quoted() -> None:
    """So a URL or a scope list needs no thought."""
    challenge = Challenge("Bearer", {"error": "insufficient_scope", "scope": "a b", "realm": 'x"\\'})
    assert write_challenge(challenge) == 'Bearer error="insufficient_scope", scope="a b", realm="x\\"\\\\"'
    assert write_challenge(Challenge("Bearer")) == "Bearer"
    assert write_challenge(Challenge("Negotiate", token68="YQ==")) == "Negotiate YQ=="


@pytest.mark.parametrize(
    "challenge",
    [
        Challenge(""),
        Challenge("Bearer x"),
        Challenge("Bearer", {"a b": "x"}),
        Challenge("Bearer", {"realm": "a\r\nSet-Cookie: x"}),
        Challenge("Bearer", {"realm": "é"}),
        Challenge("Bearer", {"error": ""}),
        Challenge("Bearer", {"error": 'a"b'}),
        Challenge("Bearer", {"error_description": "a\\b"}),
        Challenge("Bearer", {"Error_Description": "a\tb"}),
        Challenge("Bearer", {"error_uri": "https://a.example/ x"}),
        Challenge("Bearer", {"scope": ""}),
        Challenge("Bearer", {"scope": "a  b"}),
        Challenge("Bearer", {"scope": " a"}),
        Challenge("Bearer", {"scope": 'a"'}),
        Challenge("Negotiate", {"a": "b"}, "YQ"),
        Challenge("Negotiate", token68="a b"),
        Challenge("Negotiate", token68=""),
    ],
)
def test_what_cannot_be_said_is_not_written(challenge: Challenge) -> None:
    """Line ends, characters that RFC 6750 3 keeps out, and what is no token."""
    with pytest.raises(ChallengeError):
        write_challenge(challenge)


def test_schemes_ignore_case() -> None:
    """The scheme stays as written."""
    assert Challenge("bEARER").is_scheme("Bearer")
    assert not Challenge("DPoP").is_scheme("Bearer")
    assert Challenge("bEARER").scheme == "bEARER"

"""WWW-Authenticate read and written (RFC 9110 11.6.1, with the attributes of RFC 6750 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from papaver.values.errors import PapaverError

__all__ = ["Challenge", "ChallengeError", "read_challenges", "write_challenge", "write_challenges"]

MAX_LENGTH: Final = 16384

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TOKEN68: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_SEPARATOR: Final = re.compile(r"[ \t,]*")
_NAME: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*")
_QUOTED: Final = re.compile(r'"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*+)"')
_QUOTED_PAIR: Final = re.compile(r"\\(.)")
_BARE: Final = re.compile(r"[^\s,\"]+")
_WRITABLE: Final = re.compile(r"[\t\x20-\x7e]*")
# RFC 6750 3 narrows what these may hold, so that no reader has to undo a quoted pair.
_NARROW: Final = {
    "scope": re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*"),
    "error": re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+"),
    "error_description": re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+"),
    "error_uri": re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+"),
}


class ChallengeError(PapaverError):
    """A WWW-Authenticate field that does not parse, or a challenge that cannot be written."""

    code = "invalid_challenge"
    description = "WWW-Authenticate does not parse"


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge: a scheme with its parameters, or with one token68.

    `scheme` is as written and compared by `is_scheme`; the names of `params` are lowercase, their values unquoted.
    """

    scheme: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    token68: str | None = None

    def is_scheme(self, name: str) -> bool:
        """Whether the scheme is `name`, ignoring ASCII case."""
        return self.scheme.lower() == name.lower()


def read_challenges(values: Sequence[str], *, tolerant: bool = False) -> tuple[Challenge, ...]:
    """The challenges of all WWW-Authenticate lines, in order.

    Raises `ChallengeError` for what RFC 9110 11.6.1 does not allow: broken quoting, stray characters, a parameter
    twice, more than 16 KiB. A tolerant reader never raises: it keeps what each line says before its first fault, and
    takes unquoted values that should be quoted (a URL), missing commas, and the first of two equal parameters.
    """
    joined = ", ".join(values)
    if len(joined) > MAX_LENGTH:
        if tolerant:
            return ()
        raise ChallengeError("WWW-Authenticate is too long")
    try:
        return tuple(_Reader(joined, tolerant=False).challenges())
    except ChallengeError:
        if not tolerant:
            raise
    return tuple(challenge for line in values for challenge in _Reader(line, tolerant=True).challenges())


def write_challenge(challenge: Challenge) -> str:
    """One challenge, every value quoted. Raises `ChallengeError` for what its grammar or RFC 6750 3 cannot say."""
    if _TOKEN.fullmatch(challenge.scheme) is None:
        raise ChallengeError("the scheme is not a token")
    if challenge.token68 is not None:
        if challenge.params or _TOKEN68.fullmatch(challenge.token68) is None:
            raise ChallengeError("a token68 stands alone and has its own alphabet")
        return f"{challenge.scheme} {challenge.token68}"
    params = ", ".join(_write_param(name, value) for name, value in challenge.params.items())
    return f"{challenge.scheme} {params}" if params else challenge.scheme


def write_challenges(challenges: Iterable[Challenge]) -> str:
    """Several challenges as one field value. Raises `ChallengeError`."""
    return ", ".join(write_challenge(challenge) for challenge in challenges)


def _write_param(name: str, value: str) -> str:
    narrow = _NARROW.get(name.lower(), _WRITABLE)
    if _TOKEN.fullmatch(name) is None or narrow.fullmatch(value) is None:
        raise ChallengeError("a challenge cannot say this", detail=f"the parameter {name!r}")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


class _Reader:
    """Reads one text from left to right. A tolerant one stops at the first fault instead of raising."""

    __slots__ = ("_at", "_text", "_tolerant")

    def __init__(self, text: str, *, tolerant: bool) -> None:
        self._text = text
        self._at = 0
        self._tolerant = tolerant

    def challenges(self) -> Iterator[Challenge]:
        self._take(_SEPARATOR)
        while self._at < len(self._text):
            challenge = self._challenge()
            if challenge is not None:
                yield challenge

    def _challenge(self) -> Challenge | None:
        scheme = self._take(_TOKEN)
        if scheme is None:
            return self._fault("a challenge has no scheme")
        begin = self._at
        if self._ends_member():
            return Challenge(scheme)
        if self._at == begin:
            self._fault("a stray character after a scheme")
            return Challenge(scheme)
        begin = self._at
        token68 = self._take(_TOKEN68)
        if token68 is not None and self._ends_member():
            return Challenge(scheme, token68=token68)
        self._at = begin
        if _NAME.match(self._text, self._at) is None:
            self._fault("a challenge has neither parameters nor a token68")
            return Challenge(scheme)
        return Challenge(scheme, self._params())

    def _params(self) -> dict[str, str]:
        """The parameters that follow, up to the next scheme or the end."""
        params: dict[str, str] = {}
        while (match := _NAME.match(self._text, self._at)) is not None:
            self._at = match.end()
            value = self._value()
            if value is None:
                self._fault("a parameter has no value, or broken quoting")
            elif match[1].lower() not in params:
                params[match[1].lower()] = value
            elif not self._tolerant:
                self._fault("a parameter occurs twice")
            if not self._ends_member() and not self._tolerant:
                self._fault("a stray character after a parameter")
        return params

    def _value(self) -> str | None:
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            return self._take(_BARE if self._tolerant else _TOKEN)
        self._at = quoted.end()
        return _QUOTED_PAIR.sub(r"\1", quoted[1])

    def _ends_member(self) -> bool:
        """Whether a list member ends here; if so the commas that follow it are taken too, else only white space."""
        taken = self._take(_SEPARATOR) or ""
        return "," in taken or self._at == len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _fault(self, reason: str) -> None:
        if not self._tolerant:
            raise ChallengeError(detail=f"{reason}, near character {self._at}")
        self._at = len(self._text)

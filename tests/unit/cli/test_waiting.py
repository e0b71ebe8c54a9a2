"""Whoever comes back first ends the wait, whichever way they come."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator

import pytest

from papaver.cli import waiting
from papaver.cli.failures import CliError
from papaver.cli.run import Run
from papaver.cli.waiting import elsewhere, first, pasted, seconds_until
from papaver.personal_agent.sign_in import DirectSignIn, SignedIn
from papaver.personal_agent.sign_in_checks import SignInUnknown
from papaver.values.secret import Secret

DONE = SignedIn("Shop", "shop.example", "me", "default", ("a",))


class Stdin:
    """A pipe in place of stdin."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def fileno(self) -> int:
        return self.read_end

    def say(self, octets: bytes) -> None:
        os.write(self.write_end, octets)

    def end(self) -> None:
        os.close(self.write_end)


@pytest.fixture(name="stdin")
def make_stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stdin]:
    """What is typed."""
    stdin = Stdin()
    monkeypatch.setattr("sys.stdin", stdin)
    yield stdin
    os.close(stdin.read_end)


def begun(tried: list[str]) -> DirectSignIn:
    """A sign-in that one URL completes."""

    async def complete(callback: Secret) -> SignedIn:
        tried.append(callback.reveal())
        if callback.reveal() != "http://127.0.0.1/callback?code=c":
            raise SignInUnknown
        return DONE

    return DirectSignIn("https://a.example", "http://127.0.0.1/callback", ("a",), "Shop", "shop.example", 0, complete)


async def never() -> None:
    """A way by which nobody comes."""
    await asyncio.Event().wait()


async def nobody() -> None:
    """A way that is over before anybody came."""


async def done() -> SignedIn:
    """A way by which the User comes at once."""
    return DONE


@pytest.mark.anyio
async def test_the_first_way_that_brings_somebody_is_taken() -> None:
    """The others are called off; one that brings nobody is out."""
    assert await first(30, never(), nobody(), done()) is DONE


@pytest.mark.anyio
async def test_a_failure_of_one_way_is_the_end() -> None:
    """The User declined: nobody else can bring anything."""

    async def fails() -> SignedIn:
        raise SignInUnknown

    with pytest.raises(SignInUnknown):
        await first(30, never(), fails())


@pytest.mark.anyio
@pytest.mark.parametrize("ways", [1, 0])
async def test_nobody_in_time_is_told(ways: int) -> None:
    """Also when there is no way left."""
    with pytest.raises(CliError) as caught:
        await first(0.01, nobody(), *(never() for _ in range(ways)))
    assert caught.value.rule == "sign-in.fresh"


@pytest.mark.anyio
async def test_what_is_pasted_is_tried_until_it_fits(stdin: Stdin, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty lines are none; a wrong one is told without being shown; the last may lack its line end."""
    stdin.say(b"\n  \nhttps://wrong.example/?code=canary\n http://127.0.0.1/callback")
    stdin.say(b"?code=c \n")
    tried = list[str]()
    assert await pasted(Run(), begun(tried)) is DONE
    assert tried == ["https://wrong.example/?code=canary", "http://127.0.0.1/callback?code=c"]
    told = capsys.readouterr().err
    assert "paste the whole of it" in told
    assert "canary" not in told
    stdin.end()


@pytest.mark.anyio
async def test_an_end_of_input_is_no_failure(stdin: Stdin) -> None:
    """The other ways go on; what was typed last counts."""
    stdin.say(b"http://127.0.0.1/callback?code=c")
    stdin.end()
    assert await pasted(Run(), begun([])) is DONE


@pytest.mark.anyio
async def test_without_a_stdin_nobody_pastes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a service runs."""
    monkeypatch.setattr("sys.stdin", None)
    assert await pasted(Run(), begun([])) is None


@pytest.mark.anyio
async def test_another_process_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has completed the sign-in."""
    monkeypatch.setattr(waiting, "PAUSE", 0)
    answers = iter((None, None, DONE))

    async def look() -> SignedIn | None:
        return next(answers)

    assert await elsewhere(look) is DONE


def test_the_time_left_is_counted_from_now() -> None:
    """In seconds."""
    assert 5 < seconds_until(time.time() + 10) <= 10

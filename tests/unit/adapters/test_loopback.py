"""The browser comes back once, to the loopback interface, and nothing else is taken for it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from papaver.adapters import loopback
from papaver.adapters.loopback import LoopbackListener
from papaver.protocol.errors import ConfigurationError
from papaver.values.secret import Secret


async def exchange(listener: LoopbackListener, octets: bytes) -> bytes:
    """What is answered to these octets, to the end of the connection."""
    authority = listener.redirect_uri.split("/")[2]
    host, _, port = authority.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(octets)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def get(listener: LoopbackListener, target: str, method: str = "GET", host: str | None = None) -> bytes:
    """A request as a browser sends it."""
    authority = listener.redirect_uri.split("/")[2] if host is None else host
    return f"{method} {target} HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\n\r\n".encode()


@pytest.mark.requirement("papaver-103")
@pytest.mark.anyio
async def test_one_callback_is_taken_and_answered_without_a_script(caplog: pytest.LogCaptureFixture) -> None:
    """Its whole URL, as a secret; the page may load nothing; the next one is told that it is over."""
    caplog.set_level(logging.DEBUG)
    async with LoopbackListener() as listener:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(listener.callback("st"))
            await asyncio.sleep(0)
            answer = await exchange(listener, get(listener, "/callback?code=canary&state=st&iss=x"))
        again = await exchange(listener, get(listener, "/callback?code=canary&state=st"))
    assert waiting.result().reveal() == f"{listener.redirect_uri}?code=canary&state=st&iss=x"
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"default-src 'none'" in answer
    assert b"<script" not in answer
    assert b"canary" not in answer
    assert again.startswith(b"HTTP/1.1 410 ")
    assert "canary" not in caplog.text


@pytest.mark.requirement("papaver-103")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("target", "method", "host", "status"),
    [
        ("/favicon.ico", "GET", None, b"404"),
        ("/callback/", "GET", None, b"404"),
        ("/callback?state=st", "POST", None, b"404"),
        ("/callback?state=st", "GET", "attacker.example", b"400"),
        ("/callback?state=st", "GET", "localhost", b"400"),
        ("/callback?state=other&code=c", "GET", None, b"400"),
        ("/callback?code=c", "GET", None, b"400"),
        ("/callback?state=st&state=st", "GET", None, b"400"),
        ("/callback?state=st" + "&a=b" * 60, "GET", None, b"400"),
        ("/callback?state=st&x=\u00e4", "GET", None, b"400"),
        ("/callback?state=st&x=" + "y" * 16_500, "GET", None, b"400"),
    ],
)
async def test_nothing_else_is_the_callback(target: str, method: str, host: str | None, status: bytes) -> None:
    """Another path, method, host or sign-in, or a request that is too long; the wait goes on."""
    async with LoopbackListener() as listener:
        waiting = asyncio.create_task(listener.callback("st"))
        await asyncio.sleep(0)
        answer = await exchange(listener, get(listener, target, method, host))
        assert answer.split(b" ")[1:2] == [status]
        assert not waiting.done()
        await exchange(listener, get(listener, "/callback?state=st"))
        assert isinstance(await waiting, Secret)


@pytest.mark.anyio
@pytest.mark.parametrize("octets", [b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET /callback?state=st HTTP/2\r\n\r\n"])
async def test_what_is_no_request_is_refused(octets: bytes) -> None:
    """With a page that says nothing of it."""
    async with LoopbackListener() as listener:
        assert (await exchange(listener, octets)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.anyio
async def test_before_and_after_the_wait_nothing_is_taken() -> None:
    """A cancelled wait takes nothing either."""
    async with LoopbackListener("/back") as listener:
        assert listener.redirect_uri.endswith("/back")
        target = get(listener, "/back?state=st")
        assert (await exchange(listener, target)).startswith(b"HTTP/1.1 410 ")
        waiting = asyncio.create_task(listener.callback("st"))
        await asyncio.sleep(0)
        waiting.cancel()
        assert (await exchange(listener, target)).startswith(b"HTTP/1.1 410 ")


@pytest.mark.anyio
async def test_a_silent_connection_is_ended_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keeps the User's browser out for long."""
    monkeypatch.setattr(loopback, "SECONDS", 0.05)
    async with LoopbackListener() as listener:
        assert await exchange(listener, b"GET /callback") == b""
        monkeypatch.setattr(loopback, "MOST_CONNECTIONS", 0)
        assert await exchange(listener, b"") == b""


@pytest.mark.anyio
async def test_a_browser_that_hangs_up_is_none() -> None:
    """Half a request, then the end of it."""
    async with LoopbackListener() as listener:
        port = int(listener.redirect_uri.split("/")[2].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /callback")
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


@pytest.mark.anyio
async def test_a_port_that_is_taken_is_told() -> None:
    """As a setting that cannot work."""
    async with LoopbackListener() as listener:
        port = int(listener.redirect_uri.split("/")[2].rpartition(":")[2])
        with pytest.raises(ConfigurationError) as caught:
            await LoopbackListener(port=port).__aenter__()
    assert caught.value.rule == "loopback.listens"


def test_an_address_of_six_is_in_brackets() -> None:
    """As URLs write it (RFC 3986 3.2.2)."""
    assert LoopbackListener(host="::1", port=8080).redirect_uri == "http://[::1]:8080/callback"

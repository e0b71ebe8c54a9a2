"""A Personal Agent's documents over HTTP and TLS, from the standard library."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
from pathlib import Path

import pytest

from papaver.adapters.callback_pages import DONE, Page
from papaver.adapters.identity_server import IdentityServer
from papaver.demo.authority import Authority
from papaver.protocol.errors import ConfigurationError

DOCUMENTS = {"https://agent.example/a/agent.json?v=1": b'{"a": 1}', "https://agent.example/a/jwks.json": b"{}"}


def _fetch(server: IdentityServer, method: str, target: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection(*server.address, timeout=10)
    try:
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Cache-Control")
    finally:
        connection.close()


def test_documents_are_served_at_their_urls_and_nothing_else_is() -> None:
    """Path and query, for GET and HEAD."""
    with IdentityServer(DOCUMENTS, "127.0.0.1", 0) as server:
        assert _fetch(server, "GET", "/a/agent.json?v=1") == (200, b'{"a": 1}', "public, max-age=300")
        assert _fetch(server, "GET", "/a/jwks.json")[:2] == (200, b"{}")
        assert _fetch(server, "HEAD", "/a/jwks.json")[:2] == (200, b"")
        assert _fetch(server, "GET", "/a/agent.json") == (404, b"", "no-store")
        assert _fetch(server, "POST", "/a/jwks.json")[0] == 501


def test_tls_is_spoken_under_the_certificate_s_name(tmp_path: Path) -> None:
    """A client that speaks plain HTTP, or nothing at all, holds up nobody else."""
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    received = b""
    with (
        IdentityServer(DOCUMENTS, "127.0.0.1", 0, authority.issue("agent.example")) as server,
        socket.create_connection(server.address),
        socket.create_connection(server.address) as plain,
    ):
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        raw = socket.create_connection(server.address)
        with context.wrap_socket(raw, server_hostname="agent.example") as secure:
            secure.sendall(b"GET /a/jwks.json HTTP/1.0\r\n\r\n")
            while piece := secure.recv(4096):
                received += piece
    assert received.endswith(b"\r\n\r\n{}")


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    """Before anything listens."""
    (tmp_path / "x").write_text("no")
    with pytest.raises(ConfigurationError) as caught:
        IdentityServer(DOCUMENTS, "127.0.0.1", 0, (tmp_path / "x", tmp_path / "x"))
    assert caught.value.rule == "identity.certificate"


def test_an_address_that_is_taken_is_told() -> None:
    """With host and port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught:
            IdentityServer(DOCUMENTS, "127.0.0.1", port)
    assert caught.value.rule == "identity.listens"
    assert f"127.0.0.1:{port}" in caught.value.description


def test_a_callback_is_taken_whole_and_answered_with_a_page(caplog: pytest.LogCaptureFixture) -> None:
    """At its own path, with a query, by GET alone; nothing of it is logged."""
    caplog.set_level(logging.DEBUG)
    came = list[str]()

    def taken(url: str) -> Page:
        came.append(url)
        return DONE

    callbacks = {"https://agent.example/callback": taken}
    with IdentityServer(DOCUMENTS, "127.0.0.1", 0, callbacks=callbacks) as server:
        connection = http.client.HTTPConnection(*server.address, timeout=10)
        for method, target, status in (
            ("GET", "/callback?code=canary&state=s", 200),
            ("HEAD", "/callback?code=x", 404),
            ("GET", "/callback", 404),
            ("GET", "/other?code=x", 404),
        ):
            connection.request(method, target)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == status, target
            if status == 200:
                assert body.decode() == DONE.document
                assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        connection.close()
    assert came == ["https://agent.example/callback?code=canary&state=s"]
    assert "canary" not in caplog.text

"""What a failed exchange means, and what people are told of it."""

from __future__ import annotations

import errno
import socket
import ssl

import httpcore2
import httpx2
import pytest

from papaver.adapters.httpx2.failures import failure_of, resolve_flag, unreachable, why
from papaver.ports.system import FetchFailed, FetchFault

URL = "https://shop.example/.well-known/poppy.json"


def raised(cause: BaseException) -> FetchFailed:
    """What becomes of an exchange that this error ended, as the libraries wrap it."""
    below = httpcore2.ConnectError(cause)
    error = httpx2.ConnectError(str(below))
    error.__cause__ = below
    return failure_of(error, URL)


def certificate(code: int, said: str) -> ssl.SSLCertVerificationError:
    """As OpenSSL's verdict about a certificate arrives."""
    error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {said}")
    error.verify_code, error.verify_message = code, said
    return error


def handshake(reason: str) -> ssl.SSLError:
    """As any other TLS failure arrives."""
    error = ssl.SSLError(1, f"[SSL: {reason}] it failed (_ssl.c:1000)")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("cause", "found", "remedy"),
    [
        (certificate(20, "unable to get local issuer certificate"), "unable to get local issuer", "--ca-file FILE"),
        (certificate(18, "self-signed certificate"), "self-signed certificate", "--ca-file FILE"),
        (certificate(62, "not valid for 'shop.example'"), "a certificate for another host", "names shop.example"),
        (certificate(10, "certificate has expired"), "certificate has expired", "renew its certificate"),
        (certificate(23, "certificate revoked"), "certificate revoked", "has to be correct"),
        (handshake("WRONG_VERSION_NUMBER"), "plain HTTP, or something else", "--tls-cert and --tls-key"),
        (handshake("TLSV1_ALERT_PROTOCOL_VERSION"), "tlsv1 alert protocol version", "TLS 1.2 or newer"),
    ],
    ids=["issuer", "self-signed", "host", "expired", "revoked", "plain", "old"],
)
def test_a_wrong_certificate_says_what_is_wrong_and_what_to_do(cause: ssl.SSLError, found: str, remedy: str) -> None:
    """By OpenSSL's code, not by its sentence; asking again would not help."""
    failed = raised(cause)
    assert (failed.fault, failed.rule) == (FetchFault.REFUSED, "fetch.tls")
    assert found in failed.found
    assert remedy in failed.remedy
    assert failed.expected
    assert "Error(" not in f"{failed.detail}{failed.found}"


def test_a_name_that_cannot_be_looked_up_may_be_spelt_wrong() -> None:
    """Or this machine is offline."""
    error = httpx2.ConnectError("shop.example could not be resolved: try again")
    error.__cause__ = socket.gaierror(socket.EAI_AGAIN, "try again")
    failed = failure_of(error, URL)
    assert (failed.fault, failed.detail) == (FetchFault.UNREACHABLE, "shop.example could not be resolved: try again")
    assert failed.remedy.endswith("--resolve shop.example:443=127.0.0.1:8443")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx2.ReadTimeout(""), "it did not answer in time"),
        (httpx2.RemoteProtocolError("gone"), "gone"),
        (ValueError(), "ValueError"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "Connection refused"),
    ],
    ids=["silent", "said", "neither", "system"],
)
def test_an_error_is_told_in_words(error: Exception, words: str) -> None:
    """The class's name only when there is nothing else."""
    assert why(error) == words


def test_what_a_library_says_beside_the_system_s_reason_is_kept() -> None:
    """It names the addresses."""
    below = ConnectionRefusedError(errno.ECONNREFUSED, "x")
    error = httpcore2.ConnectError("no address of a.example answers: 127.0.0.1 port 1: Connection refused")
    error.__cause__ = below
    assert why(error) == str(error)


def test_a_traceback_of_a_program_shows_what_to_do() -> None:
    """As notes, which Python prints below an error that nobody caught."""
    assert unreachable(URL, "it did not answer in time").__notes__ == [
        f"  expected  an answer from {URL}",
        "  found     no answer: it did not answer in time",
        "  next      is its server running? Start it, or try again later; for local work check --resolve",
    ]
    assert resolve_flag(URL) == "--resolve shop.example:443=127.0.0.1:8443"

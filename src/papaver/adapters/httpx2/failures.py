"""What a failed exchange means, and for people: what was expected, what was found, and what to do about it."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx2

from papaver.ports.system import FetchFailed, FetchFault
from papaver.web.urls import host_of

__all__ = ["causes_of", "failure_of", "refused", "resolve_flag", "unreachable", "why"]

UNKNOWN_ISSUER: Final = frozenset({18, 19, 20, 21})
"""OpenSSL's codes for a chain that ends at nobody who is trusted."""
NOT_IN_TIME: Final = frozenset({9, 10})
OTHER_HOST: Final = frozenset({62, 64})
NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"})
"""OpenSSL's reasons for what is no TLS record."""
SILENT: Final = {
    "ConnectTimeout": "it could not be connected to in time",
    "ReadTimeout": "it did not answer in time",
    "WriteTimeout": "it did not take the request in time",
    "PoolTimeout": "no connection was free in time",
    "ReadError": "the connection broke",
    "WriteError": "the connection broke",
}


def refused(
    url: str, rule_id: str, detail: str, *, expected: str = "", found: str = "", remedy: str = ""
) -> FetchFailed:
    """The failure that asking again does not cure. One sentence for every cause, so that it tells a prober nothing."""
    return FetchFailed(
        FetchFault.REFUSED,
        "this URL cannot be used",
        url=url,
        rule=rule_id,
        detail=detail,
        expected=expected,
        found=found or detail,
        remedy=remedy,
    )


def unreachable(url: str, detail: str, *, remedy: str = "") -> FetchFailed:
    """The failure that may pass."""
    return FetchFailed(
        FetchFault.UNREACHABLE,
        "this URL cannot be reached at the moment",
        url=url,
        detail=detail,
        expected=f"an answer from {url}",
        found=f"no answer: {detail}",
        remedy=remedy or "is its server running? Start it, or try again later; for local work check --resolve",
    )


def failure_of(error: httpx2.HTTPError, url: str) -> FetchFailed:
    """What a failed exchange means: a wrong certificate or an answer that is not HTTP stays so, the rest may pass."""
    causes = list(causes_of(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return _tls(cause, url)
    if isinstance(error, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)):
        return refused(url, "fetch.http", str(error))
    # An answer that is not HTTP has the parser's error for its cause; a connection that just ended has none.
    if isinstance(error, httpx2.RemoteProtocolError) and len(causes) > 2:
        return refused(
            url,
            "fetch.http",
            str(error),
            expected="an HTTP answer",
            remedy="something else than a web server answers there: check the host and the port",
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        remedy = f"check the spelling, and whether this machine is online; for local work: {resolve_flag(url)}"
        return unreachable(url, why(error), remedy=remedy)
    return unreachable(url, why(error))


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error and those below it. httpcore2 cuts the chain of causes, yet makes each error from the one below."""
    below: object = error
    while isinstance(below, BaseException):
        yield below
        below = below.__cause__ or (below.args[0] if below.args else None)


def why(error: BaseException) -> str:
    """An error in words, without the names of classes where it can be."""
    for cause in causes_of(error):
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, (ssl.SSLError, socket.gaierror)):
            said = str(error)
            return said if type(cause) is not type(error) and ":" in said else os.strerror(cause.errno)
    name = type(error).__name__
    return str(error) or SILENT.get(name, name)


def resolve_flag(url: str) -> str:
    """What to type when the host of a URL is on this machine."""
    return f"--resolve {host_of(url)}:443=127.0.0.1:8443"


def _tls(error: ssl.SSLError, url: str) -> FetchFailed:
    """Why no TLS connection came about, by OpenSSL's code."""
    host = host_of(url)
    expected = f"a certificate for {host}, of an authority that is trusted here"
    if isinstance(error, ssl.SSLCertVerificationError):
        said, code = error.verify_message, error.verify_code
        remedy = "its certificate has to be correct"
        if code in UNKNOWN_ISSUER:
            remedy = "for local work trust its authority: --ca-file FILE; else it has to serve its whole chain"
        elif code in OTHER_HOST:
            said = f"a certificate for another host: {said}"
            remedy = f"its server needs a certificate that names {host}; for local work check the port in --resolve"
        elif code in NOT_IN_TIME:
            remedy = "it has to renew its certificate; check the clock of this machine, too"
        return refused(url, "fetch.tls", said, expected=expected, found=said, remedy=remedy)
    reason = error.reason or str(error)
    if reason in NOT_TLS:
        return refused(
            url,
            "fetch.tls",
            f"no TLS there ({reason})",
            expected="TLS, as https says",
            found=f"plain HTTP, or something else that is no TLS ({reason})",
            remedy="serve it with --tls-cert and --tls-key, or reach the proxy in front that ends TLS",
        )
    said = f"the TLS handshake failed: {reason.lower().replace('_', ' ')}"
    remedy = "its server has to offer TLS 1.2 or newer, with a certificate for its host"
    return refused(url, "fetch.tls", said, expected=expected, found=said, remedy=remedy)

"""HTTPS, JSON and JWT pieces that the second-opinion agent and Company share."""

from __future__ import annotations

import base64
import hashlib
import http.client
import http.server
import ipaddress
import json
import re
import secrets
import socket
import ssl
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import jwt

VERSION = "0.4"
ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,256}")
MAX_BODY = 1 << 20


class Fault(Exception):
    """Something is definitely wrong, so trying again does not help."""


class Unreachable(Exception):
    """The other side could not be reached or asked to be left alone, so a later try may succeed."""


def obj(value: object, what: str) -> dict[str, Any]:
    """Return the value as a JSON object or fail."""
    if not isinstance(value, dict):
        raise Fault(f"{what} is not a JSON object")
    return cast("dict[str, Any]", value)


def arr(value: object, what: str) -> list[Any]:
    """Return the value as a JSON array or fail."""
    if not isinstance(value, list):
        raise Fault(f"{what} is not a JSON array")
    return cast("list[Any]", value)


def https_url(value: object, what: str) -> SplitResult:
    """Return the parts of an HTTPS URL without user information or fragment, or fail."""
    if not isinstance(value, str):
        raise Fault(f"{what} is not a string")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise Fault(f"{what} is not a URL") from error
    if parts.scheme != "https" or not parts.hostname or port == 0:
        raise Fault(f"{what} is not an HTTPS URL")
    if "@" in parts.netloc or "#" in value or not re.fullmatch(r"[!-~]+", value):
        raise Fault(f"{what} has user information, a fragment or characters a URL cannot have")
    return parts


def b64url(data: bytes) -> str:
    """Encode bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_id(prefix: str = "") -> str:
    """Make an unguessable identifier in the alphabet of section 8.2."""
    return prefix + secrets.token_urlsafe(18)


def thumbprint(jwk: dict[str, Any]) -> str:
    """Compute the RFC 7638 thumbprint of an EC or RSA public key."""
    members = ("crv", "kty", "x", "y") if jwk.get("kty") == "EC" else ("e", "kty", "n")
    text = json.dumps({name: jwk[name] for name in members}, separators=(",", ":"), sort_keys=True)
    return b64url(hashlib.sha256(text.encode()).digest())


def verify_jws(token: str, jwk: dict[str, Any], algorithm: str) -> dict[str, Any]:
    """Verify a compact JWS with one public JWK and one algorithm, and return its claims without judging them."""
    if any(name in jwk for name in ("d", "p", "q", "dp", "dq", "qi", "oth", "k")):
        raise Fault("the key has private members")
    wanted = ("EC", "P-256") if algorithm == "ES256" else ("RSA", None)
    if (jwk.get("kty"), jwk.get("crv")) != wanted or jwk.get("use", "sig") != "sig":
        raise Fault("the key does not fit the algorithm")
    if jwk.get("alg", algorithm) != algorithm:
        raise Fault("the key names another algorithm")
    try:
        key = jwt.PyJWK.from_dict(jwk, algorithm=algorithm)
        if algorithm != "ES256" and key.key.key_size < 2048:
            raise Fault("the RSA key is too short")
        verified = jwt.PyJWS().decode_complete(token, key, algorithms=[algorithm])
        return obj(json.loads(verified["payload"]), "the JWT payload")
    except (jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
        raise Fault(f"the signature does not verify: {error}") from error


@dataclass(frozen=True)
class Answer:
    """One HTTP response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self, what: str) -> dict[str, Any]:
        """Parse the body as a JSON object."""
        try:
            return obj(json.loads(self.body), what)
        except ValueError as error:
            raise Fault(f"{what} is not JSON") from error


class _Connection(http.client.HTTPSConnection):
    """An HTTPS connection that dials a given address but keeps the host's name for SNI, the certificate and Host."""

    def __init__(self, host: str, port: int, address: tuple[str, int], tls: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=tls)
        self._address, self._tls, self._seconds = address, tls, timeout

    def connect(self) -> None:
        """Dial the address and start TLS for the name."""
        raw = socket.create_connection(self._address, self._seconds)
        try:
            self.sock = self._tls.wrap_socket(raw, server_hostname=self.host)
        except BaseException:
            raw.close()
            raise


class Https:
    """An HTTPS client that never follows redirects and refuses addresses that are not public."""

    def __init__(self, ca_file: str | None, resolve: list[str]) -> None:
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._map: dict[tuple[str, int], tuple[str, int]] = {}
        for item in resolve:
            name, _, target = item.partition("=")
            host, _, port = name.rpartition(":")
            self._map[host.lower(), int(port)] = split_address(target)

    def _address(self, host: str, port: int) -> tuple[str, int]:
        """Look up where to connect; a mapped name is configured on purpose, every other must be a public address."""
        if (host, port) in self._map:
            return self._map[host, port]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise Fault(f"{host} has no address") from error
        address = str(found[0][4][0])
        number = ipaddress.ip_address(address.partition("%")[0])
        inner = getattr(number, "ipv4_mapped", None) or number
        if not number.is_global or not inner.is_global or number.is_multicast:
            raise Fault(f"{host} has an address that is not public")
        return address, port

    def send(
        self, method: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None, wait: float = 0
    ) -> Answer:
        """Send one request and return the response whatever its status."""
        parts = https_url(url, "the request URL")
        host, port = str(parts.hostname), parts.port or 443
        connection = _Connection(host, port, self._address(host, port), self._tls, wait + 15)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body=body, headers=headers or {})
            response = connection.getresponse()
            data = response.read(MAX_BODY + 1)
            if len(data) > MAX_BODY:
                raise Fault("the response is too large")
            return Answer(response.status, response.headers, data)
        except ssl.SSLCertVerificationError as error:
            raise Fault(f"the certificate of {host} does not verify") from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{host}: {type(error).__name__}") from error
        finally:
            connection.close()


def split_address(text: str) -> tuple[str, int]:
    """Split ADDRESS:PORT."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Server(http.server.ThreadingHTTPServer):
    """A threaded HTTPS server on the given address, where port 0 picks a free one."""

    daemon_threads = True

    def __init__(self, listen: str, cert: str, key: str, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__(split_address(listen), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a peer breaks off."""

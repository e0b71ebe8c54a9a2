"""What a user may say about the network for local work: `--resolve` and `--ca-file` (cli.md), typed and loud."""

from __future__ import annotations

import ipaddress
import logging
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.web.urls import UrlError, read_domain

__all__ = ["NetworkSettings", "ResolveEntry", "ResolveMap"]

logger = logging.getLogger("papaver.network")

_FORM = "HOST:PORT=ADDR:PORT, such as shop.example:443=127.0.0.1:8443"


@dataclass(frozen=True, slots=True)
class ResolveEntry:
    """Who asks for `host`:`port` is connected to `address`:`to_port`; SNI and Host stay the name."""

    host: str
    port: int
    address: str
    to_port: int

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.host}:{self.port}={address}:{self.to_port}"


@dataclass(frozen=True, slots=True)
class ResolveMap:
    """Names that are dialled elsewhere. Only they may end at a private address; every other name is judged."""

    entries: tuple[ResolveEntry, ...] = ()

    @classmethod
    def read(cls, entries: Iterable[str]) -> ResolveMap:
        """Entries as `--resolve` takes them: an exact host name and port; an IP address (IPv6 in brackets) and port.

        Raises ConfigurationError for anything else, a wildcard included, and for one name with two targets.
        """
        found: dict[tuple[str, int], ResolveEntry] = {}
        for text in entries:
            entry = _read_entry(text)
            if found.setdefault((entry.host, entry.port), entry) != entry:
                raise ConfigurationError(
                    f"--resolve names {entry.host}:{entry.port} twice, with two targets", rule="network.resolve-entry"
                )
        return cls(tuple(found.values()))

    def find(self, host: str, port: int) -> ResolveEntry | None:
        """The entry of exactly this host and port, or None."""
        host = host.lower()
        return next((entry for entry in self.entries if entry.host == host and entry.port == port), None)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __str__(self) -> str:
        return ",".join(map(str, self.entries))


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The two exceptions to the rules of the network that a user can ask for; there is no third.

    `resolve`  names that are dialled at given addresses
    `ca_file`  a PEM file of certificate authorities that are trusted beside the platform's own
    """

    resolve: ResolveMap = ResolveMap()
    ca_file: Path | None = None

    @classmethod
    def read(
        cls, resolve: Iterable[str] = (), ca_file: str | Path | None = None, *, environ: Mapping[str, str] = os.environ
    ) -> NetworkSettings:
        """Flags, and beside them PAPAVER_RESOLVE and PAPAVER_CA_FILE of `environ`; where both speak, the flag counts.

        Raises ConfigurationError.
        """
        flags = ResolveMap.read(resolve)
        named = (part.strip() for part in environ.get("PAPAVER_RESOLVE", "").split(","))
        ambient = ResolveMap.read(part for part in named if part)
        added = (entry for entry in ambient.entries if flags.find(entry.host, entry.port) is None)
        path = ca_file or environ.get("PAPAVER_CA_FILE") or None
        return cls(ResolveMap((*flags.entries, *added)), None if path is None else Path(path))

    @classmethod
    def from_environment(cls) -> NetworkSettings:
        """What the environment alone says. Raises ConfigurationError."""
        return cls.read()

    def environ(self) -> dict[str, str]:
        """The same settings as variables, for a process that we start."""
        variables: dict[str, str] = {}
        if self.resolve:
            variables["PAPAVER_RESOLVE"] = str(self.resolve)
        if self.ca_file is not None:
            variables["PAPAVER_CA_FILE"] = str(self.ca_file)
        return variables

    def trust(self) -> ssl.SSLContext:
        """A TLS context that always verifies: the platform's authorities, and those of `ca_file`.

        The environment (SSL_CERT_FILE and its kin) is not asked. Raises ConfigurationError.
        """
        import httpx2  # here, because a command line reads these settings before it knows that it needs a network

        context = httpx2.create_ssl_context(trust_env=False)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.ca_file is not None:
            try:
                context.load_verify_locations(cafile=self.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ConfigurationError(
                    f"the CA file {self.ca_file} cannot be read as PEM certificates",
                    rule="network.ca-file",
                    detail=str(error),
                ) from error
        return context

    def announce(self) -> None:
        """Say in the log, loudly, what is not as on the open internet."""
        for entry in self.resolve.entries:
            logger.warning("--resolve: %s, whatever its address; meant for local work only", entry)
        if self.ca_file is not None:
            logger.warning("--ca-file: certificates signed by %s are trusted for every host", self.ca_file)


def _read_entry(text: str) -> ResolveEntry:
    named, equals, target = text.partition("=")
    host, _, port = named.rpartition(":")
    address, _, to_port = target.rpartition(":")
    try:
        if not equals or ("]" in address) != (":" in address):
            raise ValueError
        ip = ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))
        entry = ResolveEntry(read_domain(host), _read_port(port), str(ip), _read_port(to_port))
    except (ValueError, UrlError):
        raise ConfigurationError(f"--resolve takes {_FORM}; got {text!r:.200}", rule="network.resolve-entry") from None
    check_entry_exact(entry)
    return entry


def _read_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= 65535):
        raise ValueError
    return int(text)


@rule("network.resolve-to-one-host")
def check_entry_exact(entry: ResolveEntry) -> None:
    """An entry leads to an address that one host has: neither all of them nor a group. Raises ConfigurationError."""
    ip = ipaddress.ip_address(entry.address)
    if ip.is_unspecified or ip.is_multicast:
        raise ConfigurationError(
            f"--resolve cannot lead to {entry.address}, which is no address of one host",
            rule="network.resolve-to-one-host",
        )

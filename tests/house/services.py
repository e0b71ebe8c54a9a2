"""Which outside services the tests can use here, and what becomes of the tests that need an absent one.

A test says `@pytest.mark.needs("postgres")`. Without the service it is left out and counted at the end;
with PAPAVER_REQUIRE=all (or a list such as `redis,node`) it fails.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.house import npm

__all__ = ["PACKAGES", "SERVICES", "Service", "address", "program"]

PACKAGES = npm.MODULES
"""Where the packages of tests/node are, once a test that needs "npm" runs."""


@dataclass(frozen=True, slots=True)
class Service:
    """`probe` returns an empty string when the service is usable, else why it is not."""

    name: str
    title: str
    probe: Callable[[], str]
    remedy: str


def address(variable: str, default: str) -> tuple[str, int]:
    """Host and port of a service, from the URL in an environment variable."""
    parts = urlsplit(os.environ.get(variable) or default)
    return parts.hostname or "127.0.0.1", parts.port or urlsplit(default).port or 0


def program(variable: str, *names: str) -> str | None:
    """The path of a program: the one an environment variable names, else the first found of `names`."""
    named = os.environ.get(variable)
    candidates: Iterable[str] = (named,) if named else names
    return next((found for name in candidates if (found := shutil.which(name))), None)


def _say(host: str, port: int, request: bytes, answers: tuple[bytes, ...]) -> str:
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(request)
            answer = connection.recv(16)
    except OSError as error:
        return f"{host}:{port}: {error}"
    return "" if answer.startswith(answers) else f"{host}:{port} speaks another protocol"


def _postgres() -> str:
    # An SSLRequest is answered by one byte, before any login.
    ssl_request = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
    return _say(*address("PAPAVER_POSTGRES_URL", "postgresql://127.0.0.1:5432"), ssl_request, (b"S", b"N"))


def _redis() -> str:
    return _say(*address("PAPAVER_REDIS_URL", "redis://127.0.0.1:6379"), b"PING\r\n", (b"+PONG", b"-NOAUTH"))


def _runs(path: str | None) -> tuple[str, str]:
    """What `path --version` prints, and why it could not."""
    if path is None:
        return "", "not found"
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return "", f"{path}: {error}"
    return done.stdout.strip(), ""


def _chromium() -> str:
    return _runs(program("PAPAVER_CHROMIUM", "chromium", "chromium-browser", "google-chrome"))[1]


def _node() -> str:
    printed, fault = _runs(program("PAPAVER_NODE", "node"))
    version = re.match(r"v(\d+)\.", printed)
    if fault or version is None:
        return fault or f"prints {printed!r}"
    return "" if int(version[1]) >= 22 else f"{printed} is older than 22"


SERVICES: Mapping[str, Service] = {
    service.name: service
    for service in (
        Service("postgres", "PostgreSQL", _postgres, "start one, or set PAPAVER_POSTGRES_URL"),
        Service("redis", "Redis", _redis, "start one, or set PAPAVER_REDIS_URL"),
        Service("chromium", "Chromium", _chromium, "install it, or set PAPAVER_CHROMIUM"),
        Service("node", "Node 22", _node, "install it, or set PAPAVER_NODE"),
        Service("npm", "the npm packages of tests/node", npm.why_not, "install npm, and let it reach its registry"),
    )
}


@cache
def absent(name: str) -> str:
    """Why a service is unusable here; empty when it is usable. Probed once a process."""
    return SERVICES[name].probe()


def required(name: str) -> bool:
    wanted = os.environ.get("PAPAVER_REQUIRE", "").split(",")
    return "all" in wanted or name in wanted


def _needed(item: pytest.Item) -> list[str]:
    return [str(name) for marker in item.iter_markers("needs") for name in marker.args]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a marker that names a service we do not know."""
    unknown = [f"{item.nodeid}: {name}" for item in items for name in _needed(item) if name not in SERVICES]
    if unknown:
        raise pytest.UsageError(f"unknown services (known: {', '.join(SERVICES)}):\n  " + "\n  ".join(unknown))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test whose service is absent, or fail it when the service is required."""
    for name in _needed(item):
        if not (why := absent(name)):
            continue
        service = SERVICES[name]
        if required(name):
            pytest.fail(
                f"{service.title} is required (PAPAVER_REQUIRE) and absent: {why}; {service.remedy}", pytrace=False
            )
        pytest.skip(f"needs {service.title}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which absent services left out tests, and how many."""
    skipped: list[Any] = terminalreporter.getreports("skipped")
    reasons = [str(report.longrepr) for report in skipped]
    counts = {service: sum(f"needs {service.title}" in one for one in reasons) for service in SERVICES.values()}
    left_out = {service: count for service, count in counts.items() if count}
    if not left_out:
        return
    terminalreporter.section("absent services")
    for service, count in left_out.items():
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"{service.title}: {absent(service.name)}. {tests} left out; {service.remedy}.")
